#include "text/bpe_merges.h"

#include <fmt/format.h>

#include "base/quote.h"
#include "text/bpe.h"

namespace hexllm {

Result<std::vector<Merge>> ResolveMerges(const StringTable& pieces,
                                         const StringTable& halves) {
  if (halves.size() / 2 > kMaxMerges) {
    return Error{ErrorCode::kUnsupported,
                 fmt::format("{} merges, at most {} are supported",
                             halves.size() / 2, kMaxMerges)};
  }
  PieceIndex index;
  index.Build(pieces);
  std::vector<Merge> merges;
  merges.reserve(halves.size() / 2);
  std::string joined;
  for (size_t i = 0; i + 1 < halves.size(); i += 2) {
    joined.assign(halves[i]);
    joined.append(halves[i + 1]);
    const Merge merge{index.Find(pieces, halves[i]),
                      index.Find(pieces, halves[i + 1]),
                      index.Find(pieces, joined)};
    if (merge.left == kNoToken || merge.right == kNoToken ||
        merge.result == kNoToken) {
      const std::string_view missing = merge.left == kNoToken ? halves[i]
                                       : merge.right == kNoToken
                                           ? halves[i + 1]
                                           : std::string_view(joined);
      return Error{
          ErrorCode::kBadInput,
          fmt::format("merge {} ({} {}): the vocabulary has no piece {}", i / 2,
                      Quoted(halves[i]), Quoted(halves[i + 1]),
                      Quoted(missing))};
    }
    merges.push_back(merge);
  }
  return merges;
}

}  // namespace hexllm
