#include "compile/unused_flags.h"

#include <fmt/format.h>

#include <string_view>

#include "base/quote.h"
#include "compile/quantize.h"
#include "compile/targets.h"

namespace hexllm {
namespace {

// Of a flag that the target has a use for, or else what `recipe` may be.
Error NoUseFor(std::string_view flag, std::string_view wanted,
               std::string_view why, const CompileOptions& options,
               const quant::Recipe& recipe) {
  return Error{
      ErrorCode::kUsage,
      fmt::format("{}: expected with --target htp or a recipe {}, found {} and "
                  "{}, {}",
                  flag, wanted, options.target.name, Quoted(recipe.name), why)};
}

}  // namespace

Status CheckMaxMemory(const CompileOptions& options) {
  if (!options.target.max_memory || NeedsStaticRecipe(options.target))
    return OkStatus();
  return Error{ErrorCode::kUsage,
               fmt::format("--max-memory: expected with --target htp, found {}",
                           options.target.name)};
}

Status CheckSoc(const CompileOptions& options, const quant::Recipe& recipe) {
  if (!options.target.soc_is_named || NeedsStaticRecipe(options.target) ||
      IsStatic(recipe)) {
    return OkStatus();
  }
  return NoUseFor("--soc", "of static ranges",
                  "which is the same for all chips", options, recipe);
}

Status CheckCacheDir(const CompileOptions& options,
                     const quant::Recipe& recipe) {
  if (options.cache_dir.empty() || NeedsStaticRecipe(options.target) ||
      quant::HasStaticRanges(recipe) || quant::Smooths(recipe)) {
    return OkStatus();
  }
  return NoUseFor("--cache-dir", "that calibrates", "where nothing takes long",
                  options, recipe);
}

}  // namespace hexllm
