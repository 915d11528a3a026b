// Force-inlining for the building blocks of kernels: operations on vectors must
// end up in registers at every optimization level.
#pragma once

#include <stddef.h>

#define HX_INLINE [[gnu::always_inline]] inline

namespace hexllm::cpu {
namespace {

// A count as the bound of an array.
constexpr size_t Bound(int count) { return static_cast<size_t>(count); }

}  // namespace
}  // namespace hexllm::cpu
