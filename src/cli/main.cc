// The hexllm program: parses the command line, runs one command, prints its
// error, returns its exit status.
#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <exception>
#include <new>
#include <optional>
#include <span>
#include <sstream>
#include <string>
#include <string_view>

#include "cli/command.h"
#include "cli/output.h"
#include "compile/artifact_parts.h"

namespace hexllm::cli {
namespace {

constexpr Command kCommands[] = {
    {"compile", "Compile a model into one artifact file (.hxl)", AddCompile},
    {"run", "Answer a prompt with an artifact or a model", AddRun},
    {"logits", "Write the logits of every position of given token ids",
     AddLogits},
    {"eval", "Measure perplexity, accuracy and what quantization costs",
     AddEval},
    {"bench", "Estimate how long a model takes on a phone", AddBench},
    {"tokenize", "Text to token ids", AddTokenize},
    {"detokenize", "Token ids to text", AddDetokenize},
    {"template", "Render a chat with a model's chat template", AddTemplate},
    {"inspect", "Describe a checkpoint or an artifact", AddInspect},
    {"recipe", "List, show and check quantization recipes", AddRecipe},
};

// An empty value means something here alone: go on with the answer; a text of
// nothing.
constexpr std::string_view kMayBeEmpty[] = {"run --prompt", "tokenize input"};

// An option that gets an empty value (--cache-dir "$UNSET") would silently mean
// its default.
void RefuseEmptyValues(CLI::App& app) {
  const CLI::Validator not_empty(
      [](const std::string& text) {
        return std::string(text.empty() ? "expected a value, found an empty one"
                                        : "");
      },
      "");
  for (CLI::Option* option : app.get_options()) {
    const std::string name =
        fmt::format("{} {}", app.get_name(), option->get_name());
    if (std::ranges::find(kMayBeEmpty, name) == std::end(kMayBeEmpty))
      option->transform(not_empty);  // before all other checks
  }
  for (CLI::App* sub : app.get_subcommands({})) RefuseEmptyValues(*sub);
}

// "--flag=" would take the next word for its value.
Status RefuseEmptyAfterEquals(std::span<char*> words) {
  for (const std::string_view word : words) {
    if (!word.starts_with('-') || !word.ends_with('=')) continue;
    return Error{ErrorCode::kUsage,
                 fmt::format("{}: expected a value, found an empty one; see "
                             "hexllm --help",
                             word.substr(0, word.size() - 1))};
  }
  return OkStatus();
}

bool HasEmptyElement(std::string_view list, char delimiter) {
  const char two[] = {delimiter, delimiter};
  return list.starts_with(delimiter) || list.ends_with(delimiter) ||
         list.find(std::string_view(two, 2)) != std::string_view::npos;
}

// "--stages fp,": the parser would drop what is empty.
Status RefuseEmptyElements(const CLI::App& app, std::span<char*> words) {
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_delimiter() == '\0') continue;
    const std::string name = option->get_name();
    for (size_t i = 0; i < words.size(); ++i) {
      std::string_view list = words[i];
      if (list.starts_with(name + "=")) {
        list.remove_prefix(name.size() + 1);
      } else if (list == name && i + 1 < words.size()) {
        list = words[i + 1];
      } else {
        continue;
      }
      if (!HasEmptyElement(list, option->get_delimiter())) continue;
      return Error{ErrorCode::kUsage,
                   fmt::format("{}: expected a value between commas, found an "
                               "empty one in '{}'",
                               name, list)};
    }
  }
  return OkStatus();
}

// A standard stream that is closed shall stay so: the first file that is opened
// would take its number, and what is printed. Of /dev/null opened for reading,
// every write fails.
void KeepStandardStreams() {
  for (int stream = 0; stream <= 2; ++stream) {
    if (fcntl(stream, F_GETFD) == -1)
      static_cast<void>(open("/dev/null", O_RDONLY));
  }
}

constexpr int kExitUsage = static_cast<int>(ErrorCode::kUsage);
constexpr int kExitBug = 70;

int Finish(const Status& status) {
  if (!status.ok()) {
    PrintError(status.error().message);
    return static_cast<int>(status.error().code);
  }
  if (const Status flushed = FlushOutput(); !flushed.ok()) {
    PrintError(flushed.error().message);
    return static_cast<int>(flushed.error().code);
  }
  return 0;
}

int Main(int argc, char** argv) {
  CLI::App app("hexllm: compile language models ahead of time, and run them");
  app.set_version_flag("--version", ProducerName());
  app.require_subcommand(1);
  app.option_defaults()->always_capture_default();
  std::vector<std::pair<CLI::App*, Body>> bodies;
  for (const Command& command : kCommands) {
    CLI::App* sub = app.add_subcommand(command.name, command.summary);
    bodies.emplace_back(sub, command.add(*sub));
    RefuseEmptyValues(*sub);
  }
  const Status words =
      RefuseEmptyAfterEquals(std::span(argv, static_cast<size_t>(argc)));
  if (!words.ok()) return Finish(words);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& done) {
    std::ostringstream text;  // of --help, --version
    static_cast<void>(app.exit(done, text));
    return Finish(Print(text.str()));
  } catch (const CLI::ParseError& error) {
    PrintError(fmt::format("{}; see hexllm --help", error.what()));
    return kExitUsage;
  }
  for (const auto& [sub, body] : bodies) {
    if (!sub->parsed()) continue;
    const Status lists =
        RefuseEmptyElements(*sub, std::span(argv, static_cast<size_t>(argc)));
    return Finish(lists.ok() ? body() : lists);
  }
  return kExitUsage;
}

}  // namespace
}  // namespace hexllm::cli

int main(int argc, char** argv) {
  hexllm::cli::KeepStandardStreams();
  // A file size limit shall be an error of the write, not the end of the
  // process.
  std::signal(SIGXFSZ, SIG_IGN);
  // So shall a reader of the output that goes away.
  std::signal(SIGPIPE, SIG_IGN);
  try {
    return hexllm::cli::Main(argc, argv);
  } catch (const std::bad_alloc&) {
    hexllm::cli::PrintError("out of memory");
    return static_cast<int>(hexllm::ErrorCode::kEnvironment);
  } catch (const std::exception& error) {
    hexllm::cli::PrintError(
        fmt::format("internal error: {} (please report this)", error.what()));
    return hexllm::cli::kExitBug;
  }
}
