// The MODEL argument that several commands take: an artifact (.hxl), or a
// checkpoint that is compiled in memory for the occasion; and the flags that
// say how to read a checkpoint.
#pragma once

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "artifact/artifact.h"
#include "backend/engines.h"
#include "base/output_file.h"
#include "base/progress.h"
#include "base/quote.h"
#include "base/status.h"
#include "compile/compiler.h"

namespace hexllm::cli {

// --config, --params, --tokenizer-model, --set, --decoder-model.
void AddSourceFlags(CLI::App& app, models::SourceOptions& source);

// Flags whose text names a value; bad values are usage errors of the parser.
// --model-mode, --ngram, --window, --gcap.
void AddModelModeFlags(CLI::App& app, CompileOptions& options);
void AddPrefillLogitsFlag(CLI::App& app, LogitsRows& rows);
// --embedding, --num-sharding.
void AddGraphFlags(CLI::App& app, CompileOptions& options);

// For numbers: a whole one in these bounds.
CLI::Validator WholeNumber(uint64_t least, uint64_t most);

// For enums: one of these names and nothing else.
template <typename Enum>
CLI::Validator OneOf(std::map<std::string, Enum> names) {
  const auto replace = [names = std::move(names)](std::string& text) {
    const auto found = names.find(text);
    if (found == names.end()) {
      std::string all;
      for (const auto& [name, value] : names)
        all += (all.empty() ? "" : ", ") + name;
      return fmt::format("expected one of {}, found {}", all, Quoted(text));
    }
    text = std::to_string(static_cast<int>(found->second));
    return std::string();
  };
  return CLI::Validator(replace, "");
}

// kUsage when `output` is `model`, one of the files that a model folder is made
// of, or one of the other files `inputs` (empty names are none): writing would
// destroy what is read.
Status CheckOutput(const std::string& output, const std::string& model,
                   const std::vector<std::string>& inputs);

// kUsage when both name one file, there or not; `flag` is what named the
// second.
Status CheckOutputsDiffer(const std::string& first, const std::string& second,
                          std::string_view flag);

// The file that a flag names for a second output, made before the work so that
// a bad path is found at once; nothing when `path` is empty.
Result<std::optional<OutputFile>> OptionalOutput(
    const std::string& path, const std::string& model,
    const std::vector<std::string>& inputs);

// kUsage when `model` is an artifact and a flag was given that says how to read
// or compile a checkpoint: an artifact is compiled already. With --model there
// is a checkpoint to read, from which fp and qdq are made. `allowed` is
// a flag that the command has another use for.
Status RefuseModelFlags(const CLI::App& app, const std::string& model,
                        std::string_view allowed = "");

// True when `path` is a file that begins like an artifact.
bool IsArtifact(const std::string& path);
// kUsage when `model` is an artifact, where only a checkpoint will do.
Status RefuseArtifact(const std::string& model);

// -t, --threads and --qnn-lib-dir.
void AddEngineFlags(CLI::App& app, BackendOptions& flags);
// --htp-performance and --shared-buffer.
void AddDeviceFlags(CLI::App& app, BackendOptions& flags);
// The folder of the QNN libraries: `flag`, else that of the SDK at
// QNN_SDK_ROOT, else "".
std::string QnnLibDir(const std::string& flag);

// The backend that the artifact's graphs are for: "cpu", "htp".
const std::string& BackendOf(const artifact::Artifact& artifact);
// kUsage for --qnn-lib-dir when `backend` is not the HTP.
Status CheckQnnLibDir(const BackendOptions& flags, std::string_view backend);

// kUsage for --no-self-test when `model` is a checkpoint.
Status CheckSelfTestFlag(const std::string& model, bool no_self_test);
// kUsage for flags that the CPU's engine has no use for; before graphs are
// compiled for it.
Status CheckCpuFlags(const BackendOptions& flags);

// The engine for the backend that the artifact's graphs are for.
Result<std::unique_ptr<Engine>> CreateEngineFor(
    const artifact::Artifact& artifact, const BackendOptions& options);

}  // namespace hexllm::cli
