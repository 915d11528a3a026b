// Rules of AssignEncodings that a Llama decoder does not show: biases, dynamic
// schemes, constants that are shared. On graphs written by hand.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include "ir/encode.h"
#include "ir/text.h"
#include "ir/verify.h"
#include "quant/assign.h"
#include "quant/attrs_json.h"
#include "quant/decoder_testing.h"
#include "quant/vectors_testing.h"

namespace hexllm::quant {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

ir::Module Parsed(const std::string& text) {
  auto module = ir::Parse(text);
  if (!module.ok()) {
    ADD_FAILURE() << module.error().message;
    return {};
  }
  return std::move(*module);
}

std::vector<std::string> Assigned(ir::Module& module,
                                  const ResolvedRecipe& recipe,
                                  const Ranges& ranges = {}) {
  auto warnings =
      AssignEncodings(module, {.recipe = &recipe, .ranges = &ranges});
  if (!warnings.ok()) {
    ADD_FAILURE() << warnings.error().message;
    return {};
  }
  const Status valid = ir::Verify(module);
  EXPECT_TRUE(valid.ok()) << valid.error().message;
  return std::move(*warnings);
}

const ir::Constant& InputConstant(const ir::Module& module, size_t node,
                                  size_t input) {
  const ir::Graph& graph = module.graphs[0];
  return module.constants[graph[graph.nodes[node].inputs[input]].constant];
}

constexpr const char* kBiases = R"(
const @w0 "a.weight" : f32[4,8]
const @w1 "shared.bias" : f32[4]
const @w2 "b.weight" : f32[4,8]
graph kv kind=kv T=1 C=1 {
  in %0 hidden_in : f32[1,8]
  %1 = linear(%0, @w0, @w1) "a" : f32[1,4]
  %2 = linear(%0, @w2, @w1) "b" : f32[1,4]
  %3 = mul(%1, %2) "c" : f32[1,4]
  out %3 hidden_out
}
)";

Ranges BiasRanges() {
  return {{"hidden_in", {{-1, 1}}},
          {"a", {{-2, 2}}},
          {"b", {{-3, 3}}},
          {"c", {{-6, 6}}}};
}

// Two linears with one bias: their accumulators have other scales.
TEST(AssignBias, HasTheScalesOfItsAccumulator) {
  ir::Module module = Parsed(kBiases);
  Assigned(module, RecipeOf("16a8w"), BiasRanges());
  const float x_scale = ActivationEncoding({-1, 1}, 16, false).scales[0];
  for (const size_t node : {size_t{0}, size_t{1}}) {
    const ir::Encoding& weight = *InputConstant(module, node, 1).encoding;
    const ir::Constant& bias = InputConstant(module, node, 2);
    EXPECT_EQ(bias.encoding->dtype, DType::kI32);
    EXPECT_EQ(bias.encoding->axis, 0);
    ASSERT_EQ(bias.encoding->scales.size(), 4u);
    for (size_t n = 0; n < 4; ++n) {
      EXPECT_EQ(bias.encoding->scales[n],
                static_cast<float>(static_cast<double>(x_scale) *
                                   static_cast<double>(weight.scales[n])));
    }
  }
  EXPECT_EQ(InputConstant(module, 0, 2).name, "shared.bias");
  EXPECT_EQ(InputConstant(module, 1, 2).name, "b.bias");
  EXPECT_EQ(InputConstant(module, 0, 2).bytes.data(),
            InputConstant(module, 1, 2).bytes.data());
}

TEST(AssignBias, OfATensorHasOneScale) {
  ir::Module module = Parsed(kBiases);
  Assigned(module, RecipeOf("16a16w"), BiasRanges());
  EXPECT_EQ(InputConstant(module, 0, 2).encoding->axis, -1);
  EXPECT_EQ(InputConstant(module, 0, 2).encoding->scales.size(), 1u);
}

TEST(AssignBias, InHalfPrecision) {
  ir::Module module = Parsed(kBiases);
  Assigned(module, RecipeOf("fp16"));
  EXPECT_EQ(InputConstant(module, 0, 2).encoding->dtype, DType::kF16);
  // Both want the same: it stays shared.
  EXPECT_EQ(InputConstant(module, 1, 2).name, "shared.bias");
}

// kBiases with constants of our own; `scale` is of the weights.
ir::Module WithLargeBias(float scale, const std::vector<float>& bias) {
  ir::Module module = Parsed(kBiases);
  std::vector<float> weights(4 * 8, scale);
  std::fill(weights.begin(), weights.begin() + 8, 0.0f);
  ir::ConstantStore constants;
  for (size_t i = 0; i < module.constants.size(); ++i) {
    const ir::Constant& old = module.constants[{static_cast<int32_t>(i)}];
    ir::Constant constant =
        Owned(old.type.shape, old.type.shape.size() == 1 ? bias : weights);
    constant.name = old.name;
    constants.Add(std::move(constant));
  }
  module.constants = std::move(constants);
  return module;
}

// Small weights, and one row of zeros, beside a bias that is anything but.
TEST(AssignBias, IsNotClampedByFineSteps) {
  const std::vector<float> bias = {1.5f, -40.0f, 0.0f, 1e-6f};
  for (const char* scheme : {"16a8w", "16a4w", "16a4w_block", "16a16w"}) {
    ResolvedRecipe recipe = RecipeOf(scheme);
    recipe.recipe.defaults.block = 4;
    ir::Module module = WithLargeBias(1e-5f, bias);
    Assigned(module, recipe, BiasRanges());
    const ir::Encoding& encoding = *InputConstant(module, 0, 2).encoding;
    for (size_t n = 0; n < bias.size(); ++n) {
      const float step = encoding.scales[encoding.axis < 0 ? 0 : n];
      const int32_t code = ir::EncodeBias(bias[n], static_cast<double>(step));
      EXPECT_NEAR(static_cast<double>(code) * static_cast<double>(step),
                  static_cast<double>(bias[n]), 1e-6)
          << scheme << " " << n;
    }
  }
}

TEST(AssignBias, CoarserWeightsAreWarnedOf) {
  ir::Module module = WithLargeBias(1e-5f, {1.5f, -40.0f, 0.0f, 1e-6f});
  const auto warnings = Assigned(module, RecipeOf("16a8w"), BiasRanges());
  EXPECT_THAT(warnings, ::testing::Contains(AllOf(
                            HasSubstr("layer 'a': 1 of the 4 scales of tensor "
                                      "'a.weight'"),
                            HasSubstr("so that the bias fits"))));
}

TEST(AssignBias, FittingOnesLeaveScalesAsTheyAre) {
  ir::Module module = WithLargeBias(0.5f, {1.5f, -40.0f, 0.0f, 1e-6f});
  Assigned(module, RecipeOf("16a8w"), BiasRanges());
  const ir::Encoding& weight = *InputConstant(module, 0, 1).encoding;
  EXPECT_EQ(weight.scales[1], 0.5f / 127);
}

TEST(AssignBias, SpoiltOnesNameTheTensor) {
  ir::Module module =
      WithLargeBias(0.5f, {0, 0, std::numeric_limits<float>::infinity(), 0});
  const ResolvedRecipe recipe = RecipeOf("16a8w");
  const Ranges ranges = BiasRanges();
  const auto found =
      AssignEncodings(module, {.recipe = &recipe, .ranges = &ranges});
  ASSERT_FALSE(found.ok());
  EXPECT_EQ(found.error().code, ErrorCode::kBadInput);
  EXPECT_THAT(found.error().message,
              AllOf(HasSubstr("'shared.bias'"), HasSubstr("column 2")));
}

// Half precision for one layer of an integer graph.
TEST(AssignMixed, ConvertsBetweenHalfAndCodes) {
  ir::Module module = Parsed(kBiases);
  ResolvedRecipe recipe = RecipeOf("16a8w");
  recipe.layers["b"] = RecipeOf("fp16").recipe.defaults;
  Assigned(module, recipe, BiasRanges());
  const ir::Graph& graph = module.graphs[0];
  EXPECT_EQ(EncodingOf(graph, "b.input").dtype, DType::kF16);
  EXPECT_EQ(EncodingOf(graph, "b").dtype, DType::kF16);
  EXPECT_EQ(EncodingOf(graph, "c").dtype, DType::kU16);
  EXPECT_EQ(FindValue(graph, "a.input"), nullptr);
}

constexpr const char* kTied = R"(
const @w0 "table.weight" : f32[6,32]
const @w1 "p.weight" : f32[32,32]
graph kv kind=kv T=1 C=1 {
  in %0 token : i32[1]
  %1 = embedding(%0, @w0) "table" : f32[1,32]
  %2 = linear(%1, @w1) "p" : f32[1,32]
  %3 = linear_add(%2, @w1, %1) "sum" : f32[1,32]
  %4 = linear(%3, @w0) "head" : f32[1,6]
  out %4 logits
}
)";

TEST(AssignDynamic, EncodesTheWeightsOfLinearsAlone) {
  for (const auto& [scheme, dtype] :
       {std::pair{"cpu-w8a8", DType::kQ8_0}, {"cpu-w4a8", DType::kQ4_1}}) {
    ir::Module module = Parsed(kTied);
    Assigned(module, RecipeOf(scheme));
    const ir::Encoding wanted{.dtype = dtype};
    EXPECT_EQ(InputConstant(module, 1, 1).encoding, wanted);
    EXPECT_EQ(InputConstant(module, 2, 1).encoding, wanted);
    EXPECT_EQ(InputConstant(module, 3, 1).encoding, wanted);
    EXPECT_FALSE(InputConstant(module, 0, 1).encoding);
    EXPECT_EQ(InputConstant(module, 3, 1).name, "head.weight");
    for (const ir::Value& value : module.graphs[0].values)
      EXPECT_FALSE(value.encoding) << value.name;
  }
}

// A sum fused with a linear bears the sum's name: the layer is known by its
// weight.
TEST(AssignDynamic, FusedLinearsAreKnownByTheirWeights) {
  ir::Module module = Parsed(kTied);
  ResolvedRecipe recipe = RecipeOf("cpu-w8a8");
  recipe.layers["p"] = RecipeOf("cpu-w4a8").recipe.defaults;
  Assigned(module, recipe);
  EXPECT_EQ(InputConstant(module, 2, 1).encoding->dtype, DType::kQ4_1);
  EXPECT_EQ(InputConstant(module, 3, 1).encoding->dtype, DType::kQ8_0);
}

TEST(AssignDynamic, FloatLayersKeepSharedWeightsAsStored) {
  ir::Module module = Parsed(kTied);
  ResolvedRecipe recipe = RecipeOf("cpu-w8a8");
  recipe.layers["head"] = RecipeOf("fp32").recipe.defaults;
  Assigned(module, recipe);
  EXPECT_FALSE(InputConstant(module, 3, 1).encoding);
  EXPECT_EQ(InputConstant(module, 3, 1).name, "table.weight");
}

TEST(AssignDynamic, PartsOfBlocksStayAsStored) {
  ir::Module module = Parsed(kBiases);
  const ResolvedRecipe recipe = RecipeOf("cpu-w4a8");
  const auto warnings = AssignEncodings(module, {.recipe = &recipe});
  ASSERT_TRUE(warnings.ok()) << warnings.error().message;
  ASSERT_FALSE(warnings->empty());
  EXPECT_THAT(warnings->front(), HasSubstr("stays as stored"));
  for (size_t i = 0; i < module.constants.size(); ++i)
    EXPECT_FALSE(module.constants[{static_cast<int32_t>(i)}].encoding);
}

// What is left as stored is checked as well: these have parts of blocks.
TEST(AssignDynamic, SpoiltConstantsNameTheTensor) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const auto& [module, tensor] :
       {std::pair{WithLargeBias(0.5f, {0, nan, 0, 0}), "'shared.bias'"},
        {WithLargeBias(nan, {0, 0, 0, 0}), "'a.weight'"}}) {
    ir::Module spoilt = module;
    const ResolvedRecipe recipe = RecipeOf("cpu-w8a8");
    const auto found = AssignEncodings(spoilt, {.recipe = &recipe});
    ASSERT_FALSE(found.ok());
    EXPECT_EQ(found.error().code, ErrorCode::kBadInput);
    EXPECT_THAT(found.error().message, HasSubstr(tensor));
  }
}

// Nothing is rounded: weights are not read.
TEST(AssignDynamic, FloatRecipesTakeWhatIsThere) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  ir::Module module = WithLargeBias(nan, {0, 0, 0, 0});
  Assigned(module, RecipeOf("fp32"));
}

class RecordingProgress final : public ProgressSink {
 public:
  void Begin(std::string_view, std::string_view, int64_t total) override {
    total_ = total;
  }
  void Update(int64_t done) override { done_ = done; }
  void Warn(std::string_view) override {}
  void Note(std::string_view) override {}
  int64_t total_ = 0;
  int64_t done_ = 0;
};

TEST(AssignProgress, CountsEachWeightOnce) {
  RecordingProgress progress;
  ir::Module module = Parsed(kBiases);
  const ResolvedRecipe recipe = RecipeOf("16a8w");
  const Ranges ranges = BiasRanges();
  ASSERT_TRUE(
      AssignEncodings(
          module, {.recipe = &recipe, .ranges = &ranges, .progress = &progress})
          .ok());
  EXPECT_EQ(progress.total_, 2);
  EXPECT_EQ(progress.done_, 2);
}

TEST(EncodingsToJson, ListsValuesInputsAndWeights) {
  ir::Module module = Parsed(kBiases);
  ResolvedRecipe recipe = RecipeOf("16a4w_block");
  recipe.recipe.defaults.block = 4;
  Assigned(module, recipe, BiasRanges());
  const auto json = ParseJson(EncodingsToJson(module));
  ASSERT_TRUE(json.ok()) << json.error().message;
  EXPECT_EQ((*json)["version"], 1);

  const Json& c = (*json)["values"]["c"];
  const ir::Encoding encoding = ActivationEncoding({-6, 6}, 16, false);
  EXPECT_EQ(c["dtype"], "u16");
  EXPECT_EQ(c["bits"], 16);
  EXPECT_EQ(c["scale"].get<float>(), encoding.scales[0]);
  EXPECT_EQ(c["zero_point"], encoding.zero_points[0]);
  EXPECT_EQ(c["min"].get<float>(), RangeOf(encoding).min);
  EXPECT_EQ(c["max"].get<float>(), RangeOf(encoding).max);
  EXPECT_TRUE((*json)["values"].contains("hidden_in"));

  const Json& weight = (*json)["weights"]["a.weight"];
  EXPECT_EQ(weight["dtype"], "i8");
  EXPECT_EQ(weight["bits"], 4);
  EXPECT_EQ(weight["axis"], 0);
  EXPECT_EQ(weight["block"], 4);
  EXPECT_EQ(weight["scales"].size(), 4u);
  EXPECT_FALSE(weight.contains("block_scales"));
  EXPECT_EQ(weight["max"].get<float>(), -weight["min"].get<float>());
  EXPECT_EQ((*json)["weights"]["shared.bias"]["dtype"], "i32");
}

TEST(EncodingsToJson, ListsBlockTypesAndHalves) {
  ir::Module module = Parsed(kTied);
  Assigned(module, RecipeOf("cpu-w4a8"));
  const auto json = ParseJson(EncodingsToJson(module));
  ASSERT_TRUE(json.ok());
  const Json wanted = {{"dtype", "q4_1"}, {"bits", 4}, {"block", 32}};
  EXPECT_EQ((*json)["weights"]["p.weight"], wanted);
  EXPECT_FALSE((*json)["weights"].contains("table.weight"));
  EXPECT_TRUE((*json)["values"].empty());
}

constexpr const char* kUnreadMask = R"(
graph prefill kind=prefill T=2 C=2 {
  in %0 hidden_in : f32[2,2]
  in %1 mask[0] : f32[2,2]
  in %2 mask[1] : f32[2,2]
  %3 = silu(%0) "moved" : f32[2,2]
  out %3 hidden_out
}
graph kv kind=kv T=1 C=2 {
  in %0 hidden_in : f32[1,2]
  in %1 mask[0] : f32[1,2]
  %2 = add(%0, %1) "masked" : f32[1,2]
  %3 = softmax(%2) "probs" : f32[1,2]
  out %3 hidden_out
}
)";

// A graph that has a mask and does not read it takes what the others do; where
// no graph reads it, a form that holds 0.0 as the highest code.
TEST(AssignMasks, UnreadOnesHaveTheFormOfThoseThatAreRead) {
  const Ranges ranges = {
      {"hidden_in", {{-1, 1}}}, {"moved", {{-1, 1}}}, {"masked", {{-1, 1}}}};
  for (const char* scheme : {"16a8w", "8a8w", "fp16"}) {
    ir::Module module = Parsed(kUnreadMask);
    Assigned(module, RecipeOf(scheme), ranges);
    const auto encoding = [&](size_t graph, int32_t index) {
      const ir::Graph& in = module.graphs[graph];
      return in[in.FindIo({RoleKind::kMask, index})].encoding;
    };
    ASSERT_TRUE(encoding(0, 0) && encoding(0, 1) && encoding(1, 0)) << scheme;
    EXPECT_EQ(encoding(0, 0), encoding(1, 0)) << scheme;
    EXPECT_EQ(encoding(0, 1)->dtype, encoding(1, 0)->dtype) << scheme;
    if (!ir::HasCodes(*encoding(0, 1))) continue;
    EXPECT_EQ(encoding(0, 1)->zero_points, encoding(1, 0)->zero_points);
  }
}

TEST(AssignMasks, DynamicSchemesLeaveThemAsTheyAre) {
  ir::Module module = Parsed(kUnreadMask);
  Assigned(module, RecipeOf("cpu-w8a8"));
  for (const ir::Graph& graph : module.graphs)
    EXPECT_FALSE(graph[graph.FindIo({RoleKind::kMask, 0})].encoding);
}

}  // namespace
}  // namespace hexllm::quant
