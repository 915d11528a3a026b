#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "base/json.h"
#include "text/bpe_merges.h"
#include "text/tokenizer_data.h"
#include "text/tokenizer_json_reader.h"
#include "text/tokenizer_json_steps.h"

namespace hexllm {
namespace {

// The vocabulary by id. Ids may have gaps, but no two spellings one id.
Result<StringTable> VocabularyById(const RawTokenizerJson& raw) {
  std::vector<size_t> order(raw.ids.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return raw.ids[a] < raw.ids[b]; });
  StringTable pieces;
  pieces.Reserve(order.size(), raw.spellings.total_bytes());
  for (const size_t i : order) {
    const int64_t id = raw.ids[i];
    if (id < 0 || id >= kMaxVocabSize) {
      return Error{
          ErrorCode::kBadInput,
          fmt::format("model.vocab: token '{}' has id {}, expected 0..{}",
                      raw.spellings[i], id, kMaxVocabSize - 1)};
    }
    if (static_cast<size_t>(id) < pieces.size()) {
      return Error{
          ErrorCode::kBadInput,
          fmt::format("model.vocab: tokens '{}' and '{}' have the same id {}",
                      pieces[static_cast<size_t>(id)], raw.spellings[i], id)};
    }
    while (pieces.size() < static_cast<size_t>(id)) pieces.Add({});
    pieces.Add(raw.spellings[i]);
  }
  return pieces;
}

// Members of a BPE model that change its result and that hexllm does not have.
Status RefuseOtherBpeMembers(const Json& model) {
  HX_ASSIGN_OR_RETURN(const double dropout, GetNumberOr(model, "dropout", 0));
  if (dropout != 0)
    return Error{ErrorCode::kUnsupported, "model: dropout is not supported"};
  for (const std::string_view key :
       {"continuing_subword_prefix", "end_of_word_suffix"}) {
    HX_ASSIGN_OR_RETURN(const std::string affix, GetStringOr(model, key, ""));
    if (!affix.empty())
      return Error{ErrorCode::kUnsupported,
                   fmt::format("model: {} '{}' is not supported", key, affix)};
  }
  return OkStatus();
}

Status ReadBpe(const Json& model, const RawTokenizerJson& raw,
               TokenizerData& data) {
  HX_RETURN_IF_ERROR(RefuseOtherBpeMembers(model));
  HX_ASSIGN_OR_RETURN(data.fuse_unk, GetBoolOr(model, "fuse_unk", false));
  HX_ASSIGN_OR_RETURN(data.byte_fallback,
                      GetBoolOr(model, "byte_fallback", false));
  HX_ASSIGN_OR_RETURN(data.ignore_merges,
                      GetBoolOr(model, "ignore_merges", false));
  HX_ASSIGN_OR_RETURN(data.pieces, VocabularyById(raw));
  HX_ASSIGN_OR_RETURN(data.merges,
                      ResolveMerges(data.pieces, raw.merge_halves));
  HX_ASSIGN_OR_RETURN(const std::string unk,
                      GetStringOr(model, "unk_token", ""));
  if (unk.empty()) return OkStatus();
  for (size_t i = 0; i < raw.ids.size(); ++i) {
    if (raw.spellings[i] == unk) data.unk_id = static_cast<int32_t>(raw.ids[i]);
  }
  if (data.unk_id == kNoToken)
    return Error{
        ErrorCode::kBadInput,
        fmt::format("model: unk_token '{}' is not in the vocabulary", unk)};
  return OkStatus();
}

Status ReadModel(const RawTokenizerJson& raw, TokenizerData& data) {
  const Json* model = FindMember(raw.tree, "model");
  if (model == nullptr)
    return Error{ErrorCode::kBadInput,
                 "'model' is missing: expected a tokenizer.json of Hugging "
                 "Face tokenizers"};
  // Old files do not name the type of a BPE.
  HX_ASSIGN_OR_RETURN(
      const std::string type,
      GetStringOr(*model, "type", raw.merge_halves.empty() ? "" : "BPE"));
  if (type != "BPE")
    return Error{
        ErrorCode::kUnsupported,
        fmt::format("model '{}' is not supported: expected BPE", type)};
  if (raw.vocab_is_list || raw.ids.empty())
    return Error{ErrorCode::kBadInput,
                 "model.vocab: expected an object with at least one token"};
  return ReadBpe(*model, raw, data);
}

Result<AddedToken> ReadAddedToken(const Json& json) {
  AddedToken token;
  HX_ASSIGN_OR_RETURN(const int64_t id, GetInt(json, "id"));
  if (id < 0 || id >= kMaxVocabSize)
    return Error{
        ErrorCode::kBadInput,
        fmt::format("'id': expected 0..{}, found {}", kMaxVocabSize - 1, id)};
  token.id = static_cast<int32_t>(id);
  HX_ASSIGN_OR_RETURN(token.content, GetString(json, "content"));
  HX_ASSIGN_OR_RETURN(token.special, GetBoolOr(json, "special", false));
  HX_ASSIGN_OR_RETURN(token.normalized,
                      GetBoolOr(json, "normalized", !token.special));
  HX_ASSIGN_OR_RETURN(token.lstrip, GetBoolOr(json, "lstrip", false));
  HX_ASSIGN_OR_RETURN(token.rstrip, GetBoolOr(json, "rstrip", false));
  HX_ASSIGN_OR_RETURN(token.single_word, GetBoolOr(json, "single_word", false));
  return token;
}

Status ReadAddedTokens(const Json& tree, TokenizerData& data) {
  const Json* list = FindMember(tree, "added_tokens");
  if (list == nullptr) return OkStatus();
  if (!list->is_array())
    return Error{ErrorCode::kBadInput,
                 fmt::format("expected a list, found {}", JsonTypeName(*list))};
  for (size_t i = 0; i < list->size(); ++i) {
    auto token = ReadAddedToken((*list)[i]);
    if (!token.ok())
      return std::move(token).error().With(fmt::format("token {}", i));
    if (!token->content.empty())
      data.added_tokens.push_back(std::move(*token));  // empty ones never match
  }
  return OkStatus();
}

// Reads the component `key` of the file, when it has one, and puts its name
// before an error.
Status ReadComponent(const Json& tree, std::string_view key,
                     Status (*read)(const Json&, TokenizerData&),
                     TokenizerData& data) {
  const Json* component = FindMember(tree, key);
  if (component == nullptr) return OkStatus();
  Status status = read(*component, data);
  if (!status.ok()) return std::move(status).error().With(std::string(key));
  return OkStatus();
}

}  // namespace

// "truncation" and "padding" are left alone: they are for batches of training
// texts, and transformers resets them.
Result<TokenizerData> ParseTokenizerJson(std::string_view json) {
  HX_ASSIGN_OR_RETURN(const RawTokenizerJson raw, ReadTokenizerJson(json));
  TokenizerData data;
  HX_RETURN_IF_ERROR(ReadModel(raw, data));
  Status added = ReadAddedTokens(raw.tree, data);
  if (!added.ok()) return std::move(added).error().With("added_tokens");
  HX_RETURN_IF_ERROR(
      ReadComponent(raw.tree, "normalizer", ReadNormalizer, data));
  HX_RETURN_IF_ERROR(
      ReadComponent(raw.tree, "pre_tokenizer", ReadPreTokenizer, data));
  HX_RETURN_IF_ERROR(
      ReadComponent(raw.tree, "post_processor", ReadPostProcessor, data));
  HX_RETURN_IF_ERROR(ReadComponent(raw.tree, "decoder", ReadDecoder, data));
  return data;
}

}  // namespace hexllm
