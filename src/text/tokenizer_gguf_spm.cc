#include "text/tokenizer_gguf_spm.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace hexllm {
namespace {

// Types of tokens have the same numbers in both formats.
constexpr int32_t kUnknown = 2;
constexpr int32_t kControl = 3;
constexpr int32_t kByte = 6;

// Writes fields of a protocol buffer.
class Message {
 public:
  Message& Number(uint32_t field, uint64_t value) {
    Varint(uint64_t{field} << 3);
    Varint(value);
    return *this;
  }
  Message& Float(uint32_t field, float value) {
    Varint(uint64_t{field} << 3 | 5);
    char bytes[sizeof(value)];
    std::memcpy(bytes, &value, sizeof(value));
    out_.append(bytes, sizeof(value));
    return *this;
  }
  Message& Bytes(uint32_t field, std::string_view bytes) {
    Varint(uint64_t{field} << 3 | 2);
    Varint(bytes.size());
    out_.append(bytes);
    return *this;
  }
  const std::string& text() const { return out_; }

 private:
  void Varint(uint64_t value) {
    for (; value >= 0x80; value >>= 7)
      out_.push_back(static_cast<char>(value | 0x80));
    out_.push_back(static_cast<char>(value));
  }
  std::string out_;
};

// An id that may be missing (-1).
uint64_t IdOrNone(std::optional<int64_t> id) {
  return static_cast<uint64_t>(id.value_or(-1));
}

// Field numbers: sentencepiece_model.proto.
std::string Trainer(const GgufTokenizer& gguf) {
  constexpr uint64_t kBpe = 2;
  const bool bytes = std::find(gguf.token_types.begin(), gguf.token_types.end(),
                               kByte) != gguf.token_types.end();
  return Message()
      .Number(3, kBpe)
      .Number(35, bytes ? 1 : 0)
      .Number(40, IdOrNone(gguf.unk_id))
      .Number(41, IdOrNone(gguf.bos_id))
      .Number(42, IdOrNone(gguf.eos_id))
      .Number(43, IdOrNone(std::nullopt))
      .text();
}

std::string Normalizer(const GgufTokenizer& gguf) {
  return Message()
      .Bytes(1, "identity")
      .Number(3, gguf.add_space_prefix.value_or(true) ? 1 : 0)
      .Number(4, 0)  // keeps repeated spaces
      .Number(5, 1)
      .text();
}

}  // namespace

Result<TokenizerData> SentencePieceFromGguf(const GgufTokenizer& gguf) {
  if (gguf.tokens.size() > static_cast<size_t>(kMaxVocabSize) ||
      gguf.scores.size() != gguf.tokens.size() ||
      gguf.token_types.size() != gguf.tokens.size()) {
    return Error{
        ErrorCode::kBadInput,
        fmt::format("tokenizer.ggml.scores and token_type: expected {} "
                    "entries, one a token, found {} and {}",
                    gguf.tokens.size(), gguf.scores.size(),
                    gguf.token_types.size())};
  }
  Message model;
  for (size_t id = 0; id < gguf.tokens.size(); ++id) {
    const auto type = static_cast<uint64_t>(gguf.token_types[id]);
    model.Bytes(1, Message()
                       .Bytes(1, gguf.tokens[id])
                       .Float(2, gguf.scores[id])
                       .Number(3, type)
                       .text());
  }
  model.Bytes(2, Trainer(gguf)).Bytes(3, Normalizer(gguf));
  HX_ASSIGN_OR_RETURN(TokenizerData data,
                      ParseSentencePiece(AsBytes(model.text())));
  data.prefix_ids.clear();
  // Chat templates of GGUF files write control tokens as text.
  for (size_t id = 0; id < gguf.tokens.size(); ++id) {
    if (gguf.token_types[id] != kControl && gguf.token_types[id] != kUnknown)
      continue;
    AddedToken& token = data.added_tokens.emplace_back();
    token.id = static_cast<int32_t>(id);
    token.content = gguf.tokens[id];
    token.special = true;
  }
  return data;
}

}  // namespace hexllm
