#include "eval/windows.h"

#include <algorithm>

#include "base/check.h"

namespace hexllm {
namespace {

Request MakeRequest(std::span<const int32_t> ids, size_t counted) {
  return {.ids = {ids.begin(), ids.end()},
          .first_counted = static_cast<uint32_t>(ids.size() - counted)};
}

}  // namespace

std::vector<Request> RollingWindows(std::span<const int32_t> ids,
                                    std::optional<int32_t> prefix,
                                    uint32_t window) {
  HX_CHECK(window >= 1);
  std::vector<int32_t> all;
  if (prefix) all.push_back(*prefix);
  all.insert(all.end(), ids.begin(), ids.end());
  // A window ends with a token that it predicts and does not run.
  const size_t most = size_t{window} + 1;
  std::vector<Request> windows;
  size_t counted = 1;  // tokens of `all` that are given or counted
  while (counted < all.size()) {
    const size_t n = std::min<size_t>(window, all.size() - counted);
    const size_t end = counted + n;
    const size_t begin = end > most ? end - most : 0;
    windows.push_back(
        MakeRequest(std::span(all).subspan(begin, end - begin), n));
    counted = end;
  }
  return windows;
}

std::vector<Request> FixedWindows(std::span<const int32_t> ids, uint32_t window,
                                  uint32_t stride) {
  HX_CHECK(window >= 2 && stride >= 1 && stride <= window);
  std::vector<Request> windows;
  for (size_t begin = 0; begin + window <= ids.size(); begin += stride) {
    const size_t fresh =
        begin == 0 ? window - 1 : std::min<size_t>(stride, window - 1);
    windows.push_back(MakeRequest(ids.subspan(begin, window), fresh));
  }
  return windows;
}

}  // namespace hexllm
