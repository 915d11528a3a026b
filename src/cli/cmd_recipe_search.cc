#include <fmt/format.h>

#include <cmath>
#include <optional>

#include "base/mapped_file.h"
#include "cli/command.h"
#include "cli/model_argument.h"
#include "cli/output.h"
#include "cli/recipe_search.h"
#include "cli/stage_argument.h"
#include "text/utf8.h"

namespace hexllm::cli {
namespace {

struct Flags {
  std::string model;
  std::optional<double> budget_mb, budget_ms;
  size_t points = 6;
  std::string text;
  std::string out, svg, csv;
  CompileOptions compile;
  QuantFlags quant;
  BackendOptions engine;
  bool quiet = false;
};

// The files that are written, made before the work.
struct Outputs {
  std::optional<OutputFile> recipe, svg, csv;
};

Result<Outputs> OpenOutputs(const Flags& flags) {
  std::vector<std::string> inputs = FilesOf(flags.quant, flags.compile.source);
  inputs.push_back(flags.text);
  HX_RETURN_IF_ERROR(CheckOutputsDiffer(flags.out, flags.svg, "--svg"));
  HX_RETURN_IF_ERROR(CheckOutputsDiffer(flags.out, flags.csv, "--csv"));
  if (!flags.svg.empty())
    HX_RETURN_IF_ERROR(CheckOutputsDiffer(flags.svg, flags.csv, "--csv"));
  HX_ASSIGN_OR_RETURN(auto recipe,
                      OptionalOutput(flags.out, flags.model, inputs));
  HX_ASSIGN_OR_RETURN(auto svg, OptionalOutput(flags.svg, flags.model, inputs));
  HX_ASSIGN_OR_RETURN(auto csv, OptionalOutput(flags.csv, flags.model, inputs));
  return Outputs{std::move(recipe), std::move(svg), std::move(csv)};
}

Status WriteTo(std::optional<OutputFile>& file, const std::string& text) {
  if (!file) return OkStatus();
  HX_RETURN_IF_ERROR(file->Write(AsBytes(text)));
  return file->Commit();
}

Result<JudgedText> HeldOutText(const std::string& path) {
  if (path.empty()) return BuiltinHeldOutText();
  HX_ASSIGN_OR_RETURN(const MappedFile file, MappedFile::Open(path));
  const std::string_view text = AsText(file.bytes());
  if (Status status = CheckUtf8(text); !status.ok())
    return std::move(status).error().With(path);
  return JudgedText{path, std::string(text)};
}

// The budget in the units of SearchWish.
Status SetBudget(const Flags& flags, SearchWish& wish) {
  const bool in_time = flags.budget_ms.has_value();
  const char* const name = in_time ? "--budget-ms" : "--budget-mb";
  const auto& budget = in_time ? flags.budget_ms : flags.budget_mb;
  if (!budget || (in_time && flags.budget_mb)) {
    return Error{ErrorCode::kUsage,
                 fmt::format("recipe search: expected --budget-mb or "
                             "--budget-ms, found {}",
                             budget ? "both" : "none")};
  }
  if (!std::isfinite(*budget) || !(*budget > 0)) {
    return Error{ErrorCode::kUsage,
                 fmt::format("{}: expected a number above 0, found {:g}", name,
                             *budget)};
  }
  wish.kind =
      in_time ? quant::CostKind::kMicroseconds : quant::CostKind::kBytes;
  wish.budget = *budget * (in_time ? 1e3 : 1e6);
  return OkStatus();
}

Status CheckFlags(const CLI::App& app, const Flags& flags) {
  if (!quant::IsRecipeFile(flags.out)) {
    return Error{ErrorCode::kUsage,
                 fmt::format("--output: expected a name that ends in .json or "
                             "holds a '/', as --recipe takes files, found {}",
                             Quoted(flags.out))};
  }
  HX_RETURN_IF_ERROR(RefuseArtifact(flags.model));
  if (flags.budget_ms) return OkStatus();
  for (const char* flag : {"--max-context-len", "--qnn-lib-dir"}) {
    if (app.count(flag) == 0) continue;
    return Error{
        ErrorCode::kUsage,
        fmt::format("{}: expected with --budget-ms, found --budget-mb", flag)};
  }
  return OkStatus();
}

Status RunSearch(const CLI::App& app, const Flags& flags) {
  SearchWish wish{.model = flags.model,
                  .options = flags.compile,
                  .points = flags.points,
                  .held_out = {},
                  .scratch = TemporaryFolder()};
  HX_RETURN_IF_ERROR(SetBudget(flags, wish));
  HX_RETURN_IF_ERROR(CheckFlags(app, flags));
  HX_RETURN_IF_ERROR(ApplyQuantFlags(flags.quant, wish.options));
  SetEngine(flags.engine, wish.options);
  HX_ASSIGN_OR_RETURN(wish.held_out, HeldOutText(flags.text));
  HX_ASSIGN_OR_RETURN(Outputs outputs, OpenOutputs(flags));
  StderrProgress progress(flags.quiet ? StderrProgress::Verbosity::kQuiet
                                      : StderrProgress::Verbosity::kNormal);
  HX_ASSIGN_OR_RETURN(const SearchResult result, SearchRecipe(wish, progress));
  progress.Finish();
  HX_RETURN_IF_ERROR(PrintNow(SearchTable(result, wish)));
  HX_RETURN_IF_ERROR(WriteTo(outputs.svg, SearchSvg(result, wish.kind)));
  HX_RETURN_IF_ERROR(
      WriteTo(outputs.csv, quant::SensitivityCsv(result.layers)));
  return WriteTo(outputs.recipe,
                 quant::RecipeToJson(result.points[result.best].recipe));
}

void AddOutputFlags(CLI::App& app, Flags& flags) {
  app.add_option("-o,--output", flags.out, "The recipe to write")
      ->required()
      ->type_name("FILE.json");
  app.add_option("--svg", flags.svg,
                 "Draw the front, and the SQNR of each layer in the recipe")
      ->type_name("FILE");
  app.add_option("--csv", flags.csv,
                 "Write the sensitivity of each layer in the recipe that the "
                 "search begins with")
      ->type_name("FILE");
}

}  // namespace

Body AddRecipeSearch(CLI::App& app) {
  auto flags = std::make_shared<Flags>();
  app.add_option("model", flags->model, "A model as for compile")
      ->required()
      ->type_name("MODEL");
  app.add_option("--budget-mb", flags->budget_mb,
                 "Most bytes of weights, in 10^6, that the artifact for the "
                 "HTP may have")
      ->type_name("N");
  app.add_option("--budget-ms", flags->budget_ms,
                 "Most milliseconds that the QNN compiler's cost model may "
                 "give a step of one token on --soc; nothing is measured on a "
                 "device")
      ->type_name("X");
  app.add_option("--max-context-len", flags->compile.max_context_len,
                 "Context of that step")
      ->type_name("N");
  AddOutputFlags(app, *flags);
  app.add_option("--points", flags->points,
                 "Points of the Pareto front to find and measure beside the "
                 "budget's")
      ->check(WholeNumber(2, 100))
      ->type_name("N");
  app.add_option("--text", flags->text,
                 "Judge recipes on the beginning of this text; default: a "
                 "built-in one that calibration does not read")
      ->type_name("FILE");
  AddSocFlag(app, flags->compile.target);
  AddRecipeFlags(app, flags->quant);
  AddDataDirFlag(app, flags->quant.calibration.data_dir);
  app.add_option("--cache-dir", flags->compile.cache_dir,
                 "Keep calibrations in this folder, and take them from it")
      ->type_name("DIR");
  AddSourceFlags(app, flags->compile.source);
  AddEngineFlags(app, flags->engine);
  app.add_flag("-q,--quiet", flags->quiet, "No progress");
  return [flags, &app]() { return RunSearch(app, *flags); };
}

}  // namespace hexllm::cli
