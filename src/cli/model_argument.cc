#include "cli/model_argument.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <map>
#include <memory>

#include "artifact/format.h"
#include "base/quote.h"

namespace hexllm::cli {

void AddSourceFlags(CLI::App& app, models::SourceOptions& source) {
  app.add_option("--config", source.config_path,
                 "Use this file in place of the checkpoint's config.json")
      ->type_name("FILE");
  app.add_option("--params", source.params_path,
                 "Use this file in place of the params.json of a checkpoint in "
                 "Meta's layout")
      ->type_name("FILE");
  app.add_option("--tokenizer-model", source.tokenizer_path,
                 "Use this tokenizer file in place of the one beside the "
                 "weights")
      ->type_name("FILE");
  app.add_option("--set", source.overrides,
                 "Override one key of config.json or params.json; VALUE is "
                 "JSON or a bare word")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false)
      ->default_str("");
  app.add_option("--decoder-model", source.decoder_model,
                 "Name the model where the files cannot")
      ->type_name("NAME");
}

void AddModelModeFlags(CLI::App& app, CompileOptions& options) {
  const std::map<std::string, ModelMode> names = {
      {"kv", ModelMode::kKv},
      {"hybrid", ModelMode::kHybrid},
      {"lookahead", ModelMode::kLookahead}};
  app.add_option("--model-mode", options.mode,
                 "kv: one token a step; hybrid: the prompt in blocks too; "
                 "lookahead: the answer, too, where guesses come true")
      ->transform(OneOf(names))
      ->type_name("kv|hybrid|lookahead")
      ->default_str("hybrid");
  LookaheadOptions& lookahead = options.lookahead;
  app.add_option("--ngram", lookahead.ngram,
                 "Lookahead: tokens of an n-gram, the most that a guess gives")
      ->type_name("N")
      ->default_str("5");
  app.add_option("--window", lookahead.window,
                 "Lookahead: columns of the lookahead branch")
      ->type_name("W")
      ->default_str("8");
  app.add_option("--gcap", lookahead.gcap,
                 "Lookahead: n-grams verified in a step")
      ->type_name("G")
      ->default_str("8");
}

void AddPrefillLogitsFlag(CLI::App& app, LogitsRows& rows) {
  const std::map<std::string, LogitsRows> names = {{"none", LogitsRows::kNone},
                                                   {"last", LogitsRows::kLast},
                                                   {"all", LogitsRows::kAll}};
  app.add_option("--prefill-logits", rows,
                 "Rows of the prefill graph that get logits")
      ->transform(OneOf(names))
      ->type_name("none|last|all")
      ->default_str("last");
}

void AddGraphFlags(CLI::App& app, CompileOptions& options) {
  using models::EmbeddingPlace;
  const std::map<std::string, EmbeddingPlace> places = {
      {"graph", EmbeddingPlace::kGraph}, {"host", EmbeddingPlace::kHost}};
  app.add_option("--embedding", options.embedding,
                 "Who looks tokens up; default: graph for the CPU, host for "
                 "the HTP")
      ->transform(OneOf(places))
      ->type_name("graph|host");
  app.add_option("--num-sharding", options.num_sharding,
                 "Parts that each step is cut into, by layers")
      ->type_name("N");
}

namespace {

// True when both paths lead to one existing file.
bool IsSameFile(const std::string& a, const std::string& b) {
  std::error_code error;
  return !a.empty() && !b.empty() && std::filesystem::equivalent(a, b, error) &&
         !error;
}

// True for the names of weights, and of what checkpoints keep beside them.
bool IsCheckpointName(const std::string& name) {
  constexpr std::string_view kBeside[] = {
      "config.json",         "generation_config.json",
      "tokenizer.json",      "tokenizer_config.json",
      "chat_template.jinja", "special_tokens_map.json",
      "params.json",         "tokenizer.model",
      "tokenizer.bin",       "model.safetensors.index.json",
      "model.safetensors",   "pytorch_model.bin.index.json",
      "pytorch_model.bin",   "vocab.json",
      "added_tokens.json",   "merges.txt"};
  constexpr std::string_view kShards[] = {"model-", "pytorch_model-",
                                          "consolidated."};
  return std::ranges::find(kBeside, name) != std::end(kBeside) ||
         std::ranges::any_of(kShards, [&](std::string_view start) {
           return name.starts_with(start);
         });
}

// True when `output` is there already, and is a file of `input`: in the folder
// that it is, or beside the file that it is with the name of a part of a
// checkpoint.
bool ReplacesFileOf(const std::string& output, const std::string& input) {
  std::error_code error;
  if (input.empty() || !std::filesystem::exists(output, error) ||
      IsArtifact(output)) {
    return false;
  }
  const auto folder_of = [](const std::filesystem::path& path) {
    return path.has_parent_path() ? path.parent_path().string() : ".";
  };
  const std::string parent = folder_of(output);
  if (std::filesystem::is_directory(input, error))
    return IsSameFile(parent, input);
  return !IsArtifact(input) && IsSameFile(parent, folder_of(input)) &&
         IsCheckpointName(std::filesystem::path(output).filename().string());
}

}  // namespace

CLI::Validator WholeNumber(uint64_t least, uint64_t most) {
  const auto check = [least, most](const std::string& text) {
    uint64_t number = 0;
    const char* const end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data(), end, number);
    const bool fits = error == std::errc() && stop == end && least <= number &&
                      number <= most;
    return fits ? std::string()
                : fmt::format("expected a whole number from {} to {}, found {}",
                              least, most, Quoted(text));
  };
  return CLI::Validator(check, "");
}

Status CheckOutput(const std::string& output, const std::string& model,
                   const std::vector<std::string>& inputs) {
  const auto replaces = [&](const std::string& input) {
    return IsSameFile(output, input) || ReplacesFileOf(output, input);
  };
  if (!replaces(model) && std::ranges::none_of(inputs, replaces))
    return OkStatus();
  return Error{ErrorCode::kUsage,
               fmt::format("{}: expected a new file or an old output, found an "
                           "input of this command; choose another name",
                           output)};
}

Status CheckOutputsDiffer(const std::string& first, const std::string& second,
                          std::string_view flag) {
  std::error_code error;
  const auto place = [&](const std::string& path) {
    return std::filesystem::weakly_canonical(
        std::filesystem::absolute(path, error), error);
  };
  if (second.empty() || place(first) != place(second)) return OkStatus();
  return Error{ErrorCode::kUsage,
               fmt::format("{}: expected another file than {}, the command's "
                           "first output",
                           flag, first)};
}

Result<std::optional<OutputFile>> OptionalOutput(
    const std::string& path, const std::string& model,
    const std::vector<std::string>& inputs) {
  if (path.empty()) return std::optional<OutputFile>();
  HX_RETURN_IF_ERROR(CheckOutput(path, model, inputs));
  HX_ASSIGN_OR_RETURN(OutputFile file, OutputFile::Create(path));
  return std::optional<OutputFile>(std::move(file));
}

namespace {

// How a checkpoint is read, and how it is compiled.
constexpr const char* kReadFlags[] = {
    "--config", "--params", "--tokenizer-model", "--set", "--decoder-model"};
constexpr const char* kCompileFlags[] = {
    "--model-mode",    "--ngram",          "--window",
    "--gcap",          "--prefill-ar-len", "--max-context-len",
    "--recipe",        "--calib-prompt",   "--calib-tokens",
    "--calib-samples", "--calib-tasks",    "--calib-limit",
    "--soc",           "--prefill-logits", "--embedding",
    "--num-sharding"};

bool IsGiven(const CLI::App& app, const char* flag) {
  const CLI::Option* option = app.get_option_no_throw(flag);
  return option != nullptr && option->count() > 0;
}

}  // namespace

Status RefuseModelFlags(const CLI::App& app, const std::string& model,
                        std::string_view allowed) {
  if (!IsArtifact(model)) return OkStatus();
  std::vector<const char*> refused(std::begin(kCompileFlags),
                                   std::end(kCompileFlags));
  if (!IsGiven(app, "--model"))
    refused.insert(refused.end(), std::begin(kReadFlags), std::end(kReadFlags));
  for (const char* name : refused) {
    if (name == allowed || !IsGiven(app, name)) continue;
    return Error{ErrorCode::kUsage,
                 fmt::format("{}: expected with a checkpoint only; {} is an "
                             "artifact, compiled already",
                             name, model)};
  }
  return OkStatus();
}

bool IsArtifact(const std::string& path) {
  std::error_code error;  // a pipe would make this wait for its writer
  if (!std::filesystem::is_regular_file(path, error)) return false;
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(
      std::fopen(path.c_str(), "rb"), &std::fclose);
  std::array<char, artifact::kMagic.size()> head{};
  return file != nullptr &&
         std::fread(head.data(), 1, head.size(), file.get()) == head.size() &&
         head == artifact::kMagic;
}

Status RefuseArtifact(const std::string& model) {
  if (!IsArtifact(model)) return OkStatus();
  return Error{ErrorCode::kUsage,
               fmt::format("{}: expected a checkpoint, found an artifact, "
                           "which is compiled already",
                           model)};
}

void AddEngineFlags(CLI::App& app, BackendOptions& flags) {
  app.add_option("-t,--threads", flags.threads,
                 "Threads of the CPU engine; 0 = one per core")
      ->check(CLI::Range(0, 1024));
  app.add_option("--qnn-lib-dir", flags.qnn_lib_dir,
                 "Folder of the QNN libraries (scripts/setup-qnn); default: "
                 "those of QNN_SDK_ROOT")
      ->type_name("DIR")
      ->default_str("");
}

void AddDeviceFlags(CLI::App& app, BackendOptions& flags) {
  const auto add = [&app](const char* name, std::string& flag, const char* text,
                          std::span<const std::string_view> values) {
    app.add_option(name, flag, text)
        ->check(CLI::IsMember(
                    std::vector<std::string>(values.begin(), values.end()))
                    .description(""))
        ->type_name("MODE");
  };
  add("--htp-performance", flags.htp_performance,
      "Clocks of a device's HTP while steps run: burst (its default there), "
      "sustained_high_performance, high_performance, balanced, low_balanced, "
      "high_power_saver, power_saver, low_power_saver, extreme_power_saver; "
      "default leaves them to the device",
      HtpPerformanceNames());
  add("--shared-buffer", flags.shared_buffer,
      "Inputs, outputs and caches in memory that a device's HTP sees, too: "
      "auto (its default), on, off",
      SharedBufferNames());
}

std::string QnnLibDir(const std::string& flag) {
  if (!flag.empty()) return flag;
  const char* sdk = std::getenv("QNN_SDK_ROOT");
  return sdk == nullptr ? "" : fmt::format("{}/lib/x86_64-linux-clang", sdk);
}

const std::string& BackendOf(const artifact::Artifact& artifact) {
  HX_CHECK(!artifact.manifest().graphs.empty());
  return artifact.manifest().graphs.front().backend;
}

Status CheckQnnLibDir(const BackendOptions& flags, std::string_view backend) {
  if (flags.qnn_lib_dir.empty() || backend == "htp") return OkStatus();
  return Error{ErrorCode::kUsage,
               fmt::format("--qnn-lib-dir: for graphs of the HTP only, these "
                           "are for {}; leave it out",
                           backend)};
}

Status CheckSelfTestFlag(const std::string& model, bool no_self_test) {
  if (!no_self_test || IsArtifact(model)) return OkStatus();
  return Error{ErrorCode::kUsage,
               fmt::format("--no-self-test: expected with an artifact, which "
                           "may be certified, found the checkpoint {}",
                           model)};
}

Status CheckCpuFlags(const BackendOptions& flags) {
  HX_RETURN_IF_ERROR(CheckQnnLibDir(flags, "cpu"));
  return CreateEngine("cpu", flags).status();
}

Result<std::unique_ptr<Engine>> CreateEngineFor(
    const artifact::Artifact& artifact, const BackendOptions& flags) {
  BackendOptions options = flags;
  options.qnn_lib_dir = QnnLibDir(flags.qnn_lib_dir);
  return CreateEngine(BackendOf(artifact), options);
}

}  // namespace hexllm::cli
