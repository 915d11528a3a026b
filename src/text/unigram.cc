#include "text/unigram.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "text/utf8.h"

namespace hexllm {
namespace {

// How much less probable an unknown character is than the least probable
// piece.
constexpr double kUnknownPenalty = 10.0;

}  // namespace

Result<UnigramModel> UnigramModel::Create(TokenizerData& data) {
  const bool scored =
      data.scores.size() == data.pieces.size() && !data.scores.empty() &&
      std::all_of(data.scores.begin(), data.scores.end(),
                  [](double score) { return std::isfinite(score); });
  if (!scored)
    return Error{ErrorCode::kBadInput,
                 fmt::format("expected a finite score for each of {} pieces, "
                             "found {} scores",
                             data.pieces.size(), data.scores.size())};
  if (data.unk_id < 0 || static_cast<size_t>(data.unk_id) >= data.pieces.size())
    return Error{ErrorCode::kBadInput,
                 fmt::format("unknown token: expected an id below {}, found {}",
                             data.pieces.size(), data.unk_id)};
  UnigramModel model;
  model.pieces_ = std::move(data.pieces);
  model.scores_ = std::move(data.scores);
  model.unk_id_ = data.unk_id;
  model.byte_fallback_ = data.byte_fallback;
  model.unknown_score_ =
      *std::min_element(model.scores_.begin(), model.scores_.end()) -
      kUnknownPenalty;
  const StringTable& pieces = model.pieces_;
  for (size_t id = 0; id < pieces.size(); ++id) {
    if (pieces[id].size() > kMaxPieceBytes)
      return Error{ErrorCode::kUnsupported,
                   fmt::format("piece {}: expected at most {} bytes, found {}",
                               id, kMaxPieceBytes, pieces[id].size())};
    if (!pieces[id].empty()) model.sorted_.push_back(static_cast<int32_t>(id));
  }
  std::stable_sort(
      model.sorted_.begin(), model.sorted_.end(), [&](int32_t a, int32_t b) {
        return pieces[static_cast<size_t>(a)] < pieces[static_cast<size_t>(b)];
      });
  model.index_.Build(pieces);
  return model;
}

// Tries every piece that begins at byte `at`. The pieces with the bytes read so
// far stand together in sorted_, the shortest first.
void UnigramModel::Relax(std::string_view word, size_t at,
                         std::vector<Step>& steps) const {
  const double base = steps[at].score;
  const auto reach = [&](size_t end, int32_t id, double score) {
    Step& step = steps[end];
    if (step.id == kNoToken || base + score > step.score)
      step = {base + score, at, id};
  };
  const size_t character = DecodeUtf8(word, at).bytes;
  bool known = false;
  auto first = sorted_.begin();
  auto last = sorted_.end();
  for (size_t length = 1; at + length <= word.size() && first != last;
       ++length) {
    // Those whose byte `length - 1` is that of the word.
    const auto byte_of = [&](int32_t id) {
      const std::string_view piece = pieces_[static_cast<size_t>(id)];
      return piece.size() < length
                 ? -1
                 : static_cast<int>(static_cast<uint8_t>(piece[length - 1]));
    };
    const int wanted = static_cast<uint8_t>(word[at + length - 1]);
    first = std::partition_point(
        first, last, [&](int32_t id) { return byte_of(id) < wanted; });
    last = std::partition_point(
        first, last, [&](int32_t id) { return byte_of(id) == wanted; });
    // Of equal pieces the later one counts.
    const auto exact = std::partition_point(first, last, [&](int32_t id) {
      return pieces_[static_cast<size_t>(id)].size() == length;
    });
    if (exact == first) continue;
    const int32_t id = *(exact - 1);
    reach(at + length, id, scores_[static_cast<size_t>(id)]);
    known |= length == character;
  }
  if (!known) reach(at + character, unk_id_, unknown_score_);
}

void UnigramModel::AppendUnknown(std::string_view text,
                                 std::vector<int32_t>& out) const {
  std::vector<int32_t> bytes;
  for (const char c : text) {
    const int32_t id =
        byte_fallback_
            ? Find(fmt::format("<0x{:02X}>", static_cast<uint8_t>(c)))
            : kNoToken;
    if (id == kNoToken) {
      out.push_back(unk_id_);
      return;
    }
    bytes.push_back(id);
  }
  out.insert(out.end(), bytes.begin(), bytes.end());
}

void UnigramModel::Encode(std::string_view word,
                          std::vector<int32_t>& out) const {
  std::vector<Step> steps(word.size() + 1);
  for (size_t at = 0; at < word.size(); at += DecodeUtf8(word, at).bytes)
    Relax(word, at, steps);
  std::vector<size_t> ends;  // of the best cut, last first
  for (size_t end = word.size(); end > 0; end = steps[end].begin)
    ends.push_back(end);
  size_t unknown_begin = 0;
  size_t unknown_end = 0;
  const auto flush = [&] {
    if (unknown_end > unknown_begin)
      AppendUnknown(word.substr(unknown_begin, unknown_end - unknown_begin),
                    out);
    unknown_begin = unknown_end = 0;
  };
  for (auto end = ends.rbegin(); end != ends.rend(); ++end) {
    const Step& step = steps[*end];
    if (step.id == unk_id_) {
      if (unknown_end == 0) unknown_begin = step.begin;
      unknown_end = *end;
      continue;
    }
    flush();
    out.push_back(step.id);
  }
  flush();
}

}  // namespace hexllm
