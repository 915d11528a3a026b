#include "cli/search_base.h"

#include <fmt/format.h>

#include <utility>

#include "base/quote.h"

namespace hexllm::cli {
namespace {

// What has a say in the weights, and nothing else.
CompileOptions Relevant(const CompileOptions& options) {
  CompileOptions relevant;
  relevant.source = options.source;
  relevant.target.soc = options.target.soc;
  relevant.stage = Stage::kQdq;
  relevant.recipe = options.recipe;
  relevant.recipe_json = options.recipe_json;
  // As the HTP has it.
  relevant.embedding =
      options.embedding.value_or(models::EmbeddingPlace::kHost);
  relevant.mode = ModelMode::kKv;
  return relevant;
}

}  // namespace

Result<SearchBase> FindSearchBase(const std::string& model,
                                  const CompileOptions& options,
                                  std::string_view flag,
                                  ProgressSink& progress) {
  HX_ASSIGN_OR_RETURN(
      HtpGraphs graphs,
      BuildWithStandIns(model, Relevant(options), {}, progress));
  quant::Recipe& recipe = graphs.recipe;
  if (recipe.defaults.scheme->activations != quant::ActivationKind::kStatic) {
    return Error{ErrorCode::kUsage,
                 fmt::format("{}: expected a recipe whose activations have "
                             "static ranges, such as 16a4w_block, found {}; "
                             "name one with --recipe",
                             flag, Quoted(recipe.name))};
  }
  return SearchBase{.recipe = std::move(recipe),
                    .weight_bytes = graphs.manifest.weight_bytes,
                    .model_name = graphs.manifest.model_name};
}

Result<uint64_t> WeightBytesWith(const std::string& model,
                                 const CompileOptions& options,
                                 const quant::Recipe& recipe) {
  CompileOptions with = Relevant(options);
  with.recipe.clear();
  with.recipe_json = quant::RecipeToJson(recipe);
  NullProgress quiet;  // it would say again what the base said
  HX_ASSIGN_OR_RETURN(const HtpGraphs graphs,
                      BuildWithStandIns(model, with, {}, quiet));
  return graphs.manifest.weight_bytes;
}

}  // namespace hexllm::cli
