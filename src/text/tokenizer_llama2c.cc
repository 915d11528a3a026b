#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "base/bytes.h"
#include "text/bpe_merges.h"
#include "text/sentence_piece_decoder.h"
#include "text/tokenizer_data.h"

namespace hexllm {
namespace {

// llama2.c's own file does not say: SentencePiece's usual ids.
constexpr int32_t kBos = 1;
constexpr int32_t kEos = 2;
// Numbers of ExecuTorch's header: vocabulary, BOS, EOS, longest token.
constexpr size_t kLongHeader = 16;
constexpr size_t kShortHeader = 4;  // longest token

struct Pieces {
  StringTable spellings;
  std::vector<float> scores;
};

// Pieces up to the end of the file: f32 score, u32 bytes, the bytes.
Result<Pieces> ReadPieces(ByteSpan list) {
  Pieces out;
  ByteReader in(list);
  while (in.remaining() > 0) {
    const size_t id = out.spellings.size();
    HX_ASSIGN_OR_RETURN(const float score, in.Read<float>());
    HX_ASSIGN_OR_RETURN(const auto size, in.Read<uint32_t>());
    HX_ASSIGN_OR_RETURN(const ByteSpan bytes, in.ReadBytes(size));
    if (std::isnan(score))
      return Error{ErrorCode::kBadInput,
                   fmt::format("token {}: expected a score, found NaN", id)};
    if (id >= static_cast<size_t>(kMaxVocabSize) ||
        out.spellings.total_bytes() + bytes.size() > kMaxVocabBytes)
      return Error{ErrorCode::kUnsupported, "the vocabulary is too large"};
    out.spellings.Add(AsText(bytes));
    out.scores.push_back(score);
  }
  return out;
}

// The rank of each piece: 0 for the best score, one number for equal ones.
std::vector<uint32_t> RanksOf(const std::vector<float>& scores) {
  std::vector<float> order = scores;
  std::sort(order.begin(), order.end(), std::greater<>());
  order.erase(std::unique(order.begin(), order.end()), order.end());
  std::vector<uint32_t> ranks;
  for (const float score : scores) {
    const auto at =
        std::lower_bound(order.begin(), order.end(), score, std::greater<>());
    ranks.push_back(static_cast<uint32_t>(at - order.begin()));
  }
  return ranks;
}

// What the header says, and the pieces behind it.
struct File {
  Pieces pieces;
  int32_t bos = kBos;
  int32_t eos = kEos;
};

// ExecuTorch's form: the header's vocabulary size is the number of pieces.
std::optional<File> ReadLongForm(ByteSpan bytes) {
  ByteReader in(bytes);
  const auto vocab = in.Read<int32_t>();
  const auto bos = in.Read<int32_t>();
  const auto eos = in.Read<int32_t>();
  if (!eos.ok() || bytes.size() < kLongHeader) return std::nullopt;
  auto pieces = ReadPieces(bytes.subspan(kLongHeader));
  if (!pieces.ok()) return std::nullopt;
  const auto size = static_cast<int64_t>(pieces->spellings.size());
  const auto inside = [&](int32_t id) { return id >= 0 && id < size; };
  if (*vocab != size || !inside(*bos) || !inside(*eos)) return std::nullopt;
  return File{*std::move(pieces), *bos, *eos};
}

Result<File> ReadFile(ByteSpan bytes) {
  if (auto file = ReadLongForm(bytes)) return std::move(*file);
  if (bytes.size() < kShortHeader)
    return Error{ErrorCode::kBadInput,
                 "expected a tokenizer.bin of llama2.c, found less than its "
                 "header"};
  auto pieces = ReadPieces(bytes.subspan(kShortHeader));
  if (!pieces.ok())
    return std::move(pieces).error().With(
        "expected a tokenizer.bin of llama2.c");
  if (pieces->spellings.size() <= static_cast<size_t>(kEos))
    return Error{ErrorCode::kBadInput,
                 fmt::format("expected BOS and EOS at the ids {} and {}, found "
                             "{} tokens",
                             kBos, kEos, pieces->spellings.size())};
  return File{*std::move(pieces)};
}

}  // namespace

Result<TokenizerData> ParseLlama2c(ByteSpan file) {
  HX_ASSIGN_OR_RETURN(File read, ReadFile(file));
  TokenizerData data;
  data.pieces = std::move(read.pieces.spellings);
  HX_RETURN_IF_ERROR(CheckBytePieces(data.pieces, [](uint8_t byte) {
    return fmt::format("<0x{:02X}>", byte);
  }));
  HX_RETURN_IF_ERROR(DeriveMerges(RanksOf(read.pieces.scores), data));
  data.byte_fallback = true;
  NormalizerStep& prepend = data.normalizer.emplace_back();
  prepend.kind = NormalizerKind::kPrepend;
  prepend.content = " ";
  AppendSentencePieceDecoder(" ", DummyPrefix::kPresent, data);
  data.prefix_ids = {read.bos};
  data.control_ids = {read.bos, read.eos};
  return data;
}

}  // namespace hexllm
