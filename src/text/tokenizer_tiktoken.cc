#include <fmt/format.h>

#include <charconv>

#include "base/quote.h"
#include "text/bpe_merges.h"
#include "text/byte_level.h"
#include "text/gguf_pre_tokenizers.h"
#include "text/tokenizer_data.h"

namespace hexllm {
namespace {

// The special tokens of Llama 3.1 to 3.3, whose ids follow those of the file;
// "<|reserved_special_token_2|>" and so on fill them up to kSpecialTokens.
// Llama 3's stand at the same ids, with some under reserved names.
// Source: meta-llama/llama-models, models/llama3/tokenizer.py.
constexpr std::string_view kNamedSpecials[] = {
    "<|begin_of_text|>",
    "<|end_of_text|>",
    "<|reserved_special_token_0|>",
    "<|reserved_special_token_1|>",
    "<|finetune_right_pad_id|>",
    "<|step_id|>",
    "<|start_header_id|>",
    "<|end_header_id|>",
    "<|eom_id|>",
    "<|eot_id|>",
    "<|python_tag|>",
};
constexpr size_t kSpecialTokens = 256;

// The six bits of a base64 character; -1 for another.
int Base64Bits(char c) {
  if (c >= 'A' && c <= 'Z') return c - 'A';
  if (c >= 'a' && c <= 'z') return c - 'a' + 26;
  if (c >= '0' && c <= '9') return c - '0' + 52;
  if (c == '+') return 62;
  return c == '/' ? 63 : -1;
}

// The bytes of padded base64 text; nothing when it is none.
std::optional<std::string> DecodeBase64(std::string_view text) {
  if (text.size() % 4 != 0) return std::nullopt;
  const size_t padding = text.ends_with("==") ? 2 : text.ends_with("=") ? 1 : 0;
  text.remove_suffix(padding);
  std::string bytes;
  uint32_t bits = 0;
  int count = 0;
  for (const char c : text) {
    const int six = Base64Bits(c);
    if (six < 0) return std::nullopt;
    bits = bits << 6 | static_cast<uint32_t>(six);
    count += 6;
    if (count < 8) continue;
    count -= 8;
    bytes.push_back(static_cast<char>(bits >> count));
  }
  return bytes;
}

// One line: its token goes to `data`, whose ids are the ranks.
Status ReadLine(std::string_view line, TokenizerData& data) {
  const size_t space = line.find(' ');
  const auto bytes = DecodeBase64(line.substr(0, space));
  const std::string_view rank =
      space == std::string_view::npos ? "" : line.substr(space + 1);
  size_t value = 0;
  const char* const end = rank.data() + rank.size();
  const auto [stop, error] = std::from_chars(rank.data(), end, value);
  const bool fits = bytes && !bytes->empty() && !rank.empty() &&
                    error == std::errc() && stop == end;
  if (!fits || value != data.pieces.size())
    return Error{
        ErrorCode::kBadInput,
        fmt::format("expected a base64 token, a blank and the rank {}, "
                    "found {}",
                    data.pieces.size(), Quoted(line))};
  std::string piece;
  AppendByteLevel(*bytes, piece);
  if (data.pieces.size() >=
          static_cast<size_t>(kMaxVocabSize) - kSpecialTokens ||
      data.pieces.total_bytes() + piece.size() > kMaxVocabBytes)
    return Error{ErrorCode::kUnsupported, "the vocabulary is too large"};
  data.pieces.Add(piece);
  return OkStatus();
}

void AddSpecials(TokenizerData& data) {
  const size_t first = data.pieces.size();
  for (size_t i = 0; i < kSpecialTokens; ++i) {
    AddedToken& token = data.added_tokens.emplace_back();
    token.id = static_cast<int32_t>(first + i);
    token.special = true;
    constexpr size_t kNamed = std::size(kNamedSpecials);
    token.content = i < kNamed ? std::string(kNamedSpecials[i])
                               : fmt::format("<|reserved_special_token_{}|>",
                                             i - kNamed + 2);
  }
  data.prefix_ids.push_back(static_cast<int32_t>(first));
}

}  // namespace

Result<TokenizerData> ParseTiktoken(std::string_view text) {
  TokenizerData data;
  size_t number = 1;
  for (size_t at = 0; at < text.size(); ++number) {
    const size_t end = std::min(text.find('\n', at), text.size());
    Status status = ReadLine(text.substr(at, end - at), data);
    if (!status.ok())
      return std::move(status).error().With(fmt::format("line {}", number));
    at = end + 1;
  }
  if (data.pieces.empty())
    return Error{ErrorCode::kBadInput,
                 "expected a tiktoken file of one token a line, found none"};
  HX_RETURN_IF_ERROR(CheckBytePieces(data.pieces, [](uint8_t byte) {
    std::string spelling;
    const char c = static_cast<char>(byte);
    AppendByteLevel({&c, 1}, spelling);
    return spelling;
  }));
  std::vector<uint32_t> ranks(data.pieces.size());
  for (size_t id = 0; id < ranks.size(); ++id)
    ranks[id] = static_cast<uint32_t>(id);
  HX_RETURN_IF_ERROR(DeriveMerges(ranks, data));
  data.ignore_merges = true;
  for (const std::string_view pattern :
       FindGgufPreTokenizer("llama-bpe")->patterns->patterns) {
    if (!pattern.empty())
      data.pre_tokenizer.emplace_back().pattern = {PatternKind::kRegex,
                                                   std::string(pattern)};
  }
  data.pre_tokenizer.emplace_back().kind = PreTokenizerKind::kByteMap;
  data.decoder.emplace_back().kind = DecoderKind::kByteMap;
  AddSpecials(data);
  return data;
}

}  // namespace hexllm
