#include "models/model_source.h"

#include <fmt/format.h>

#include <filesystem>
#include <functional>

#include "base/quote.h"
#include "checkpoint/side_files.h"
#include "models/meta_config.h"

namespace hexllm::models {
namespace {

Error UnknownArchitecture(const std::string& path, std::string_view key,
                          std::string_view found) {
  std::string known;
  for (const ModelSpec* spec : AllModels()) {
    for (const std::string_view name : spec->hf_architectures)
      known += fmt::format("{}{}", known.empty() ? "" : ", ", name);
  }
  return Error{ErrorCode::kUnsupported,
               fmt::format("{}: '{}': expected an architecture that hexllm "
                           "knows ({}), found '{}'",
                           path, key, known, found)};
}

// Where "a.b" stands in `config`: a JSON pointer's way, one member a name.
// Objects on the way that are missing or null are made.
Result<Json*> FindPlace(std::string_view path, Json& config) {
  Json* place = &config;
  int depth = 0;
  for (std::string_view rest = path;;) {
    const size_t dot = rest.find('.');
    const std::string name(rest.substr(0, dot));
    if (place->is_null()) *place = Json::object();
    if (name.empty() || !place->is_object() || ++depth > kMaxJsonDepth)
      return Error{ErrorCode::kUsage,
                   fmt::format("--set {}: expected the name of a key, or names "
                               "of objects before it (a.b), found {}",
                               Quoted(path),
                               place->is_object() ? "another form"
                                                  : JsonTypeName(*place))};
    place = &(*place)[name];
    if (dot == std::string_view::npos) return place;
    rest.remove_prefix(dot + 1);
  }
}

// "KEY=VALUE": VALUE is JSON when it parses as such, else a string. "a.b=1"
// sets a member of an object.
Status ApplyOverride(const std::string& text, Json& config) {
  const size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0)
    return Error{ErrorCode::kUsage,
                 fmt::format("--set: expected KEY=VALUE, found '{}'", text)};
  const std::string value = text.substr(equals + 1);
  if (value.empty())
    return Error{ErrorCode::kUsage,
                 fmt::format("--set {}: expected a value, found an empty one; "
                             "an empty text is \"\"",
                             Quoted(text.substr(0, equals)))};
  HX_ASSIGN_OR_RETURN(Json * place, FindPlace(text.substr(0, equals), config));
  auto parsed = ParseJson(value);
  *place = parsed.ok() ? std::move(*parsed) : Json(value);
  return OkStatus();
}

using ConfigReader = std::function<Result<DecoderConfig>(const Json&)>;

// A key that `read` does not look at would change nothing: a wrong spelling,
// or one that others make void. A reader refuses an empty list in place of any
// key that it looks at.
Status CheckOverridesAreRead(const SourceOptions& options, const Json& config,
                             const ConfigReader& read) {
  for (const std::string& setting : options.overrides) {
    const std::string key = setting.substr(0, setting.find('='));
    Json spoilt = config;
    HX_ASSIGN_OR_RETURN(Json * place, FindPlace(key, spoilt));
    *place = Json::array();
    if (!read(spoilt).ok()) continue;
    return Error{ErrorCode::kUsage,
                 fmt::format("--set {}: expected a key that this model's "
                             "configuration is read from, found one that "
                             "changes nothing",
                             Quoted(key))};
  }
  return OkStatus();
}

// A configuration file that must be there. `flag` could name another.
Result<Json> ReadConfig(const std::filesystem::path& path,
                        std::string_view flag, bool is_named) {
  const std::string folder =
      path.has_parent_path() ? path.parent_path().string() : ".";
  HX_ASSIGN_OR_RETURN(auto json,
                      ReadSideJson(folder, path.filename().string()));
  if (!json) {
    return Error{is_named ? ErrorCode::kEnvironment : ErrorCode::kBadInput,
                 fmt::format("{}: expected a configuration, found no file; "
                             "name one with {}",
                             path.string(), flag)};
  }
  if (!json->is_object()) {
    return Error{ErrorCode::kBadInput,
                 fmt::format("{}: expected a JSON object, found {}",
                             path.string(), JsonTypeName(*json))};
  }
  return std::move(*json);
}

Result<Json> LoadConfig(const Checkpoint& checkpoint,
                        const SourceOptions& options) {
  const bool named = !options.config_path.empty();
  const std::filesystem::path folder = checkpoint.side_directory();
  return ReadConfig(named ? std::filesystem::path(options.config_path)
                          : folder / "config.json",
                    "--config", named);
}

// --params, else what the file itself says (llama2.c), else params.json.
Result<Json> LoadParams(const Checkpoint& checkpoint,
                        const SourceOptions& options) {
  if (!options.params_path.empty())
    return ReadConfig(options.params_path, "--params", /*is_named=*/true);
  const auto& metadata = checkpoint.files()[0].metadata;
  if (const auto args = metadata.find("model_args"); args != metadata.end())
    return ParseJson(args->second);
  return ReadConfig(
      std::filesystem::path(checkpoint.side_directory()) / "params.json",
      "--params", /*is_named=*/false);
}

Status ApplyOverrides(const SourceOptions& options, Json& config) {
  for (const std::string& setting : options.overrides)
    HX_RETURN_IF_ERROR(ApplyOverride(setting, config));
  return OkStatus();
}

// --decoder-model is for files that cannot tell: `found` is the row that this
// one names (null = none).
Status CheckNamedModel(const SourceOptions& options, const ModelSource& source,
                       const ModelSpec* found) {
  if (source.spec == nullptr || found == nullptr || found == source.spec)
    return OkStatus();
  return Error{ErrorCode::kUsage,
               fmt::format("--decoder-model {}: expected a model of the family "
                           "{}, which {} names, found one of {}",
                           options.decoder_model, found->name,
                           source.checkpoint->path(), source.spec->name)};
}

// The row for the first of config.json's "architectures" that is known; null
// when there is none.
const ModelSpec* FindHfSpec(const Json& config) {
  const Json* list = FindMember(config, "architectures");
  if (list == nullptr || !list->is_array()) return nullptr;
  for (const Json& entry : *list) {
    if (!entry.is_string()) continue;
    if (const ModelSpec* spec =
            FindByHfArchitecture(entry.get_ref<const std::string&>()))
      return spec;
  }
  return nullptr;
}

// The same where there must be one.
Result<const ModelSpec*> ChooseHfSpec(const std::string& path,
                                      const Json& config) {
  if (const ModelSpec* spec = FindHfSpec(config)) return spec;
  const Json* list = FindMember(config, "architectures");
  if (list == nullptr || !list->is_array() || list->empty()) {
    return Error{
        ErrorCode::kBadInput,
        fmt::format("{}: config.json: 'architectures': expected a list of "
                    "names, found {}",
                    path, list == nullptr ? "nothing" : JsonTypeName(*list))};
  }
  return UnknownArchitecture(path, "architectures",
                             list->front().is_string()
                                 ? list->front().get<std::string>()
                                 : DumpJson(list->front()));
}

std::string FolderName(const std::string& path) {
  std::filesystem::path folder = std::filesystem::path(path).lexically_normal();
  if (!folder.has_filename()) folder = folder.parent_path();
  return folder.filename().string();
}

Status ReadMeta(const SourceOptions& options, ModelSource& source) {
  const std::string& path = source.checkpoint->path();
  if (!options.config_path.empty()) {
    return Error{ErrorCode::kUsage,
                 fmt::format("{}: --config stands for config.json; this "
                             "checkpoint is in Meta's layout: use --params",
                             path)};
  }
  constexpr std::string_view kArchitecture = "LlamaForCausalLM";
  const ModelSpec* llama = FindByHfArchitecture(kArchitecture);
  if (source.spec == nullptr) source.spec = llama;
  if (source.spec != llama) {
    return Error{ErrorCode::kUsage,
                 fmt::format("--decoder-model {}: expected a model of Meta's "
                             "layout, as {} is, found another",
                             options.decoder_model, path)};
  }
  HX_ASSIGN_OR_RETURN(Json params, LoadParams(*source.checkpoint, options));
  HX_RETURN_IF_ERROR(ApplyOverrides(options, params));
  const ConfigReader read = [&](const Json& json) {
    return ReadMetaConfig(json, *source.checkpoint, options.decoder_model);
  };
  auto parsed = read(params);
  if (!parsed.ok())
    return std::move(parsed).error().With(fmt::format("{}: params", path));
  HX_RETURN_IF_ERROR(CheckOverridesAreRead(options, params, read));
  source.config = std::move(*parsed);
  source.naming = {.common = kMetaNames,
                   .rope_layout = RopeLayout::kInterleaved};
  source.name = FolderName(path);
  return OkStatus();
}

Status ReadHf(const SourceOptions& options, ModelSource& source) {
  const std::string& path = source.checkpoint->path();
  HX_ASSIGN_OR_RETURN(Json config, LoadConfig(*source.checkpoint, options));
  HX_RETURN_IF_ERROR(ApplyOverrides(options, config));
  HX_RETURN_IF_ERROR(CheckNamedModel(options, source, FindHfSpec(config)));
  const ModelSpec* named = source.spec;
  if (named == nullptr) {
    HX_ASSIGN_OR_RETURN(source.spec, ChooseHfSpec(path, config));
  }
  auto parsed = source.spec->from_hf(config);
  if (!parsed.ok())
    return std::move(parsed).error().With(fmt::format("{}: config.json", path));
  const ConfigReader read = [&](const Json& json) -> Result<DecoderConfig> {
    if (named == nullptr) HX_RETURN_IF_ERROR(ChooseHfSpec(path, json).status());
    return source.spec->from_hf(json);
  };
  HX_RETURN_IF_ERROR(CheckOverridesAreRead(options, config, read));
  source.config = std::move(*parsed);
  source.naming = source.spec->hf_naming;
  source.name = FolderName(path);
  return OkStatus();
}

Status ReadGguf(const SourceOptions& options, ModelSource& source) {
  const std::string& path = source.checkpoint->path();
  if (!options.config_path.empty() || !options.overrides.empty()) {
    return Error{ErrorCode::kUsage,
                 fmt::format("{}: --config and --set apply to config.json; a "
                             "GGUF file carries its own configuration",
                             path)};
  }
  const GgufMetadata& metadata = *source.checkpoint->gguf();
  auto architecture = metadata.GetString("general.architecture");
  if (!architecture.ok()) return std::move(architecture).error().With(path);
  const ModelSpec* found = FindByGgufArchitecture(*architecture);
  HX_RETURN_IF_ERROR(CheckNamedModel(options, source, found));
  if (source.spec == nullptr) source.spec = found;
  if (source.spec == nullptr)
    return UnknownArchitecture(path, "general.architecture", *architecture);
  if (source.spec->from_gguf == nullptr) {
    return Error{ErrorCode::kUnsupported,
                 fmt::format("{}: '{}' models have no form in GGUF; use the "
                             "Hugging Face folder",
                             path, source.spec->name)};
  }
  auto parsed = source.spec->from_gguf(*source.checkpoint, *architecture);
  if (!parsed.ok()) return std::move(parsed).error().With(path);
  source.config = std::move(*parsed);
  source.naming = source.spec->gguf_naming;
  auto name = metadata.FindString("general.name");
  if (!name.ok()) return std::move(name).error().With(path);
  source.name = name->has_value() ? std::string(**name)
                                  : std::filesystem::path(path).stem().string();
  return OkStatus();
}

Status ReadConfiguration(const SourceOptions& options, ModelSource& source) {
  const bool meta = IsMetaLayout(*source.checkpoint);
  if (!meta && !options.params_path.empty())
    return Error{ErrorCode::kUsage,
                 fmt::format("--params: expected a checkpoint in Meta's layout "
                             "(tok_embeddings, ...), found another in {}",
                             source.checkpoint->path())};
  if (meta) return ReadMeta(options, source);
  return source.checkpoint->format() == CheckpointFormat::kGguf
             ? ReadGguf(options, source)
             : ReadHf(options, source);
}

}  // namespace

Result<ModelSource> OpenModel(const std::string& path,
                              const SourceOptions& options) {
  ModelSource source;
  HX_ASSIGN_OR_RETURN(Checkpoint checkpoint, Checkpoint::Open(path));
  source.checkpoint = std::make_shared<const Checkpoint>(std::move(checkpoint));
  if (!options.decoder_model.empty()) {
    source.spec = FindByDecoderModel(options.decoder_model);
    if (source.spec == nullptr)
      return Error{
          ErrorCode::kUsage,
          fmt::format(
              "--decoder-model: expected the name of a known model, found '{}'",
              options.decoder_model)};
  }
  source.tokenizer_path = options.tokenizer_path;
  HX_RETURN_IF_ERROR(ReadConfiguration(options, source));
  source.config.architecture = std::string(source.spec->name);
  return source;
}

}  // namespace hexllm::models
