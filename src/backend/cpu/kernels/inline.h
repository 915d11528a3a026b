// Force-inlining for the building blocks of kernels: operations on vectors must
// end up in registers at every optimization level.
#pragma once

#define HX_INLINE [[gnu::always_inline]] inline
