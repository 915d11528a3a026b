// A subcommand of the hexllm program. Each stands in its own file cmd_<name>.cc
// and has one row in main.cc.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <memory>

#include "base/status.h"

namespace hexllm::cli {

// Adds the subcommand's flags to `app` and returns what to do when it was
// chosen. The body runs after parsing.
using Body = std::function<Status()>;
using RegisterFn = Body (*)(CLI::App& app);

struct Command {
  const char* name;
  const char* summary;
  RegisterFn add;
};

Body AddCompile(CLI::App& app);
Body AddRun(CLI::App& app);
Body AddLogits(CLI::App& app);
Body AddTokenize(CLI::App& app);
Body AddDetokenize(CLI::App& app);
Body AddTemplate(CLI::App& app);
Body AddInspect(CLI::App& app);
Body AddEval(CLI::App& app);
Body AddRecipe(CLI::App& app);
Body AddBench(CLI::App& app);
// Of `recipe`.
Body AddRecipeSearch(CLI::App& app);

}  // namespace hexllm::cli
