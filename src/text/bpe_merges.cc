#include "text/bpe_merges.h"

#include <fmt/format.h>

#include <algorithm>

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

namespace {

// True where a character of UTF-8 begins.
bool IsBoundary(char c) { return (static_cast<uint8_t>(c) & 0xC0) != 0x80; }

struct RankedMerge {
  uint32_t rank;
  Merge merge;
};

// Appends the merges that make piece `id`.
void AppendSplits(const StringTable& pieces, const PieceIndex& index,
                  RankedMerge of, std::vector<RankedMerge>& out) {
  const std::string_view piece = pieces[static_cast<size_t>(of.merge.result)];
  for (size_t at = 1; at < piece.size(); ++at) {
    if (!IsBoundary(piece[at])) continue;
    of.merge.left = index.Find(pieces, piece.substr(0, at));
    if (of.merge.left == kNoToken) continue;
    of.merge.right = index.Find(pieces, piece.substr(at));
    if (of.merge.right != kNoToken) out.push_back(of);
  }
}

}  // namespace

Status DeriveMerges(const std::vector<uint32_t>& ranks, TokenizerData& data) {
  HX_CHECK(ranks.size() == data.pieces.size());
  PieceIndex index;
  index.Build(data.pieces);
  std::vector<RankedMerge> merges;
  for (size_t id = 0; id < ranks.size(); ++id) {
    // Looking for its splits takes the square of its length.
    if (data.pieces[id].size() > kMaxPieceBytes)
      return Error{ErrorCode::kUnsupported,
                   fmt::format("token {}: expected at most {} bytes, found {}",
                               id, kMaxPieceBytes, data.pieces[id].size())};
    AppendSplits(data.pieces, index,
                 {ranks[id], {0, 0, static_cast<int32_t>(id)}}, merges);
    if (merges.size() > kMaxMerges)
      return Error{ErrorCode::kUnsupported,
                   fmt::format("more than {} merges", kMaxMerges)};
  }
  std::stable_sort(merges.begin(), merges.end(),
                   [](const RankedMerge& a, const RankedMerge& b) {
                     return a.rank < b.rank;
                   });
  for (const RankedMerge& merge : merges) {
    data.merges.push_back(merge.merge);
    data.merge_ranks.push_back(merge.rank);
  }
  return OkStatus();
}

}  // namespace hexllm
