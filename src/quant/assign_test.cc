#include "quant/assign.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>
#include <optional>

#include "ir/encode.h"
#include "ir/verify.h"
#include "quant/decoder_testing.h"
#include "quant/weight_encoding.h"

namespace hexllm::quant {
namespace {

using ::hexllm::testing::TinyLlama;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

const std::string kLayer0 = "model.layers.0.self_attn.";
const std::string kLayer1 = "model.layers.1.self_attn.";

class AssignTest : public ::testing::Test {
 protected:
  // Assigns with ranges from made-up inputs; a failure fails the test.
  void Assign(const ResolvedRecipe& recipe, std::set<int> wide_k = {}) {
    reference_ = decoder_->module;
    ranges_ = Calibrate(decoder_->module);
    auto warnings =
        AssignEncodings(decoder_->module, {.recipe = &recipe,
                                           .ranges = &ranges_,
                                           .wide_k_layers = std::move(wide_k)});
    ASSERT_TRUE(warnings.ok()) << warnings.error().message;
    warnings_ = *warnings;
    const Status valid = ir::Verify(module());
    ASSERT_TRUE(valid.ok()) << valid.error().message;
  }
  Error AssignError(const ResolvedRecipe& recipe, const Ranges& ranges) {
    auto warnings = AssignEncodings(decoder_->module,
                                    {.recipe = &recipe, .ranges = &ranges});
    EXPECT_FALSE(warnings.ok());
    return warnings.ok() ? Error{ErrorCode::kUsage, ""} : warnings.error();
  }
  const ir::Module& module() const { return decoder_->module; }
  const ir::Graph& prefill() const { return module().graphs[0]; }
  const ir::Graph& kv() const { return module().graphs[1]; }
  const ir::Constant& ConstantNamed(const std::string& name) const {
    for (size_t i = 0; i < module().constants.size(); ++i) {
      const ir::Constant& constant =
          module().constants[{static_cast<int32_t>(i)}];
      if (constant.name == name) return constant;
    }
    ADD_FAILURE() << "no constant " << name;
    return module().constants[{0}];
  }
  const ir::Encoding& InputEncoding(const ir::Graph& graph, RoleKind kind,
                                    int32_t index) const {
    const auto& encoding = graph[graph.FindIo({kind, index})].encoding;
    EXPECT_TRUE(encoding.has_value());
    return *encoding;
  }
  // 10 log10(sum of squares / sum of squared errors) of the logits of a graph.
  double LogitsSqnr(size_t graph) const {
    const auto wanted = OutputOf(reference_, reference_.graphs[graph],
                                 {RoleKind::kLogits}, -INFINITY);
    const ir::Graph& assigned = module().graphs[graph];
    const auto& mask = InputEncoding(assigned, RoleKind::kMask, 0);
    const float hidden =
        ir::HasCodes(mask) ? ir::DecodeOne(mask, 0) : -65504.0f;
    const auto found =
        OutputOf(module(), assigned, {RoleKind::kLogits}, hidden);
    double signal = 0, noise = 0;
    for (size_t i = 0; i < wanted.size(); ++i) {
      signal += std::pow(static_cast<double>(wanted[i]), 2);
      noise += std::pow(
          static_cast<double>(wanted[i]) - static_cast<double>(found[i]), 2);
    }
    return 10 * std::log10(signal / noise);
  }

  std::optional<LoweredDecoder> decoder_{std::in_place, TinyLlama(), "htp"};
  ir::Module reference_;  // before
  Ranges ranges_;
  std::vector<std::string> warnings_;
};

TEST_F(AssignTest, EveryNumberHasAnEncoding) {
  Assign(RecipeOf("16a8w"));
  for (const ir::Graph& graph : module().graphs) {
    for (const ir::Value& value : graph.values) {
      const bool table =
          value.constant.valid() && value.name == "model.embed_tokens.weight";
      const bool encoded =
          value.constant.valid()
              ? module().constants[value.constant].encoding.has_value()
              : value.encoding.has_value();
      EXPECT_EQ(encoded, value.type.dtype != DType::kI32 && !table)
          << value.name;
    }
  }
  EXPECT_THAT(warnings_, IsEmpty());
}

TEST_F(AssignTest, ObservedValuesAreWhatIsAskedFor) {
  const ResolvedRecipe recipe = RecipeOf("16a8w", 8);
  const Ranges all = Calibrate(module());
  for (const auto& [name, range] : all) {
    Ranges fewer = all;
    fewer.erase(name);
    LoweredDecoder decoder(TinyLlama(), "htp");
    const auto found =
        AssignEncodings(decoder.module, {.recipe = &recipe, .ranges = &fewer});
    ASSERT_FALSE(found.ok()) << name << " is observed, but never asked for";
    EXPECT_EQ(found.error().code, ErrorCode::kBadInput);
    EXPECT_THAT(found.error().message,
                AllOf(HasSubstr(name), HasSubstr("no range")));
  }
}

TEST_F(AssignTest, SameNamesHaveTheSameEncodingsInAllGraphs) {
  Assign(RecipeOf("16a4w", 8));
  for (const ir::Node& node : prefill().nodes) {
    const std::string& name = prefill()[node.output].name;
    if (FindValue(prefill(), name) != nullptr) {
      EXPECT_EQ(EncodingOf(prefill(), name), EncodingOf(kv(), name)) << name;
    }
  }
  EXPECT_EQ(InputEncoding(prefill(), RoleKind::kMask, 0),
            InputEncoding(kv(), RoleKind::kMask, 0));
}

TEST_F(AssignTest, ActivationsFollowTheirRanges) {
  Assign(RecipeOf("16a8w"));
  for (const char* name :
       {"model.embed_tokens", "model.layers.0", "model.layers.1.mlp.act_fn",
        "lm_head", "model.layers.0.self_attn.q_rope"}) {
    EXPECT_EQ(EncodingOf(kv(), name),
              ActivationEncoding(ranges_.at(name).range, 16, false))
        << name;
  }
  EXPECT_EQ(EncodingOf(kv(), kLayer0 + "probs"), ProbabilityEncoding(16));
  EXPECT_EQ(InputEncoding(kv(), RoleKind::kRopeCos, 0),
            ActivationEncoding({-1, 1}, 16, false));
}

TEST_F(AssignTest, DataMovementKeepsItsInputsEncoding) {
  Assign(RecipeOf("16a8w", 8));
  int moved = 0;
  for (const ir::Graph& graph : module().graphs) {
    for (const ir::Node& node : graph.nodes) {
      if (FindValue(graph, graph[node.output].name) == &graph[node.output])
        continue;
      ++moved;
      for (const ir::ValueId input : node.inputs)
        EXPECT_EQ(graph[node.output].encoding, graph[input].encoding);
    }
  }
  EXPECT_GT(moved, 10);
}

TEST_F(AssignTest, NormsAreSixteenBitAndLinearsPerChannel) {
  Assign(RecipeOf("8a8w"));
  const ir::Constant& norm = ConstantNamed("model.norm.weight");
  EXPECT_EQ(*norm.encoding, *TensorEncoding(norm));
  EXPECT_EQ(norm.encoding->dtype, DType::kU16);
  const ir::Constant& up = ConstantNamed("model.layers.1.mlp.up_proj.weight");
  EXPECT_EQ(up.encoding->dtype, DType::kI8);
  EXPECT_EQ(up.encoding->scales.size(), 24u);
  EXPECT_EQ(EncodingOf(kv(), "lm_head").dtype, DType::kU8);
}

// The least visible score less 20 is the lowest code, whatever the layer: a
// hidden column always ends there.
TEST_F(AssignTest, HiddenScoresEndAtTheLowestCode) {
  for (const char* scheme : {"16a8w", "8a8w"}) {
    decoder_.emplace(TinyLlama(), "htp");
    Assign(RecipeOf(scheme));
    const ir::Encoding mask = InputEncoding(kv(), RoleKind::kMask, 0);
    EXPECT_EQ(ir::DecodeOne(mask, mask.zero_points[0]), 0.0f);
    EXPECT_EQ(mask.zero_points[0], ir::CodesOf(mask).most);
    const float hidden = ir::DecodeOne(mask, 0);
    for (const std::string& layer : {kLayer0, kLayer1}) {
      const Range visible = ranges_.at(layer + "masked_scores").range;
      const ir::Encoding scores = EncodingOf(kv(), layer + "scores");
      const ir::Encoding masked = EncodingOf(kv(), layer + "masked_scores");
      EXPECT_EQ(scores,
                ActivationEncoding(visible, masked.dtype == DType::kU8 ? 8 : 16,
                                   false));
      EXPECT_NEAR(RangeOf(masked).min, visible.min - 20, masked.scales[0]);
      const float most = RangeOf(scores).max;
      EXPECT_EQ(ir::EncodeOne(masked, most + hidden), 0);
    }
  }
}

TEST_F(AssignTest, CachesOfSixteenBitsAreAsTheirInputAroundZero) {
  Assign(RecipeOf("16a8w", 16));
  EXPECT_EQ(EncodingOf(kv(), kLayer0 + "k_rope"),
            ActivationEncoding(ranges_.at(kLayer0 + "k_rope").range, 16, true));
  EXPECT_EQ(EncodingOf(kv(), kLayer0 + "v_proj").zero_points[0], 32768);
  EXPECT_EQ(EncodingOf(kv(), kLayer0 + "k_cache"),
            EncodingOf(kv(), kLayer0 + "k_rope"));
  EXPECT_EQ(EncodingOf(kv(), kLayer0 + "v_cache"),
            EncodingOf(kv(), kLayer0 + "v_proj"));
  EXPECT_EQ(InputEncoding(kv(), RoleKind::kVIn, 1),
            EncodingOf(kv(), kLayer1 + "v_cache"));
}

TEST_F(AssignTest, CachesOfEightBitSchemesAreAroundZero) {
  Assign(RecipeOf("8a8w", 16));
  EXPECT_EQ(InputEncoding(kv(), RoleKind::kVIn, 0),
            ActivationEncoding(ranges_.at(kLayer0 + "v_proj").range, 8, true));
}

TEST_F(AssignTest, CachesOfEightBitsButForWideLayers) {
  Assign(RecipeOf("16a8w", 8), {1});
  const auto range = ranges_.at(kLayer0 + "k_rope").range;
  EXPECT_EQ(EncodingOf(kv(), kLayer0 + "k_cache"),
            ActivationEncoding(range, 8, true));
  EXPECT_EQ(EncodingOf(kv(), kLayer0 + "k_rope"),
            ActivationEncoding(range, 16, false));
  EXPECT_EQ(EncodingOf(kv(), kLayer1 + "k_cache"),
            EncodingOf(kv(), kLayer1 + "k_rope"));
  EXPECT_EQ(EncodingOf(kv(), kLayer1 + "k_cache").zero_points[0], 32768);
  EXPECT_EQ(EncodingOf(kv(), kLayer1 + "v_cache").dtype, DType::kU8);
  EXPECT_EQ(EncodingOf(kv(), kLayer1 + "v_cache").zero_points[0], 128);
  for (const ir::Graph* graph : {&prefill(), &kv()}) {
    EXPECT_EQ(InputEncoding(*graph, RoleKind::kKIn, 0).dtype, DType::kU8);
    EXPECT_EQ(InputEncoding(*graph, RoleKind::kKIn, 1).dtype, DType::kU16);
    const ir::ValueId out = graph->FindIo({RoleKind::kKOut, 0});
    EXPECT_EQ((*graph)[out].encoding, InputEncoding(*graph, RoleKind::kKIn, 0));
  }
}

TEST_F(AssignTest, TiedTableIsTheHeadsOwnConstant) {
  Assign(RecipeOf("16a8w"));
  const ir::Constant& table = ConstantNamed("model.embed_tokens.weight");
  const ir::Constant& head = ConstantNamed("lm_head.weight");
  EXPECT_FALSE(table.encoding);
  ASSERT_TRUE(head.encoding);
  EXPECT_EQ(head.bytes.data(), table.bytes.data());
  EXPECT_EQ(head.encoding->scales.size(), 32u);
  // One for both graphs.
  EXPECT_EQ(module().constants.size(), reference_.constants.size() + 1);
}

TEST_F(AssignTest, ConvertsWhereALinearWantsOtherActivations) {
  ResolvedRecipe recipe = RecipeOf("16a8w");
  LayerSettings narrow = recipe.recipe.defaults;
  narrow.scheme = FindScheme("8a4w");
  narrow.symmetric_activations = true;
  recipe.layers[kLayer0 + "v_proj"] = narrow;
  Assign(recipe);
  for (const ir::Graph& graph : module().graphs) {
    const ir::Encoding converted = EncodingOf(graph, kLayer0 + "v_proj.input");
    EXPECT_EQ(converted,
              ActivationEncoding(
                  ranges_.at("model.layers.0.input_layernorm").range, 8, true));
    EXPECT_EQ(converted.zero_points[0], 128);
    EXPECT_EQ(EncodingOf(graph, kLayer0 + "v_proj").dtype, DType::kU8);
    EXPECT_EQ(FindValue(graph, kLayer0 + "q_proj.input"), nullptr);
    EXPECT_EQ(FindValue(graph, kLayer1 + "v_proj.input"), nullptr);
    EXPECT_EQ(graph.nodes.size(),
              reference_.graphs[&graph == &kv() ? 1 : 0].nodes.size() + 1);
  }
  EXPECT_EQ(ConstantNamed(kLayer0 + "v_proj.weight").encoding->bits, 4);
}

TEST_F(AssignTest, WiderActivationsReadNarrowOnes) {
  ResolvedRecipe recipe = RecipeOf("8a8w");
  LayerSettings wide = recipe.recipe.defaults;
  wide.scheme = FindScheme("16a8w");
  recipe.layers[kLayer0 + "o_proj"] = wide;
  Assign(recipe);
  // Through the reshape, by the range of what was reshaped.
  EXPECT_EQ(
      EncodingOf(kv(), kLayer0 + "o_proj.input"),
      ActivationEncoding(ranges_.at(kLayer0 + "attention").range, 16, false));
}

struct SchemeCase {
  const char* scheme;
  double sqnr_db;  // at least
};

// Measured, less a margin: a wrong scale anywhere costs far more.
TEST_F(AssignTest, RoundedGraphsStayNearTheFloatOnes) {
  for (const SchemeCase& tried :
       {SchemeCase{"fp16", 55}, SchemeCase{"16a16w", 75},
        SchemeCase{"16a8w", 42}, SchemeCase{"16a4w", 17},
        SchemeCase{"8a8w", 25}}) {
    decoder_.emplace(TinyLlama(), "htp");
    Assign(RecipeOf(tried.scheme));
    for (const size_t graph : {size_t{0}, size_t{1}}) {
      const double sqnr = LogitsSqnr(graph);
      EXPECT_GT(sqnr, tried.sqnr_db)
          << tried.scheme << " " << module().graphs[graph].name;
    }
  }
}

TEST_F(AssignTest, HalfPrecisionNeedsNoRanges) {
  const ResolvedRecipe recipe = RecipeOf("fp16");
  auto warnings = AssignEncodings(decoder_->module, {.recipe = &recipe});
  ASSERT_TRUE(warnings.ok()) << warnings.error().message;
  EXPECT_EQ(EncodingOf(kv(), "lm_head"), ir::Encoding{.dtype = DType::kF16});
  EXPECT_EQ(ConstantNamed("model.norm.weight").encoding->dtype, DType::kF16);
  EXPECT_EQ(InputEncoding(kv(), RoleKind::kMask, 0).dtype, DType::kF16);
  EXPECT_FALSE(ConstantNamed("model.embed_tokens.weight").encoding);
}

TEST_F(AssignTest, ClippedAndEmptyRangesAreWarnedOfOnce) {
  const ResolvedRecipe recipe = RecipeOf("16a8w");
  Ranges ranges = Calibrate(module());
  ranges["model.layers.1.mlp.gated"].clipped = 0.0035;
  ranges["model.layers.0"].clipped = 0.0009;
  ranges["model.layers.0.mlp.act_fn"].range = {};
  const auto warnings =
      AssignEncodings(decoder_->module, {.recipe = &recipe, .ranges = &ranges});
  ASSERT_TRUE(warnings.ok());
  EXPECT_EQ(warnings->size(), 2u);
  EXPECT_THAT(*warnings,
              Contains(AllOf(HasSubstr("'model.layers.1.mlp.gated'"),
                             HasSubstr("0.35%"), HasSubstr("0.1%"))));
  EXPECT_THAT(*warnings,
              Contains(AllOf(HasSubstr("'model.layers.0.mlp.act_fn'"),
                             HasSubstr("are 0"))));
}

TEST_F(AssignTest, RangesThatAreNotFiniteNameTheValue) {
  const Ranges good = Calibrate(module());
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(), INFINITY}) {
    Ranges ranges = good;
    ranges["model.layers.0.mlp.gated"].range.max = bad;
    decoder_.emplace(TinyLlama(), "htp");
    const Error error = AssignError(RecipeOf("16a8w"), ranges);
    EXPECT_EQ(error.code, ErrorCode::kBadInput);
    EXPECT_THAT(error.message, AllOf(HasSubstr("'model.layers.0.mlp.gated'"),
                                     HasSubstr("finite")));
  }
}

TEST_F(AssignTest, AttentionMustBeTakenApart) {
  const Ranges ranges = Calibrate(module());
  decoder_.emplace(TinyLlama(), "cpu");
  const Error error = AssignError(RecipeOf("16a8w"), ranges);
  EXPECT_EQ(error.code, ErrorCode::kUnsupported);
  EXPECT_THAT(error.message, HasSubstr("htp"));
}

TEST(AssignWeights, SpoiltWeightsNameTensorAndRow) {
  TinyLlama model;
  const float bad = std::numeric_limits<float>::quiet_NaN();
  std::memcpy(model.tensors["model.layers.1.mlp.down_proj.weight"].data.data() +
                  4 * (24 * 3 + 2),
              &bad, 4);
  LoweredDecoder decoder(model, "htp");
  const ResolvedRecipe recipe = RecipeOf("16a8w");
  const Ranges ranges = Calibrate(LoweredDecoder(TinyLlama(), "htp").module);
  const auto found =
      AssignEncodings(decoder.module, {.recipe = &recipe, .ranges = &ranges});
  ASSERT_FALSE(found.ok());
  EXPECT_THAT(found.error().message,
              AllOf(HasSubstr("'model.layers.1.mlp.down_proj.weight'"),
                    HasSubstr("row 3, column 2")));
}

TEST(AssignWeights, ZeroChannelsAreWarnedOfOnce) {
  TinyLlama model;
  std::string& data = model.tensors["model.layers.0.mlp.up_proj.weight"].data;
  std::fill(data.begin(), data.begin() + 2 * 16 * 4, '\0');
  LoweredDecoder decoder(model, "htp");
  const ResolvedRecipe recipe = RecipeOf("16a8w");
  const Ranges ranges = Calibrate(decoder.module);
  const auto found =
      AssignEncodings(decoder.module, {.recipe = &recipe, .ranges = &ranges});
  ASSERT_TRUE(found.ok()) << found.error().message;
  ASSERT_EQ(found->size(), 1u);
  EXPECT_THAT(found->front(), AllOf(HasSubstr("'model.layers.0.mlp.up_proj'"),
                                    HasSubstr("2 of the 24")));
}

}  // namespace
}  // namespace hexllm::quant
