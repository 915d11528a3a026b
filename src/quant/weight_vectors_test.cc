// Against reference vectors made by another implementation
// (tests/data/quant): scales, zero points, codes and packed bytes are equal,
// results of whole linears too.
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "base/nibbles.h"
#include "ir/interpret.h"
#include "quant/vectors_testing.h"

namespace hexllm::quant {
namespace {

constexpr int64_t kOut = 24;
constexpr int64_t kIn = 192;
constexpr int64_t kTokens = 9;

std::vector<int64_t> Packed(const std::vector<int64_t>& codes) {
  const std::vector<int32_t> narrow(codes.begin(), codes.end());
  std::vector<std::byte> bytes(codes.size() / 2);
  PackNibbles(narrow, bytes);
  std::vector<int64_t> out;
  for (const std::byte byte : bytes) out.push_back(static_cast<int64_t>(byte));
  return out;
}

TEST(QuantVectors, SymmetricWeights) {
  const Vectors vectors("quant_basic.safetensors");
  const std::vector<float> w = vectors.Floats("w");
  const ir::Constant weight = Owned({kOut, kIn}, w);
  for (const auto& [bits, scheme] :
       {std::pair{"4", "16a4w"}, std::pair{"8", "16a8w"}}) {
    const std::string channel = std::string("pc_int") + bits;
    const ir::Encoding per_channel = Encode(weight, SettingsOf(scheme));
    EXPECT_EQ(per_channel.scales, vectors.Floats(channel + ".scale"));
    EXPECT_EQ(CodesOf(per_channel, w, kIn), vectors.Ints(channel + ".q"));
    EXPECT_EQ(Rounded(per_channel, {kOut, kIn}, w),
              vectors.Floats(channel + ".deq"));

    const std::string tensor = std::string("pt_int") + bits;
    const ir::Encoding per_tensor =
        Encode(weight, SettingsOf(scheme, WeightGranularity::kPerTensor));
    EXPECT_EQ(per_tensor.scales, vectors.Floats(tensor + ".scale"));
    EXPECT_EQ(CodesOf(per_tensor, w, kIn), vectors.Ints(tensor + ".q"));
  }
  EXPECT_EQ(Packed(CodesOf(Encode(weight, SettingsOf("16a4w")), w, kIn)),
            vectors.Ints("pc_int4.packed"));
}

TEST(QuantVectors, BlockWeights) {
  const Vectors vectors("quant_basic.safetensors");
  const std::vector<float> w = vectors.Floats("w");
  for (const int block : {16, 32, 64}) {
    const std::string prefix = "lpbq" + std::to_string(block) + ".";
    LayerSettings settings = SettingsOf("16a4w_block");
    settings.block = block;
    const ir::Encoding encoding = Encode(Owned({kOut, kIn}, w), settings);
    EXPECT_EQ(encoding.scales, vectors.Floats(prefix + "channel_scale"));
    EXPECT_EQ(std::vector<int64_t>(encoding.block_scales.begin(),
                                   encoding.block_scales.end()),
              vectors.Ints(prefix + "block_scale_u8"));
    const std::vector<int64_t> codes = CodesOf(encoding, w, kIn);
    EXPECT_EQ(codes, vectors.Ints(prefix + "q_eff"));
    EXPECT_EQ(Packed(codes), vectors.Ints(prefix + "packed_eff"));
    EXPECT_EQ(Rounded(encoding, {kOut, kIn}, w),
              vectors.Floats(prefix + "deq_eff"));
  }
}

// Codes rounded with each block's own scale before that is made an integer
// factor: blocks as if they were channels.
TEST(QuantVectors, CodesOfObservedBlockScales) {
  const Vectors vectors("quant_basic.safetensors");
  const std::vector<float> w = vectors.Floats("w");
  for (const int64_t block : {16, 32, 64}) {
    const std::string prefix = "lpbq" + std::to_string(block) + ".";
    const ir::Encoding blocks =
        Encode(Owned({kOut * kIn / block, block}, w), SettingsOf("16a4w"));
    EXPECT_EQ(blocks.scales, vectors.Floats(prefix + "block_scale_f32"));
    const std::vector<int64_t> codes = CodesOf(blocks, w, block);
    EXPECT_EQ(codes, vectors.Ints(prefix + "q_obs"));

    // The same codes, meant with the integer factors.
    const auto factors = vectors.Ints(prefix + "block_scale_u8");
    const auto channel_scales = vectors.Floats(prefix + "channel_scale");
    std::vector<float> meant;
    for (size_t i = 0; i < codes.size(); ++i) {
      const auto b = i / static_cast<size_t>(block);
      const ir::Encoding one{
          .dtype = DType::kI8,
          .bits = 4,
          .scales = {static_cast<float>(factors[b]) *
                     channel_scales[i / static_cast<size_t>(kIn)]}};
      meant.push_back(DecodeOne(one, static_cast<int32_t>(codes[i])));
    }
    EXPECT_EQ(meant, vectors.Floats(prefix + "deq_obs"));
  }
}

TEST(QuantVectors, AsymmetricActivations) {
  const Vectors vectors("quant_basic.safetensors");
  const std::vector<float> x = vectors.Floats("x");
  for (const int bits : {8, 16}) {
    const std::string prefix = "act_u" + std::to_string(bits) + ".";
    const ir::Encoding encoding =
        ActivationEncoding(RangeOfAll(x), bits, false);
    EXPECT_EQ(encoding.scales, vectors.Floats(prefix + "scale"));
    EXPECT_EQ(encoding.zero_points[0], vectors.Ints(prefix + "zp")[0]);
    EXPECT_EQ(CodesOf(encoding, x, kIn), vectors.Ints(prefix + "q"));
    EXPECT_EQ(Rounded(encoding, {kTokens, kIn}, x),
              vectors.Floats(prefix + "deq"));
    for (const char* name : {"pos", "neg", "zero", "const"}) {
      const std::string special = prefix + name;
      const std::vector<float> y = vectors.Floats(special + ".x");
      const ir::Encoding found = ActivationEncoding(RangeOfAll(y), bits, false);
      const std::vector<double> wanted = vectors.Doubles(special + ".scale_zp");
      EXPECT_EQ(static_cast<double>(found.scales[0]), wanted[0]) << special;
      EXPECT_EQ(found.zero_points[0], wanted[1]) << special;
      EXPECT_EQ(CodesOf(found, y, static_cast<int64_t>(y.size())),
                vectors.Ints(special + ".q"));
    }
  }
}

// Ours are unsigned about a middle zero point: the same grid.
TEST(QuantVectors, SymmetricActivations) {
  const Vectors vectors("quant_basic.safetensors");
  const std::vector<float> x = vectors.Floats("x");
  for (const int bits : {8, 16}) {
    const std::string prefix = "act_s" + std::to_string(bits) + ".";
    const ir::Encoding encoding = ActivationEncoding(RangeOfAll(x), bits, true);
    EXPECT_EQ(encoding.scales, vectors.Floats(prefix + "scale"));
    std::vector<int64_t> codes = CodesOf(encoding, x, kIn);
    for (int64_t& code : codes) code -= encoding.zero_points[0];
    EXPECT_EQ(codes, vectors.Ints(prefix + "q"));
  }
}

// A graph of one linear: x (an input), w and perhaps a bias.
struct LinearCase {
  ir::Module module;
  ir::HostTensor x;

  LinearCase(const ir::Constant& weight, const std::vector<float>& x_values,
             std::optional<ir::Encoding> x_encoding) {
    ir::Graph graph;
    graph.name = "linear";
    graph.step_tokens = kTokens;
    graph.context_tokens = kTokens;
    const ir::ValueId input =
        graph.AddInput({RoleKind::kHiddenIn}, testing::F32Type({kTokens, kIn}));
    graph[input].encoding = std::move(x_encoding);
    const ir::ConstantId w = module.constants.Add(weight);
    const ir::ValueId w_value = graph.AddConstant(w, module.constants[w]);
    graph.AddOutput(
        {RoleKind::kHiddenOut},
        graph.AddNode(ir::OpKind::kLinear, {input, w_value}, {}, "linear"));
    module.graphs.push_back(std::move(graph));
    x = testing::F32({kTokens, kIn}, x_values);
  }

  void AddBias(const std::vector<float>& bias, ir::Encoding encoding) {
    ir::Constant constant = Owned({kOut}, bias);
    constant.name = "bias";
    constant.encoding = std::move(encoding);
    const ir::ConstantId id = module.constants.Add(std::move(constant));
    ir::Graph& graph = module.graphs[0];
    const ir::ValueId value = graph.AddConstant(id, module.constants[id]);
    graph.nodes[0].inputs.push_back(value);
  }

  std::vector<float> Run() const {
    return ir::Interpret(module, module.graphs[0], std::span(&x, 1))[0].floats;
  }
};

std::vector<int64_t> Accumulators(const std::vector<int64_t>& x,
                                  const std::vector<int64_t>& w) {
  std::vector<int64_t> sums;
  for (size_t t = 0; t < kTokens; ++t) {
    for (size_t n = 0; n < kOut; ++n) {
      int64_t sum = 0;
      for (size_t k = 0; k < kIn; ++k) sum += x[t * kIn + k] * w[n * kIn + k];
      sums.push_back(sum);
    }
  }
  return sums;
}

class LinearVectors : public ::testing::Test {
 protected:
  // The weight as encoded by `settings`.
  ir::Constant Weight(const LayerSettings& settings) const {
    ir::Constant weight = Owned({kOut, kIn}, w_);
    weight.encoding = Encode(weight, settings);
    return weight;
  }
  std::vector<int64_t> StepsOfX() const {
    std::vector<int64_t> steps = CodesOf(x_encoding_, x_, kIn);
    for (int64_t& step : steps) step -= x_encoding_.zero_points[0];
    return steps;
  }

  const Vectors vectors_{"quant_basic.safetensors"};
  const std::vector<float> w_ = vectors_.Floats("w");
  const std::vector<float> x_ = vectors_.Floats("x");
  const ir::Encoding x_encoding_ =
      ActivationEncoding(RangeOfAll(x_), 16, false);
};

TEST_F(LinearVectors, PerChannel) {
  const ir::Constant weight = Weight(SettingsOf("16a4w"));
  EXPECT_EQ(Accumulators(StepsOfX(), CodesOf(*weight.encoding, w_, kIn)),
            vectors_.Ints("lin_u16_pc4.acc_i64"));
  EXPECT_EQ(LinearCase(weight, x_, x_encoding_).Run(),
            vectors_.Floats("lin_u16_pc4.y"));
}

TEST_F(LinearVectors, Blocks) {
  for (const int block : {16, 32, 64}) {
    LayerSettings settings = SettingsOf("16a4w_block");
    settings.block = block;
    const ir::Constant weight = Weight(settings);
    std::vector<int64_t> steps = CodesOf(*weight.encoding, w_, kIn);
    for (size_t i = 0; i < steps.size(); ++i)
      steps[i] *= weight.encoding->block_scales[i / static_cast<size_t>(block)];
    const std::string prefix = "lin_u16_lpbq" + std::to_string(block);
    EXPECT_EQ(Accumulators(StepsOfX(), steps),
              vectors_.Ints(prefix + ".acc_i64"));
    EXPECT_EQ(LinearCase(weight, x_, x_encoding_).Run(),
              vectors_.Floats(prefix + ".y"));
  }
}

TEST_F(LinearVectors, Float) {
  testing::ExpectTensor(
      testing::F32({kTokens, kOut},
                   LinearCase(Owned({kOut, kIn}, w_), x_, {}).Run()),
      testing::F32({kTokens, kOut}, vectors_.Floats("lin_f32.y")), 1e-6);
}

TEST_F(LinearVectors, BiasAndRoundedOutput) {
  const ir::Constant weight = Weight(SettingsOf("16a4w"));
  const std::vector<float> bias = vectors_.Floats("lin_bias.bias");
  ir::Encoding bias_encoding{.dtype = DType::kI32, .axis = 0};
  std::vector<int64_t> bias_codes;
  for (size_t n = 0; n < bias.size(); ++n) {
    const double scale = static_cast<double>(x_encoding_.scales[0]) *
                         static_cast<double>(weight.encoding->scales[n]);
    bias_encoding.scales.push_back(static_cast<float>(scale));
    bias_codes.push_back(ir::EncodeBias(bias[n], scale));
  }
  EXPECT_EQ(bias_codes, vectors_.Ints("lin_bias.bias_i32"));

  LinearCase linear(weight, x_, x_encoding_);
  linear.AddBias(bias, bias_encoding);
  const std::vector<float> y = linear.Run();
  EXPECT_EQ(y, vectors_.Floats("lin_bias.y"));

  const ir::Encoding output = ActivationEncoding(RangeOfAll(y), 16, false);
  const std::vector<double> wanted = vectors_.Doubles("lin_bias.y_scale_zp");
  EXPECT_EQ(static_cast<double>(output.scales[0]), wanted[0]);
  EXPECT_EQ(output.zero_points[0], wanted[1]);
  EXPECT_EQ(CodesOf(output, y, kOut), vectors_.Ints("lin_bias.y_u16"));
  ir::Graph& graph = linear.module.graphs[0];
  graph[graph.nodes[0].output].encoding = output;
  EXPECT_EQ(linear.Run(), Rounded(output, {kTokens, kOut}, y));
}

}  // namespace
}  // namespace hexllm::quant
