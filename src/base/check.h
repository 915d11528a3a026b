// Always-on checks for bugs of ours. A failed check prints file, line and
// expression and ends the process with exit status 70. Input and environment
// errors are never checks: they are Status/Result (base/status.h).
#pragma once

namespace hexllm {

// Prints "hexllm: internal error at FILE:LINE: EXPR (please report)" on stderr
// and exits the process with status 70.
[[noreturn]] void CheckFailed(const char* file, int line, const char* expr);

}  // namespace hexllm

#define HX_CHECK(cond)                                             \
  do {                                                             \
    if (!(cond)) ::hexllm::CheckFailed(__FILE__, __LINE__, #cond); \
  } while (false)

// For hot loops: only in builds without NDEBUG.
#ifdef NDEBUG
#define HX_DCHECK(cond)        \
  do {                         \
    if (false) HX_CHECK(cond); \
  } while (false)
#else
#define HX_DCHECK(cond) HX_CHECK(cond)
#endif
