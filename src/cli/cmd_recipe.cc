#include <fmt/format.h>
#include <fmt/ranges.h>

#include <map>

#include "base/quote.h"
#include "cli/command.h"
#include "cli/model_argument.h"
#include "cli/output.h"
#include "compile/quantize.h"
#include "compile/rotate.h"
#include "models/decoder.h"
#include "quant/recipe.h"

namespace hexllm::cli {
namespace {

struct Flags {
  std::string recipe;
  std::string model;
  models::SourceOptions source;
};

enum class Group : uint8_t { kSchemes, kModels };

Status AppendRecipes(Group group, std::string& text) {
  for (const quant::BuiltinRecipe& builtin : quant::BuiltinRecipes()) {
    const bool scheme = quant::FindScheme(builtin.name) != nullptr;
    if (scheme != (group == Group::kSchemes)) continue;
    HX_ASSIGN_OR_RETURN(const quant::Recipe recipe,
                        quant::FindRecipe(std::string(builtin.name)));
    text += fmt::format("  {:<24} {}\n", recipe.name, recipe.description);
  }
  return OkStatus();
}

Status List() {
  std::string text = "For any model:\n";
  HX_RETURN_IF_ERROR(AppendRecipes(Group::kSchemes, text));
  text += "For one model:\n";
  HX_RETURN_IF_ERROR(AppendRecipes(Group::kModels, text));
  return Print(text);
}

Status Show(const Flags& flags) {
  HX_ASSIGN_OR_RETURN(const quant::Recipe recipe,
                      quant::FindRecipe(flags.recipe));
  return Print(quant::RecipeToJson(recipe));
}

// "180 layers 16a4w_block, 31 layers 16a8w".
std::string CountSchemes(const quant::ResolvedRecipe& resolved) {
  std::map<std::string_view, int> counts;
  for (const auto& [name, settings] : resolved.layers)
    ++counts[settings.scheme->name];
  std::vector<std::string> parts;
  for (const auto& [scheme, count] : counts) {
    parts.push_back(
        fmt::format("{} layer{} {}", count, count == 1 ? "" : "s", scheme));
  }
  return fmt::format("{}", fmt::join(parts, ", "));
}

Result<std::string> DescribeLayers(const Flags& flags,
                                   const quant::Recipe& recipe) {
  HX_RETURN_IF_ERROR(RefuseArtifact(flags.model));
  HX_ASSIGN_OR_RETURN(const models::ModelSource source,
                      models::OpenModel(flags.model, flags.source));
  HX_RETURN_IF_ERROR(CheckRotations(source.config, recipe.rotations));
  const models::GraphRequest graph;
  HX_ASSIGN_OR_RETURN(const ir::Module module,
                      models::BuildDecoder(source, {&graph, 1}));
  StderrProgress progress(StderrProgress::Verbosity::kNormal);
  HX_ASSIGN_OR_RETURN(const quant::ResolvedRecipe resolved,
                      ResolveFor(module, recipe, progress));
  progress.Finish();
  return CountSchemes(resolved);
}

Status Validate(const Flags& flags) {
  HX_ASSIGN_OR_RETURN(const quant::Recipe recipe,
                      quant::FindRecipe(flags.recipe));
  std::string text = fmt::format("{}: valid", Printable(flags.recipe));
  if (!flags.model.empty()) {
    HX_ASSIGN_OR_RETURN(const std::string layers,
                        DescribeLayers(flags, recipe));
    text += fmt::format(" for {}: {}", Printable(flags.model), layers);
  }
  return Print(text + "\n");
}

void AddRecipeArgument(CLI::App& app, Flags& flags) {
  app.add_option("recipe", flags.recipe,
                 "A built-in recipe, or a file (ends in .json or holds a '/')")
      ->required()
      ->type_name("NAME|FILE");
}

}  // namespace

Body AddRecipe(CLI::App& app) {
  auto flags = std::make_shared<Flags>();
  app.require_subcommand(1);
  const CLI::App* list = app.add_subcommand("list", "The built-in recipes");
  CLI::App* show =
      app.add_subcommand("show", "A recipe as JSON, all defaults written out");
  AddRecipeArgument(*show, *flags);
  CLI::App* validate = app.add_subcommand("validate", "Check a recipe");
  AddRecipeArgument(*validate, *flags);
  CLI::Option* model =
      validate
          ->add_option("--model", flags->model,
                       "Also apply its rules to the layers of this model")
          ->type_name("MODEL");
  AddSourceFlags(*validate, flags->source);
  for (const char* name : {"--config", "--set", "--decoder-model"})
    validate->get_option(name)->needs(model);
  app.add_subcommand("schema", "The JSON Schema of recipes");
  CLI::App* search =
      app.add_subcommand("search", "The best recipe of a model under a budget");
  const Body run_search = AddRecipeSearch(*search);
  return [flags, list, show, validate, search, run_search] {
    if (search->parsed()) return run_search();
    if (list->parsed()) return List();
    if (show->parsed()) return Show(*flags);
    if (validate->parsed()) return Validate(*flags);
    return Print(quant::RecipeSchema());
  };
}

}  // namespace hexllm::cli
