#include <fmt/format.h>

#include <algorithm>

#include "base/json.h"
#include "base/quote.h"
#include "text/bpe_merges.h"
#include "text/tokenizer_data.h"
#include "text/tokenizer_json_steps.h"

namespace hexllm {
namespace {

// The vocabulary by id, from an object of spellings and ids. Ids may have gaps,
// but no two spellings one id.
Result<StringTable> ReadVocabulary(const Json& model) {
  const Json* vocab = FindMember(model, "vocab");
  if (vocab == nullptr || !vocab->is_object() || vocab->empty()) {
    return Error{ErrorCode::kBadInput,
                 "'vocab': expected an object with at least one token"};
  }
  struct Entry {
    int64_t id;
    std::string_view spelling;
  };
  std::vector<Entry> entries;
  entries.reserve(vocab->size());
  for (auto it = vocab->begin(); it != vocab->end(); ++it) {
    const bool is_id =
        it->is_number_integer() && *it >= 0 && *it < kMaxVocabSize;
    if (!is_id) {
      return Error{
          ErrorCode::kBadInput,
          fmt::format("'vocab': token {}: expected an id of 0..{}, found {}",
                      Quoted(it.key()), kMaxVocabSize - 1,
                      Quoted(DumpJson(*it)))};
    }
    entries.push_back({it->get<int64_t>(), it.key()});
  }
  std::sort(entries.begin(), entries.end(),
            [](const Entry& a, const Entry& b) { return a.id < b.id; });
  StringTable pieces;
  for (const auto& [id, spelling] : entries) {
    const auto index = static_cast<size_t>(id);
    if (index < pieces.size()) {
      return Error{ErrorCode::kBadInput,
                   fmt::format("'vocab': tokens {} and {} have the same id {}",
                               Quoted(pieces[index]), Quoted(spelling), id)};
    }
    if (pieces.total_bytes() + spelling.size() > kMaxVocabBytes) {
      return Error{
          ErrorCode::kUnsupported,
          fmt::format("'vocab': more than {} bytes of tokens", kMaxVocabBytes)};
    }
    while (pieces.size() < index) pieces.Add({});
    pieces.Add(spelling);
  }
  return pieces;
}

// Adds the two halves of a merge: ["left", "right"], or "left right" as files
// before tokenizers 0.20 have it.
bool AddMerge(const Json& merge, StringTable& halves) {
  if (merge.is_array()) {
    if (merge.size() != 2 || !merge[0].is_string() || !merge[1].is_string())
      return false;
    halves.Add(merge[0].get_ref<const std::string&>());
    halves.Add(merge[1].get_ref<const std::string&>());
    return true;
  }
  if (!merge.is_string()) return false;
  const std::string_view line = merge.get_ref<const std::string&>();
  const size_t space = line.find(' ');
  if (space == std::string_view::npos ||
      line.find(' ', space + 1) != std::string_view::npos)
    return false;
  halves.Add(line.substr(0, space));
  halves.Add(line.substr(space + 1));
  return true;
}

Result<std::vector<Merge>> ReadMerges(const Json& model,
                                      const StringTable& pieces) {
  const Json* merges = FindMember(model, "merges");
  if (merges == nullptr || !merges->is_array()) {
    return Error{ErrorCode::kBadInput, "'merges': expected a list"};
  }
  StringTable halves;
  for (size_t i = 0; i < merges->size(); ++i) {
    if (!AddMerge((*merges)[i], halves)) {
      return Error{ErrorCode::kBadInput,
                   fmt::format("'merges': entry {}: expected \"left right\" or "
                               "[\"left\", \"right\"], found {}",
                               i, Quoted(DumpJson((*merges)[i])))};
    }
    if (halves.total_bytes() > kMaxVocabBytes) {
      return Error{ErrorCode::kUnsupported,
                   fmt::format("'merges': more than {} bytes", kMaxVocabBytes)};
    }
  }
  return ResolveMerges(pieces, halves);
}

// Members of a BPE model that change its result and that hexllm does not have.
Status RefuseOtherBpeMembers(const Json& model) {
  HX_ASSIGN_OR_RETURN(const double dropout, GetNumberOr(model, "dropout", 0));
  if (dropout != 0)
    return Error{ErrorCode::kUnsupported, "dropout is not supported"};
  for (const std::string_view key :
       {"continuing_subword_prefix", "end_of_word_suffix"}) {
    HX_ASSIGN_OR_RETURN(const std::string affix, GetStringOr(model, key, ""));
    if (!affix.empty())
      return Error{ErrorCode::kUnsupported,
                   fmt::format("{} {} is not supported", key, Quoted(affix))};
  }
  return OkStatus();
}

Status ReadBpe(const Json& model, TokenizerData& data) {
  HX_RETURN_IF_ERROR(RefuseOtherBpeMembers(model));
  HX_ASSIGN_OR_RETURN(data.fuse_unk, GetBoolOr(model, "fuse_unk", false));
  HX_ASSIGN_OR_RETURN(data.byte_fallback,
                      GetBoolOr(model, "byte_fallback", false));
  HX_ASSIGN_OR_RETURN(data.ignore_merges,
                      GetBoolOr(model, "ignore_merges", false));
  HX_ASSIGN_OR_RETURN(data.pieces, ReadVocabulary(model));
  HX_ASSIGN_OR_RETURN(data.merges, ReadMerges(model, data.pieces));
  HX_ASSIGN_OR_RETURN(const std::string unk,
                      GetStringOr(model, "unk_token", ""));
  if (unk.empty()) return OkStatus();
  const Json* id = FindMember(model["vocab"], unk);
  if (id == nullptr)
    return Error{
        ErrorCode::kBadInput,
        fmt::format("'unk_token': {} is not in the vocabulary", Quoted(unk))};
  data.unk_id = id->get<int32_t>();
  return OkStatus();
}

// A list of [spelling, log probability], by id.
Status ReadUnigram(const Json& model, TokenizerData& data) {
  data.model = TokenizerModel::kUnigram;
  HX_ASSIGN_OR_RETURN(data.byte_fallback,
                      GetBoolOr(model, "byte_fallback", false));
  HX_ASSIGN_OR_RETURN(const int64_t unk, GetInt(model, "unk_id"));
  const Json* vocab = FindMember(model, "vocab");
  if (vocab == nullptr || !vocab->is_array() || vocab->empty() ||
      vocab->size() > static_cast<size_t>(kMaxVocabSize))
    return Error{ErrorCode::kBadInput,
                 fmt::format("'vocab': expected a list of 1 to {} tokens",
                             kMaxVocabSize)};
  for (const Json& entry : *vocab) {
    if (!entry.is_array() || entry.size() != 2 || !entry[0].is_string() ||
        !entry[1].is_number())
      return Error{
          ErrorCode::kBadInput,
          fmt::format("'vocab': entry {}: expected [token, score], found {}",
                      data.pieces.size(), Quoted(DumpJson(entry)))};
    const auto& spelling = entry[0].get_ref<const std::string&>();
    if (data.pieces.total_bytes() + spelling.size() > kMaxVocabBytes)
      return Error{
          ErrorCode::kUnsupported,
          fmt::format("'vocab': more than {} bytes of tokens", kMaxVocabBytes)};
    data.pieces.Add(spelling);
    data.scores.push_back(entry[1].get<double>());
  }
  if (unk < 0 || static_cast<size_t>(unk) >= data.pieces.size())
    return Error{ErrorCode::kBadInput,
                 fmt::format("'unk_id': expected an id below {}, found {}",
                             data.pieces.size(), unk)};
  data.unk_id = static_cast<int32_t>(unk);
  return OkStatus();
}

Status ReadModel(const Json& model, TokenizerData& data) {
  // Old files do not name the type of a BPE.
  const bool has_merges = FindMember(model, "merges") != nullptr;
  HX_ASSIGN_OR_RETURN(const std::string type,
                      GetStringOr(model, "type", has_merges ? "BPE" : ""));
  if (type == "BPE") return ReadBpe(model, data);
  if (type == "Unigram") return ReadUnigram(model, data);
  return Error{ErrorCode::kUnsupported,
               fmt::format("type {} is not supported: expected BPE or Unigram",
                           Quoted(type))};
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

Status ReadAddedTokens(const Json& list, TokenizerData& data) {
  if (!list.is_array()) {
    return Error{ErrorCode::kBadInput,
                 fmt::format("expected a list, found {}", JsonTypeName(list))};
  }
  for (size_t i = 0; i < list.size(); ++i) {
    auto token = ReadAddedToken(list[i]);
    if (!token.ok())
      return std::move(token).error().With(fmt::format("token {}", i));
    // Empty ones never match.
    if (!token->content.empty()) data.added_tokens.push_back(std::move(*token));
  }
  return OkStatus();
}

// The members of a tokenizer.json that matter, in the order in which they are
// read. "truncation" and "padding" are for batches of training texts;
// transformers resets them.
struct Member {
  std::string_view key;
  Status (*read)(const Json&, TokenizerData&);
};
constexpr Member kMembers[] = {
    {"model", ReadModel},
    {"added_tokens", ReadAddedTokens},
    {"normalizer", ReadNormalizer},
    {"pre_tokenizer", ReadPreTokenizer},
    {"post_processor", ReadPostProcessor},
    {"decoder", ReadDecoder},
};

}  // namespace

Result<TokenizerData> ParseTokenizerJson(std::string_view json) {
  HX_ASSIGN_OR_RETURN(const Json tree, ParseJson(json));
  if (FindMember(tree, "model") == nullptr) {
    return Error{ErrorCode::kBadInput,
                 "'model' is missing: expected a tokenizer.json of Hugging "
                 "Face tokenizers"};
  }
  TokenizerData data;
  for (const Member& member : kMembers) {
    const Json* value = FindMember(tree, member.key);
    if (value == nullptr) continue;
    Status status = member.read(*value, data);
    if (!status.ok())
      return std::move(status).error().With(std::string(member.key));
  }
  return data;
}

}  // namespace hexllm
