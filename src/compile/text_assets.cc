#include "compile/text_assets.h"

#include <fmt/format.h>

#include <filesystem>

#include "base/mapped_file.h"
#include "base/quote.h"
#include "checkpoint/side_files.h"
#include "compile/end_tokens.h"
#include "compile/fallback_template.h"
#include "compile/generation_defaults.h"
#include "compile/tokenizer_files.h"
#include "runtime/artifact_text.h"
#include "text/chat_template_source.h"

namespace hexllm {
namespace {

// What the files beside the weights say; members are null where there is no
// such file.
struct SideFiles {
  std::optional<Json> config;
  std::optional<Json> generation;
  std::optional<Json> tokenizer_config;
  std::optional<Json> special_tokens_map;
};

Result<SideFiles> ReadSideFiles(const std::string& folder) {
  SideFiles files;
  HX_ASSIGN_OR_RETURN(files.config, ReadSideJson(folder, "config.json"));
  HX_ASSIGN_OR_RETURN(files.generation,
                      ReadSideJson(folder, "generation_config.json"));
  HX_ASSIGN_OR_RETURN(files.tokenizer_config,
                      ReadSideJson(folder, "tokenizer_config.json"));
  HX_ASSIGN_OR_RETURN(files.special_tokens_map,
                      ReadSideJson(folder, "special_tokens_map.json"));
  return files;
}

const Json* Pointer(const std::optional<Json>& json) {
  return json ? &*json : nullptr;
}

// tokenizer_config.json, or special_tokens_map.json where that says nothing.
Result<std::vector<artifact::NamedText>> HfSpecialTokens(
    const std::string& folder, const SideFiles& files) {
  for (const auto& [json, name] :
       {std::pair(&files.tokenizer_config, "tokenizer_config.json"),
        std::pair(&files.special_tokens_map, "special_tokens_map.json")}) {
    if (!*json) continue;
    auto tokens = ReadChatTokens(**json);
    if (!tokens.ok()) {
      return std::move(tokens).error().With(fmt::format("{}/{}", folder, name));
    }
    auto named = NamedTextsFrom(*tokens);
    if (!named.empty()) return named;
  }
  return std::vector<artifact::NamedText>();
}

// The template for chats without tools.
Result<std::optional<std::string>> HfTemplate(const std::string& folder,
                                              const SideFiles& files) {
  ChatTemplateFiles sources;
  sources.tokenizer_config = Pointer(files.tokenizer_config);
  HX_ASSIGN_OR_RETURN(sources.chat_template_jinja,
                      ReadSideFile(folder, "chat_template.jinja"));
  auto templates = FindChatTemplates(sources);
  if (!templates.ok()) {
    return std::move(templates).error().With(folder + "/tokenizer_config.json");
  }
  if (templates->empty()) return std::optional<std::string>();
  auto chosen = ChooseChatTemplate(*templates, "", ChatTools::kNone);
  if (!chosen.ok()) return std::move(chosen).error().With(folder);
  return std::optional<std::string>((*chosen)->source);
}

// Template and special tokens; tokenizer and generation are read separately.
Result<TextAssets> HfChat(const std::string& folder, const SideFiles& files) {
  TextAssets assets;
  HX_ASSIGN_OR_RETURN(assets.chat_template, HfTemplate(folder, files));
  HX_ASSIGN_OR_RETURN(assets.special_tokens, HfSpecialTokens(folder, files));
  return assets;
}

Result<TextAssets> HfAssets(const std::string& folder) {
  HX_ASSIGN_OR_RETURN(const SideFiles files, ReadSideFiles(folder));
  HX_ASSIGN_OR_RETURN(TextAssets assets, HfChat(folder, files));
  HX_ASSIGN_OR_RETURN(assets.tokenizer, FindTokenizer(folder));
  auto generation =
      GenerationFromHf(Pointer(files.generation), Pointer(files.config));
  if (!generation.ok())
    return std::move(generation)
        .error()
        .With(fmt::format(
            "{}/{}", folder,
            files.generation ? "generation_config.json" : "config.json"));
  assets.generation = std::move(*generation);
  return assets;
}

constexpr std::string_view kGgufModel = "tokenizer.ggml.model";
// What llama.cpp's converter writes for models without a vocabulary.
constexpr std::string_view kNoVocabulary = "none";

template <typename T>
std::optional<int64_t> AsInt64(const std::optional<T>& value) {
  return value && *value <= static_cast<uint64_t>(INT32_MAX)
             ? std::optional<int64_t>(static_cast<int64_t>(*value))
             : std::nullopt;
}

Result<std::optional<TokenizerData>> GgufTokenizerData(
    const GgufMetadata& metadata) {
  if (!metadata.Has(kGgufModel)) return std::optional<TokenizerData>();
  GgufTokenizer gguf;
  HX_ASSIGN_OR_RETURN(gguf.model, metadata.GetString(kGgufModel));
  if (gguf.model == kNoVocabulary) return std::optional<TokenizerData>();
  HX_ASSIGN_OR_RETURN(const auto pre,
                      metadata.FindString("tokenizer.ggml.pre"));
  gguf.pre = pre.value_or("");
  HX_ASSIGN_OR_RETURN(const std::vector<std::string_view> tokens,
                      metadata.GetStringArray("tokenizer.ggml.tokens"));
  HX_ASSIGN_OR_RETURN(const auto wide_types,
                      metadata.FindIntArray("tokenizer.ggml.token_type"));
  HX_ASSIGN_OR_RETURN(const auto merges,
                      metadata.FindStringArray("tokenizer.ggml.merges"));
  std::vector<int32_t> types;
  for (const int64_t type : wide_types.value_or(std::vector<int64_t>()))
    types.push_back(type >= 0 && type <= INT32_MAX ? static_cast<int32_t>(type)
                                                   : -1);
  HX_ASSIGN_OR_RETURN(const auto scores,
                      metadata.FindFloatArray("tokenizer.ggml.scores"));
  const std::vector<float> score_list = scores.value_or(std::vector<float>());
  gguf.scores = score_list;
  if (gguf.model == "gpt2" && !merges) {
    return metadata.GetStringArray("tokenizer.ggml.merges").status().error();
  }
  const std::vector<std::string_view> merge_list =
      merges.value_or(std::vector<std::string_view>());
  gguf.tokens = tokens;
  gguf.token_types = types;
  gguf.merges = merge_list;
  HX_ASSIGN_OR_RETURN(const auto bos,
                      metadata.FindUint("tokenizer.ggml.bos_token_id"));
  HX_ASSIGN_OR_RETURN(const auto eos,
                      metadata.FindUint("tokenizer.ggml.eos_token_id"));
  HX_ASSIGN_OR_RETURN(const auto unk,
                      metadata.FindUint("tokenizer.ggml.unknown_token_id"));
  gguf.bos_id = AsInt64(bos);
  gguf.eos_id = AsInt64(eos);
  gguf.unk_id = AsInt64(unk);
  HX_ASSIGN_OR_RETURN(gguf.add_bos,
                      metadata.FindBool("tokenizer.ggml.add_bos_token"));
  HX_ASSIGN_OR_RETURN(gguf.add_eos,
                      metadata.FindBool("tokenizer.ggml.add_eos_token"));
  HX_ASSIGN_OR_RETURN(gguf.add_space_prefix,
                      metadata.FindBool("tokenizer.ggml.add_space_prefix"));
  HX_ASSIGN_OR_RETURN(TokenizerData data, TokenizerDataFromGguf(gguf));
  return std::optional<TokenizerData>(std::move(data));
}

Result<std::vector<artifact::NamedText>> GgufSpecialTokens(
    const GgufMetadata& metadata) {
  constexpr std::pair<std::string_view, std::string_view> kKeys[] = {
      {"bos_token", "tokenizer.ggml.bos_token_id"},
      {"eos_token", "tokenizer.ggml.eos_token_id"},
      {"unk_token", "tokenizer.ggml.unknown_token_id"},
      {"pad_token", "tokenizer.ggml.padding_token_id"},
  };
  std::vector<artifact::NamedText> out;
  HX_ASSIGN_OR_RETURN(const auto tokens,
                      metadata.FindStringArray("tokenizer.ggml.tokens"));
  if (!tokens) return out;
  for (const auto& [name, key] : kKeys) {
    HX_ASSIGN_OR_RETURN(const auto id, metadata.FindUint(key));
    if (!id) continue;
    if (*id >= tokens->size())
      return Error{ErrorCode::kBadInput,
                   fmt::format("'{}': expected an id below {}, found {}", key,
                               tokens->size(), *id)};
    out.push_back(
        {std::string(name), std::string((*tokens)[static_cast<size_t>(*id)])});
  }
  return out;
}

Result<TextAssets> GgufAssets(const GgufMetadata& metadata) {
  TextAssets assets;
  HX_ASSIGN_OR_RETURN(assets.tokenizer, GgufTokenizerData(metadata));
  HX_ASSIGN_OR_RETURN(const auto chat_template,
                      metadata.FindString("tokenizer.chat_template"));
  if (chat_template) assets.chat_template = std::string(*chat_template);
  HX_ASSIGN_OR_RETURN(assets.special_tokens, GgufSpecialTokens(metadata));
  HX_ASSIGN_OR_RETURN(assets.generation, GenerationFromGguf(metadata));
  return assets;
}

// What the tokenizer says where the files do not.
void FillFromTokenizer(TextAssets& assets) {
  if (!assets.tokenizer) return;
  AddTokenizerEndTokens(assets);
  const auto add = [&](const char* name, int32_t id) {
    if (auto spelling = SpellingOf(*assets.tokenizer, id))
      assets.special_tokens.push_back({name, std::move(*spelling)});
  };
  if (assets.special_tokens.empty()) {
    if (assets.generation.bos_id) add("bos_token", *assets.generation.bos_id);
    if (!assets.generation.end_ids.empty())
      add("eos_token", assets.generation.end_ids.front());
  }
  if (assets.chat_template) return;
  if (const auto* fallback = FindFallbackTemplate(*assets.tokenizer))
    assets.chat_template = std::string(fallback->source);
}

bool HasFile(const std::string& folder, std::string_view name) {
  std::error_code error;
  return std::filesystem::is_regular_file(std::filesystem::path(folder) / name,
                                          error);
}

Result<TextAssets> FolderAssets(const std::string& folder,
                                const std::string& tokenizer_path) {
  HX_ASSIGN_OR_RETURN(TextAssets assets, HfAssets(folder));
  if (!tokenizer_path.empty()) {
    HX_ASSIGN_OR_RETURN(assets.tokenizer, ReadTokenizerFile(tokenizer_path));
  }
  if (!HasFile(folder, "tokenizer_config.json")) FillFromTokenizer(assets);
  return assets;
}

// `tokenizer_path` replaces the checkpoint's own tokenizer when not empty.
Result<TextAssets> AssetsOf(const Checkpoint& checkpoint,
                            const std::string& tokenizer_path) {
  if (checkpoint.format() != CheckpointFormat::kGguf)
    return FolderAssets(checkpoint.side_directory(), tokenizer_path);
  auto assets = GgufAssets(*checkpoint.gguf());
  if (!assets.ok()) return std::move(assets).error().With(checkpoint.path());
  if (!tokenizer_path.empty()) {
    HX_ASSIGN_OR_RETURN(assets->tokenizer, ReadTokenizerFile(tokenizer_path));
  }
  FillFromTokenizer(*assets);
  return assets;
}

// Embedding tables are padded to whole tiles for speed.
constexpr int64_t kPaddingMultiple = 64;

// One more than the largest id.
int64_t TokenizerSize(const TokenizerData& data) {
  auto size = static_cast<int64_t>(data.pieces.size());
  for (const AddedToken& token : data.added_tokens)
    size = std::max<int64_t>(size, int64_t{token.id} + 1);
  return size;
}

// Added tokens that the model has no row for (Gemma 3's text models share the
// tokenizer of those with images) are text like any other.
void DropTokensBeyond(int64_t vocab, TokenizerData& data) {
  std::erase_if(data.added_tokens,
                [&](const AddedToken& token) { return token.id >= vocab; });
}

// What a text gets without being asked for must have a row.
Status CheckSurroundings(const models::ModelSource& source,
                         const TokenizerData& data) {
  for (const auto* ids : {&data.prefix_ids, &data.suffix_ids}) {
    for (const int32_t id : *ids) {
      if (id < source.config.vocab) continue;
      return Error{
          ErrorCode::kBadInput,
          fmt::format("{}: tokenizer: expected ids below the "
                      "vocabulary size {} around each text, found {}",
                      source.checkpoint->path(), source.config.vocab, id)};
    }
  }
  return OkStatus();
}

Status CheckVocab(const models::ModelSource& source,
                  const TokenizerData& data) {
  const int64_t vocab = source.config.vocab;
  const int64_t size = TokenizerSize(data);
  if (size == vocab || (size < vocab && vocab % kPaddingMultiple == 0))
    return OkStatus();
  return Error{
      ErrorCode::kBadInput,
      fmt::format("{}: tokenizer: expected {} tokens, the model's vocabulary "
                  "(or fewer, padded to a multiple of {}), found {}",
                  source.checkpoint->path(), vocab, kPaddingMultiple, size)};
}

Status CheckGenerationIds(const models::ModelSource& source,
                          const artifact::GenerationDefaults& generation) {
  for (const int32_t id : generation.end_ids) {
    if (id < source.config.vocab) continue;
    return Error{
        ErrorCode::kBadInput,
        fmt::format("{}: end token: expected an id below the vocabulary size "
                    "{}, found {}",
                    source.checkpoint->path(), source.config.vocab, id)};
  }
  return OkStatus();
}

// The assets of a model folder or file, without a look at the weights where a
// folder holds none.
Result<TextAssets> AssetsAt(const std::string& path) {
  for (const char* name :
       {"tokenizer.json", "tokenizer.model", "tokenizer.bin"}) {
    if (HasFile(path, name)) return FolderAssets(path, "");
  }
  HX_ASSIGN_OR_RETURN(const Checkpoint checkpoint, Checkpoint::Open(path));
  return AssetsOf(checkpoint, "");
}

// True when `path` is a folder or a weight file, so that its tokenizer stands
// elsewhere.
Result<bool> IsModel(const std::string& path) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) return true;
  HX_ASSIGN_OR_RETURN(const MappedFile file, MappedFile::Open(path));
  return LooksLikeCheckpoint(file.bytes());
}

}  // namespace

Result<TextAssets> LoadTextAssets(const models::ModelSource& source) {
  HX_ASSIGN_OR_RETURN(TextAssets assets,
                      AssetsOf(*source.checkpoint, source.tokenizer_path));
  HX_RETURN_IF_ERROR(CheckGenerationIds(source, assets.generation));
  if (!assets.tokenizer) return assets;
  DropTokensBeyond(source.config.vocab, *assets.tokenizer);
  HX_RETURN_IF_ERROR(CheckVocab(source, *assets.tokenizer));
  HX_RETURN_IF_ERROR(CheckSurroundings(source, *assets.tokenizer));
  HX_RETURN_IF_ERROR(AddTemplateEndTokens(assets));
  return assets;
}

Result<TokenizerData> LoadTokenizer(const std::string& path) {
  HX_ASSIGN_OR_RETURN(const bool is_model, IsModel(path));
  if (!is_model) return ReadTokenizerFile(path);
  HX_ASSIGN_OR_RETURN(auto beside, FindTokenizer(path));
  if (beside) return std::move(*beside);
  HX_ASSIGN_OR_RETURN(TextAssets assets, AssetsAt(path));
  if (assets.tokenizer) return std::move(*assets.tokenizer);
  return Error{ErrorCode::kUnsupported,
               fmt::format("{}: expected a tokenizer.json, tokenizer.model, "
                           "tokenizer.bin or GGUF tokenizer, found none",
                           path)};
}

Result<TextAssets> LoadChatTemplate(const std::string& path) {
  TextAssets assets;
  if (HasFile(path, "tokenizer_config.json")) {
    // Says all; the tokenizer takes longer to read.
    HX_ASSIGN_OR_RETURN(const SideFiles files, ReadSideFiles(path));
    HX_ASSIGN_OR_RETURN(assets, HfChat(path, files));
  } else if (HasFile(path, "chat_template.jinja")) {
    HX_ASSIGN_OR_RETURN(assets, FolderAssets(path, ""));
  } else {
    HX_ASSIGN_OR_RETURN(assets, AssetsAt(path));
  }
  if (assets.chat_template) return assets;
  return Error{ErrorCode::kUnsupported,
               fmt::format("{}: expected a chat template, found none", path)};
}

}  // namespace hexllm
