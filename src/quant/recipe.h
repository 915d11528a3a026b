// Recipes: which layers get which scheme, observers and KV width. They are data
// (JSON; docs/recipes.md) and one is built in for each scheme and each known
// model. Used by the compiler, the quantizer and `hexllm recipe`. Not where
// ranges are observed or scales computed.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/status.h"
#include "quant/rotation.h"
#include "quant/scheme.h"

namespace hexllm::quant {

// How the range of an activation is found from what calibration shows.
enum class ObserverKind : uint8_t {
  kMinMax,         // the least and greatest number seen
  kMovingAverage,  // of each batch's least and greatest, by `momentum`
  kPercentile,     // cuts (100 - `percentile`) / 2 percent off either end
  kHistogramMse,   // the range with the least squared error of rounding
};

// How the scale of a weight's channel is found.
enum class WeightObserverKind : uint8_t {
  kMinMax,  // the greatest magnitude
  kMse,     // the best of `mse_candidates` shrunk ranges by squared error
  kSeqMse,  // the best of `seq_mse_candidates` by the squared error of what the
            // layer gives on calibration's inputs
};

// How codes are chosen, given the scales.
enum class RoundingKind : uint8_t {
  kNearest,
  kGptq,  // each makes up for the rounding of those before it
};

// What shares one scale. Blocks are part of the scheme (16a4w_block).
enum class WeightGranularity : uint8_t { kPerChannel, kPerTensor };

// What the residual stream is held in: the embeddings, and their sums with what
// attention and MLPs add to them.
enum class ResidualKind : uint8_t {
  kAuto,  // kFloat16 beside 16-bit activations, where the chip has it and the
          // stream fits; else kActivations
  kActivations,  // codes like those of all other activations
  kFloat16,
};

// Factors of channels that go from activations into the weights that read them
// (compile/smooth.h). The model computes what it did.
struct Smoothing {
  enum class Kind : uint8_t {
    kNone,
    kAlpha,   // SmoothQuant's factors, by `alpha`
    kSearch,  // of each place those that leave the least error, or none
  };
  Kind kind = Kind::kNone;
  double alpha = 0;  // in (0, 1]; only for kAlpha
  bool operator==(const Smoothing&) const = default;
};

// Input channels that an LPBQ block may have, the largest first.
inline constexpr int kBlocks[] = {64, 32, 16};

// How one layer is quantized.
struct LayerSettings {
  const Scheme* scheme = nullptr;  // a row of AllSchemes(); never null in a
                                   // recipe that was parsed
  int block = 32;                  // of kBlocks; only for schemes with blocks
  WeightGranularity granularity = WeightGranularity::kPerChannel;
  WeightObserverKind weight_observer = WeightObserverKind::kMinMax;
  int mse_candidates = 50;      // 1 to 1000; only for kMse
  int seq_mse_candidates = 50;  // 1 to 1000; only for kSeqMse
  RoundingKind rounding = RoundingKind::kNearest;
  double gptq_damping = 0.01;  // in (0, 1]; only for kGptq
  ObserverKind observer = ObserverKind::kMinMax;
  double percentile = 99.99;  // in (50, 100]; only for kPercentile
  double momentum = 0.1;      // in (0, 1]; weight of the newest batch; only for
                              // kMovingAverage
  bool symmetric_activations = false;  // the zero point is the middle code
  bool operator==(const LayerSettings&) const = default;
};

// Kinds of layers: the ops that have weights and settings of their own.
inline constexpr std::string_view kLayerOps[] = {"linear"};

// Changes some settings of the layers that match one of `names` and one of
// `ops`.
struct Rule {
  // Globs over whole layer names: * any run, ? one character, [a-c] and [!a-c]
  // one of a set. Empty = all names. Not both of names and ops are empty.
  std::vector<std::string> names;
  std::vector<std::string> ops;  // of kLayerOps; empty = all ops

  // What is set replaces the setting; at least one is.
  std::optional<const Scheme*> scheme;
  std::optional<int> block;
  std::optional<WeightGranularity> granularity;
  std::optional<WeightObserverKind> weight_observer;
  std::optional<int> mse_candidates;
  std::optional<int> seq_mse_candidates;
  std::optional<RoundingKind> rounding;
  std::optional<double> gptq_damping;
  std::optional<ObserverKind> observer;
  std::optional<double> percentile;
  std::optional<double> momentum;
  std::optional<bool> symmetric_activations;
  bool operator==(const Rule&) const = default;
};

// For each setting of a layer the LAST matching rule that sets it wins, else
// the defaults hold.
struct Recipe {
  std::string name;
  std::string description;
  LayerSettings defaults;
  int kv_bits = 16;  // 16: as wide as the activations; 8: u8 right after the
                     // projections
  // A layer keeps 16-bit K where the estimated SQNR of 8-bit K is below this
  // many dB. Only for kv_bits 8.
  double kv_outlier_db = 24;
  ResidualKind residual = ResidualKind::kAuto;
  Rotations rotations;
  Smoothing smooth;  // of the rotated model
  std::vector<Rule> rules;
  bool operator==(const Recipe&) const = default;
};

// False when no layer's scheme is other than fp32: everything stays as stored.
bool Quantizes(const Recipe& recipe);

// True when it smooths channels, by what calibration shows.
bool Smooths(const Recipe& recipe);

// fp32 with the rotations of `recipe`: the float graph whose values are those
// that the recipe's graphs round.
Recipe FloatRecipe(const Recipe& recipe);

// True when its defaults or a rule have ranges that calibration observes.
bool HasStaticRanges(const Recipe& recipe);

// True for a recipe's name that FindRecipe takes for a file.
bool IsRecipeFile(std::string_view name);

// Reads and validates a recipe; `where` (a file or recipe name) begins each
// message. kBadInput for unknown keys, wrong types, values out of range,
// schemes that cannot stand together, and two rules for the same layers that
// set a field differently; kUnsupported for an unknown scheme (a near name is
// suggested).
Result<Recipe> ParseRecipe(const Json& json, std::string_view where);

// The recipe as indented JSON that ParseRecipe reads back to an equal one: all
// defaults written out, of each rule what it sets. Ends with a line break.
std::string RecipeToJson(const Recipe& recipe);

// The JSON Schema (draft 2020-12) of recipes, as text.
std::string_view RecipeSchema();

struct BuiltinRecipe {
  std::string_view name;
  std::string_view json;
};
// In order of name. Lives as long as the program.
std::span<const BuiltinRecipe> BuiltinRecipes();

// The built-in recipe of that name, or the recipe in that file (a name with a
// '/' or ending in ".json" is a file). kUsage for an unknown name,
// suggesting near ones; kEnvironment for a file that cannot be read; otherwise
// as ParseRecipe.
Result<Recipe> FindRecipe(const std::string& name_or_file);

// A layer that rules may match.
struct LayerId {
  std::string name;    // "model.layers.0.mlp.down_proj"
  std::string op;      // one of kLayerOps
  int64_t inputs = 0;  // K, its input channels; 0 = any blocks fit
};

// A recipe applied to the layers of one model.
struct ResolvedRecipe {
  Recipe recipe;
  std::map<std::string, LayerSettings> layers;  // by name of the layer
  std::vector<std::string> warnings;            // one line each

  // The settings of a layer; the recipe's defaults for one that was not among
  // those resolved. The reference lives as long as this object.
  const LayerSettings& For(const std::string& name) const;
};

// Applies the rules to `layers` (names differ). kBadInput naming a rule, or
// a pattern of one, that matches none of them, or a layer whose settings do not
// go together; kUnsupported for a layer whose blocks do not divide its inputs.
// Warns where a rule changes what an earlier rule had set.
Result<ResolvedRecipe> ResolveRecipe(const Recipe& recipe,
                                     std::span<const LayerId> layers);

struct FittedRecipe {
  Recipe recipe;
  std::vector<std::string> notes;  // what was changed, one line each
};

// A recipe that nobody wrote for this very model, as its layers can have it:
// without the patterns and rules that match none of `layers`; where blocks do
// not divide the inputs, rules at its end set the largest block that does, or
// else the scheme kWithoutBlocks. ResolveRecipe takes the result.
FittedRecipe FitRecipe(const Recipe& recipe, std::span<const LayerId> layers);

// The scheme of layers that no block divides: as the one with blocks, but a
// scale per channel and 8 bits, so that it is no less exact.
inline constexpr std::string_view kWithoutBlocks = "16a8w";

}  // namespace hexllm::quant
