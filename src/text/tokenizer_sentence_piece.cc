#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/quote.h"
#include "text/bpe_merges.h"
#include "text/protobuf_reader.h"
#include "text/sentence_piece_decoder.h"
#include "text/tokenizer_data.h"
#include "text/utf8.h"

namespace hexllm {
namespace {

// Field numbers and enumerators of sentencepiece_model.proto.
constexpr uint32_t kPieces = 1;
constexpr uint32_t kTrainer = 2;
constexpr uint32_t kNormalizer = 3;
constexpr uint32_t kPieceText = 1;
constexpr uint32_t kPieceScore = 2;
constexpr uint32_t kPieceType = 3;
constexpr uint32_t kSuffixSpace = 24;
constexpr uint32_t kBosId = 41;
constexpr uint32_t kCharsMap = 2;
constexpr uint32_t kDummyPrefix = 3;
constexpr uint32_t kRemoveSpaces = 4;
constexpr uint64_t kUnknown = 2;
constexpr uint64_t kControl = 3;

constexpr std::string_view kSpaceMark = "\xE2\x96\x81";

using Wire = ProtobufField::Wire;

Error BadInput(std::string message) {
  return Error{ErrorCode::kBadInput, std::move(message)};
}

struct Settings {
  int32_t bos = 1;  // < 0: none
  bool dummy_prefix = true;
  bool remove_spaces = true;
};

Status ReadPiece(std::string_view message, TokenizerData& data) {
  const auto id = static_cast<int32_t>(data.pieces.size());
  std::string_view text;
  float score = 0;
  uint64_t type = 1;
  for (ProtobufReader in(message); !in.AtEnd();) {
    HX_ASSIGN_OR_RETURN(const ProtobufField field, in.Next());
    if (field.number == kPieceText) text = field.bytes;
    if (field.number == kPieceScore) score = field.fixed32;
    if (field.number == kPieceType) type = field.varint;
  }
  if (text.empty() || text.size() > kMaxPieceBytes || !IsValidUtf8(text) ||
      text.find('\0') != std::string_view::npos)
    return BadInput(
        fmt::format("piece {}: expected 1 to {} bytes of text, "
                    "found {}",
                    id, kMaxPieceBytes, Quoted(text)));
  if (!std::isfinite(score))
    return BadInput(
        fmt::format("piece {}: expected a finite score, found {}", id, score));
  if (id >= kMaxVocabSize ||
      data.pieces.total_bytes() + text.size() > kMaxVocabBytes)
    return Error{ErrorCode::kUnsupported, "the vocabulary is too large"};
  data.pieces.Add(text);
  if (type == kControl || type == kUnknown) data.control_ids.push_back(id);
  return OkStatus();
}

Status ReadTrainer(std::string_view message, Settings& settings) {
  for (ProtobufReader in(message); !in.AtEnd();) {
    HX_ASSIGN_OR_RETURN(const ProtobufField field, in.Next());
    if (field.number == kBosId)
      settings.bos = static_cast<int32_t>(field.varint);
    if (field.number == kSuffixSpace && field.varint != 0)
      return Error{ErrorCode::kUnsupported,
                   "expected white space before the words "
                   "(treat_whitespace_as_suffix false), found it behind them"};
  }
  return OkStatus();
}

// A unit of a double array. A value (bit 31) gives where a replacement begins;
// a node has a label, leads to a block of 256 units at its place ^ offset, and
// with a leaf to a value at that place.
// Source: darts-clone, darts.h.
struct TableUnit {
  uint32_t bits;
  bool is_value() const { return (bits >> 31) != 0; }
  uint32_t value() const { return bits & 0x7FFFFFFFu; }
  bool has_leaf() const { return (bits & (1u << 8)) != 0; }
  uint32_t offset() const { return (bits >> 10) << ((bits & (1u << 9)) >> 6); }
};

// Whether a walk through `units`, which are whole blocks, stays inside them and
// ends at one of `replacements` bytes only. The walk begins at the unit 0.
bool StaysInside(const std::vector<TableUnit>& units, size_t replacements) {
  const auto is_good_value = [&](TableUnit unit) {
    return unit.is_value() && unit.value() < replacements;
  };
  if (units[0].is_value()) return false;
  for (size_t i = 0; i < units.size(); ++i) {
    if (units[i].is_value()) {
      if (!is_good_value(units[i])) return false;
      continue;
    }
    const size_t target = i ^ units[i].offset();
    if (target >= units.size() ||
        (units[i].has_leaf() && !is_good_value(units[target])))
      return false;
  }
  return true;
}

// The table of replacements: u32 bytes of a double array, the array, then the
// replacements, each closed by a zero. The library follows it without looking
// at bounds. Source: sentencepiece src/normalizer.cc.
Status CheckCharsMap(std::string_view map) {
  if (map.empty()) return OkStatus();
  ByteReader in(AsBytes(map));
  HX_ASSIGN_OR_RETURN(const auto bytes, in.Read<uint32_t>());
  HX_ASSIGN_OR_RETURN(const ByteSpan array, in.ReadBytes(bytes));
  const std::string_view replacements =
      map.substr(sizeof(uint32_t) + array.size());
  const auto bad = BadInput("normalizer: damaged table of replacements");
  if (bytes == 0 || bytes % 1024 != 0 || replacements.empty() ||
      replacements.back() != '\0')
    return bad;
  ByteReader words(array);
  std::vector<TableUnit> units;
  units.reserve(bytes / sizeof(uint32_t));
  while (words.remaining() > 0) {
    HX_ASSIGN_OR_RETURN(const auto word, words.Read<uint32_t>());
    units.push_back({word});
  }
  return StaysInside(units, replacements.size()) ? OkStatus() : bad;
}

Status ReadNormalizer(std::string_view message, Settings& settings) {
  for (ProtobufReader in(message); !in.AtEnd();) {
    HX_ASSIGN_OR_RETURN(const ProtobufField field, in.Next());
    if (field.number == kCharsMap)
      HX_RETURN_IF_ERROR(CheckCharsMap(field.bytes));
    if (field.number == kDummyPrefix) settings.dummy_prefix = field.varint != 0;
    if (field.number == kRemoveSpaces)
      settings.remove_spaces = field.varint != 0;
  }
  return OkStatus();
}

}  // namespace

Result<TokenizerData> ParseSentencePiece(ByteSpan model) {
  TokenizerData data;
  data.model = TokenizerModel::kSentencePiece;
  if (model.size() > kMaxVocabBytes)
    return Error{ErrorCode::kUnsupported, "the model is too large"};
  data.sentence_piece = AsText(model);
  Settings settings;
  for (ProtobufReader in(data.sentence_piece); !in.AtEnd();) {
    HX_ASSIGN_OR_RETURN(const ProtobufField field, in.Next());
    // What is no message here, the library refuses.
    if (field.wire != Wire::kBytes) continue;
    if (field.number == kPieces)
      HX_RETURN_IF_ERROR(ReadPiece(field.bytes, data));
    if (field.number == kTrainer)
      HX_RETURN_IF_ERROR(ReadTrainer(field.bytes, settings));
    if (field.number == kNormalizer)
      HX_RETURN_IF_ERROR(ReadNormalizer(field.bytes, settings));
  }
  if (data.pieces.empty())
    return BadInput("expected a SentencePiece model, found no pieces");
  AppendSentencePieceDecoder(kSpaceMark,
                             settings.dummy_prefix || settings.remove_spaces
                                 ? DummyPrefix::kPresent
                                 : DummyPrefix::kAbsent,
                             data);
  if (settings.bos >= 0 &&
      static_cast<size_t>(settings.bos) < data.pieces.size())
    data.prefix_ids.push_back(settings.bos);
  return data;
}

}  // namespace hexllm
