#include "base/check.h"

#include <cstdio>
#include <cstdlib>

namespace hexllm {

void CheckFailed(const char* file, int line, const char* expr) {
  std::fprintf(stderr,
               "hexllm: internal error at %s:%d: %s (please report this)\n",
               file, line, expr);
  std::fflush(stderr);
  std::_Exit(70);
}

}  // namespace hexllm
