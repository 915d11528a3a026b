#include <fmt/format.h>

#include "base/quote.h"
#include "text/bpe_merges.h"
#include "text/gguf_pre_tokenizers.h"
#include "text/tokenizer_data.h"
#include "text/tokenizer_gguf_spm.h"

namespace hexllm {
namespace {

// tokenizer.ggml.token_type (GGUF specification, "Tokenizer").
enum class GgufTokenType : int32_t {
  kNormal = 1,
  kUnknown = 2,
  kControl = 3,
  kUserDefined = 4,
  kUnused = 5,
  kByte = 6
};

// Tokens that are looked for in the text. Normal and unused ones are pieces of
// the vocabulary and nothing more.
bool IsAdded(GgufTokenType type) {
  return type == GgufTokenType::kUnknown || type == GgufTokenType::kControl ||
         type == GgufTokenType::kUserDefined;
}

Status ReadTokens(const GgufTokenizer& gguf, TokenizerData& data) {
  if (gguf.tokens.empty() ||
      gguf.tokens.size() > static_cast<size_t>(kMaxVocabSize)) {
    return Error{
        ErrorCode::kBadInput,
        fmt::format("tokenizer.ggml.tokens: expected 1..{} tokens, found {}",
                    kMaxVocabSize, gguf.tokens.size())};
  }
  if (!gguf.token_types.empty() &&
      gguf.token_types.size() != gguf.tokens.size()) {
    return Error{ErrorCode::kBadInput,
                 fmt::format("tokenizer.ggml.token_type: expected {} entries, "
                             "one a token, found {}",
                             gguf.tokens.size(), gguf.token_types.size())};
  }
  for (size_t id = 0; id < gguf.tokens.size(); ++id) {
    const std::string_view token = gguf.tokens[id];
    if (data.pieces.total_bytes() + token.size() > kMaxVocabBytes) {
      return Error{ErrorCode::kBadInput,
                   fmt::format("tokenizer.ggml.tokens: longer than {} bytes",
                               kMaxVocabBytes)};
    }
    data.pieces.Add(token);
    if (gguf.token_types.empty() || token.empty()) continue;
    const auto type = static_cast<GgufTokenType>(gguf.token_types[id]);
    if (!IsAdded(type)) continue;
    AddedToken& added = data.added_tokens.emplace_back();
    added.id = static_cast<int32_t>(id);
    added.content = token;
    added.special = type != GgufTokenType::kUserDefined;
  }
  return OkStatus();
}

Status ReadMerges(const GgufTokenizer& gguf, TokenizerData& data) {
  StringTable halves;
  for (size_t i = 0; i < gguf.merges.size(); ++i) {
    const std::string_view line = gguf.merges[i];
    const size_t space = line.find(
        ' ', 1);  // a piece may begin with a space, but not hold one further on
    if (space == std::string_view::npos) {
      return Error{
          ErrorCode::kBadInput,
          fmt::format(
              "tokenizer.ggml.merges[{}]: expected 'left right', found {}", i,
              Quoted(line))};
    }
    if (halves.total_bytes() + line.size() > kMaxVocabBytes) {
      return Error{ErrorCode::kBadInput,
                   fmt::format("tokenizer.ggml.merges: longer than {} bytes",
                               kMaxVocabBytes)};
    }
    halves.Add(line.substr(0, space));
    halves.Add(line.substr(space + 1));
  }
  auto merges = ResolveMerges(data.pieces, halves);
  if (!merges.ok())
    return std::move(merges).error().With("tokenizer.ggml.merges");
  data.merges = std::move(*merges);
  return OkStatus();
}

// The id under `key`, which must be there and in range because `needed_for`
// says so.
Result<int32_t> RequireId(std::optional<int64_t> id, std::string_view key,
                          const GgufTokenizer& gguf) {
  if (!id)
    return Error{ErrorCode::kBadInput,
                 fmt::format("tokenizer.ggml.{} is missing, but the tokenizer "
                             "adds it to each text",
                             key)};
  if (*id < 0 || static_cast<uint64_t>(*id) >= gguf.tokens.size()) {
    return Error{ErrorCode::kBadInput,
                 fmt::format("tokenizer.ggml.{}: expected 0..{}, found {}", key,
                             gguf.tokens.size() - 1, *id)};
  }
  return static_cast<int32_t>(*id);
}

void AppendSteps(const GgufTokenizer& gguf, const GgufPatterns& family,
                 TokenizerData& data) {
  if (family.nfc) data.normalizer.emplace_back().kind = NormalizerKind::kNfc;
  if (gguf.add_space_prefix.value_or(false))
    data.pre_tokenizer.emplace_back().kind = PreTokenizerKind::kPrefixSpace;
  for (const std::string_view pattern : family.patterns) {
    if (!pattern.empty())
      data.pre_tokenizer.emplace_back().pattern = {PatternKind::kRegex,
                                                   std::string(pattern)};
  }
  data.pre_tokenizer.emplace_back().kind = PreTokenizerKind::kByteMap;
  data.decoder.emplace_back().kind = DecoderKind::kByteMap;
}

// What is put before and after each text.
Status AddSurroundings(const GgufTokenizer& gguf, bool family_adds_bos,
                       TokenizerData& data) {
  if (gguf.add_bos.value_or(family_adds_bos)) {
    HX_ASSIGN_OR_RETURN(const int32_t bos,
                        RequireId(gguf.bos_id, "bos_token_id", gguf));
    data.prefix_ids.push_back(bos);
  }
  if (gguf.add_eos.value_or(false)) {
    HX_ASSIGN_OR_RETURN(const int32_t eos,
                        RequireId(gguf.eos_id, "eos_token_id", gguf));
    data.suffix_ids.push_back(eos);
  }
  return OkStatus();
}

Result<TokenizerData> ByteLevelFromGguf(const GgufTokenizer& gguf) {
  const GgufPreTokenizer* row = FindGgufPreTokenizer(gguf.pre);
  if (row == nullptr) {
    return Error{ErrorCode::kUnsupported,
                 fmt::format("tokenizer.ggml.pre {} is not supported: use "
                             "the model's tokenizer.json instead",
                             Quoted(gguf.pre))};
  }
  TokenizerData data;
  HX_RETURN_IF_ERROR(ReadTokens(gguf, data));
  HX_RETURN_IF_ERROR(ReadMerges(gguf, data));
  data.ignore_merges = row->ignore_merges;
  AppendSteps(gguf, *row->patterns, data);
  HX_RETURN_IF_ERROR(AddSurroundings(gguf, row->add_bos, data));
  return data;
}

}  // namespace

Result<TokenizerData> TokenizerDataFromGguf(const GgufTokenizer& gguf) {
  if (gguf.model == "gpt2") return ByteLevelFromGguf(gguf);
  if (gguf.model != "llama") {
    return Error{ErrorCode::kUnsupported,
                 fmt::format("tokenizer.ggml.model {} is not supported: "
                             "expected 'gpt2' or 'llama'",
                             Quoted(gguf.model))};
  }
  HX_ASSIGN_OR_RETURN(TokenizerData data, SentencePieceFromGguf(gguf));
  HX_RETURN_IF_ERROR(AddSurroundings(gguf, /*family_adds_bos=*/true, data));
  return data;
}

}  // namespace hexllm
