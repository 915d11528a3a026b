// Against reference vectors made by another implementation
// (tests/data/quant): scales, zero points, codes and packed bytes are equal,
// results of whole linears too.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "base/nibbles.h"
#include "checkpoint/checkpoint.h"
#include "ir/encode.h"
#include "ir/interpret.h"
#include "quant/hadamard.h"
#include "quant/range.h"
#include "quant/row_stats.h"
#include "quant/weight_encoding.h"
#include "tests/support/golden_tensors.h"
#include "tests/support/ir_tensors.h"

namespace hexllm::quant {
namespace {

constexpr int64_t kOut = 24;
constexpr int64_t kIn = 192;
constexpr int64_t kTokens = 9;

// A file of reference tensors; reads any of their types.
class Vectors {
 public:
  explicit Vectors(const std::string& file) {
    auto opened = Checkpoint::Open(testing::DataPath("quant/" + file));
    if (!opened.ok()) {
      ADD_FAILURE() << opened.error().message;
      return;
    }
    file_ = std::make_unique<Checkpoint>(std::move(*opened));
  }

  std::vector<float> Floats(const std::string& name) const {
    return Read<float>(name);
  }
  // Of any integer type, or f64 that holds whole numbers.
  std::vector<int64_t> Ints(const std::string& name) const {
    const TensorView* tensor = Find(name);
    if (tensor == nullptr) return {};
    switch (tensor->dtype) {
      case DType::kU8:
        return Widened(Read<uint8_t>(name));
      case DType::kI8:
        return Widened(Read<int8_t>(name));
      case DType::kU16:
        return Widened(Read<uint16_t>(name));
      case DType::kI16:
        return Widened(Read<int16_t>(name));
      case DType::kI32:
        return Widened(Read<int32_t>(name));
      case DType::kI64:
        return Read<int64_t>(name);
      default:
        ADD_FAILURE() << name << ": " << DTypeName(tensor->dtype);
        return {};
    }
  }
  // [scale, zero point] as f64.
  std::vector<double> Doubles(const std::string& name) const {
    return Read<double>(name);
  }
  Shape ShapeOf(const std::string& name) const {
    const TensorView* tensor = Find(name);
    return tensor == nullptr ? Shape{} : tensor->shape;
  }

 private:
  const TensorView* Find(const std::string& name) const {
    const TensorView* tensor = file_ == nullptr ? nullptr : file_->Find(name);
    if (tensor == nullptr) ADD_FAILURE() << "no tensor " << name;
    return tensor;
  }
  template <typename T>
  std::vector<T> Read(const std::string& name) const {
    const TensorView* tensor = Find(name);
    if (tensor == nullptr) return {};
    EXPECT_EQ(GetDTypeInfo(tensor->dtype).block_bytes, sizeof(T)) << name;
    std::vector<T> values(tensor->data.size() / sizeof(T));
    std::memcpy(values.data(), tensor->data.data(), tensor->data.size());
    return values;
  }
  template <typename T>
  static std::vector<int64_t> Widened(const std::vector<T>& values) {
    return {values.begin(), values.end()};
  }

  std::unique_ptr<Checkpoint> file_;
};

// A constant with a copy of `values`.
ir::Constant Owned(Shape shape, const std::vector<float>& values) {
  ir::Constant constant;
  constant.name = "w";
  constant.type = testing::F32Type(std::move(shape));
  constant.owned = std::make_shared<const std::string>(
      AsText(std::as_bytes(std::span(values))));
  constant.bytes = AsBytes(*constant.owned);
  return constant;
}

LayerSettings SettingsOf(
    std::string_view scheme,
    WeightGranularity granularity = WeightGranularity::kPerChannel) {
  return {.scheme = FindScheme(scheme), .granularity = granularity};
}

ir::Encoding Encode(const ir::Constant& weight, const LayerSettings& settings) {
  auto encoding = WeightEncoding(weight, settings, nullptr);
  if (!encoding.ok()) {
    ADD_FAILURE() << encoding.error().message;
    return {};
  }
  return std::move(*encoding);
}

// All codes of [rows, columns] values.
std::vector<int64_t> CodesOf(const ir::Encoding& encoding,
                             const std::vector<float>& values,
                             int64_t columns) {
  std::vector<int64_t> all;
  std::vector<int32_t> codes(static_cast<size_t>(columns));
  for (size_t at = 0; at < values.size(); at += codes.size()) {
    EncodeRow(encoding, static_cast<int64_t>(at / codes.size()),
              std::span(values).subspan(at, codes.size()), codes);
    all.insert(all.end(), codes.begin(), codes.end());
  }
  return all;
}

std::vector<int64_t> Packed(const std::vector<int64_t>& codes) {
  const std::vector<int32_t> narrow(codes.begin(), codes.end());
  std::vector<std::byte> bytes(codes.size() / 2);
  PackNibbles(narrow, bytes);
  std::vector<int64_t> out;
  for (const std::byte byte : bytes) out.push_back(static_cast<int64_t>(byte));
  return out;
}

std::vector<float> Rounded(const ir::Encoding& encoding, const Shape& shape,
                           std::vector<float> values) {
  RoundToEncoding(encoding, shape, values);
  return values;
}

Range RangeOfAll(const std::vector<float>& values) {
  return StatsOf(values).extremes;
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

// --- KV caches of 8 bits and the rotation R3.

constexpr int64_t kHeads = 4;
constexpr int64_t kKvHeads = 2;
constexpr int64_t kSteps = 21;
constexpr int64_t kHeadDim = 16;

class CacheVectors : public ::testing::Test {
 protected:
  // q [H,T,D], k and v [G,T,D] -> [H,T,D], causal.
  std::vector<float> Attend(const std::vector<float>& q,
                            const std::vector<float>& k,
                            const std::vector<float>& v) const {
    const auto transposed = [](const std::vector<float>& x, Shape shape,
                               std::vector<int64_t> perm) {
      return testing::RunOp(ir::OpKind::kTranspose,
                            {testing::F32(std::move(shape), x)},
                            {{ir::AttrName::kPerm, std::move(perm)}});
    };
    ir::HostTensor mask = testing::F32({kSteps, kSteps}, {});
    for (int64_t i = 0; i < kSteps; ++i) {
      for (int64_t j = 0; j < kSteps; ++j)
        mask.floats.push_back(j <= i ? 0.0f : -INFINITY);
    }
    const ir::HostTensor out =
        testing::RunOp(ir::OpKind::kAttention,
                       {transposed(q, {kHeads, kSteps, kHeadDim}, {1, 0, 2}),
                        testing::F32({kKvHeads, kHeadDim, 0}, {}),
                        testing::F32({kKvHeads, 0, kHeadDim}, {}),
                        transposed(k, {kKvHeads, kSteps, kHeadDim}, {0, 2, 1}),
                        testing::F32({kKvHeads, kSteps, kHeadDim}, v), mask},
                       {{ir::AttrName::kScale, 1 / std::sqrt(16.0)},
                        {ir::AttrName::kSoftcap, 0.0}});
    return transposed(out.floats, {kSteps, kHeads, kHeadDim}, {1, 0, 2}).floats;
  }
  void ExpectClose(const std::vector<float>& found,
                   const std::vector<float>& wanted, double tolerance) const {
    const auto count = static_cast<int64_t>(wanted.size());
    ASSERT_EQ(found.size(), wanted.size());
    testing::ExpectTensor(testing::F32({count}, found),
                          testing::F32({count}, wanted), tolerance);
  }
  // Codes, scales and dequantized values of one of k and v as a weight of
  // `rows` rows, checked against the vectors.
  std::vector<float> Checked(const std::string& prefix, const char* name,
                             int64_t rows) const {
    const std::vector<float> x = vectors_.Floats(name);
    const int64_t columns = static_cast<int64_t>(x.size()) / rows;
    const ir::Encoding encoding =
        Encode(Owned({rows, columns}, x), SettingsOf("16a8w"));
    EXPECT_EQ(encoding.scales, vectors_.Floats(prefix + name + "_scale"));
    EXPECT_EQ(CodesOf(encoding, x, columns),
              vectors_.Ints(prefix + name + "_q"));
    return Rounded(encoding, {rows, columns}, x);
  }

  const Vectors vectors_{"quant_kv_r3.safetensors"};
  const std::vector<float> q_ = vectors_.Floats("q");
  const std::vector<float> k_ = vectors_.Floats("k");
  const std::vector<float> v_ = vectors_.Floats("v");
};

TEST_F(CacheVectors, Float) {
  ExpectClose(Attend(q_, k_, v_), vectors_.Floats("attn_f32"), 1e-6);
}

TEST_F(CacheVectors, Symmetric) {
  const std::pair<const char*, int64_t> cases[] = {
      {"s8_per_tensor", 1},
      {"s8_per_head", kKvHeads},
      {"s8_per_token_head", kKvHeads * kSteps}};
  for (const auto& [name, rows] : cases) {
    const std::string prefix = std::string(name) + ".";
    ExpectClose(
        Attend(q_, Checked(prefix, "k", rows), Checked(prefix, "v", rows)),
        vectors_.Floats(prefix + "attn"), 1e-6);
  }
}

TEST_F(CacheVectors, Asymmetric) {
  std::vector<float> rounded[2];
  for (const bool is_k : {true, false}) {
    const std::string name = is_k ? "k" : "v";
    const std::vector<float>& x = is_k ? k_ : v_;
    const ir::Encoding encoding = ActivationEncoding(RangeOfAll(x), 8, false);
    const std::vector<double> wanted =
        vectors_.Doubles("u8." + name + "_scale_zp");
    EXPECT_EQ(static_cast<double>(encoding.scales[0]), wanted[0]);
    EXPECT_EQ(encoding.zero_points[0], wanted[1]);
    EXPECT_EQ(CodesOf(encoding, x, kHeadDim),
              vectors_.Ints("u8." + name + "_q"));
    rounded[is_k ? 0 : 1] = Rounded(encoding, {kKvHeads, kSteps, kHeadDim}, x);
  }
  ExpectClose(Attend(q_, rounded[0], rounded[1]), vectors_.Floats("u8.attn"),
              1e-6);
}

std::vector<float> RotatedRows(std::vector<float> x) {
  for (size_t at = 0; at < x.size(); at += kHeadDim)
    HadamardTransform(std::span(x).subspan(at, kHeadDim));
  return x;
}

TEST_F(CacheVectors, Rotation) {
  EXPECT_EQ(HadamardMatrix(kHeadDim), vectors_.Floats("r3.H"));
  const std::vector<float> qh = RotatedRows(q_);
  const std::vector<float> kh = RotatedRows(k_);
  ExpectClose(qh, vectors_.Floats("r3.qH"), 1e-6);
  ExpectClose(kh, vectors_.Floats("r3.kH"), 1e-6);

  std::vector<float> scores, rotated_scores;
  for (size_t h = 0; h < kHeads; ++h) {
    for (size_t i = 0; i < kSteps * kSteps; ++i) {
      const size_t row = (h * kSteps + i / kSteps) * kHeadDim;
      const size_t column =
          (h / (kHeads / kKvHeads) * kSteps + i % kSteps) * kHeadDim;
      double plain = 0, rotated = 0;
      for (size_t d = 0; d < kHeadDim; ++d) {
        plain += static_cast<double>(q_[row + d]) *
                 static_cast<double>(k_[column + d]);
        rotated += static_cast<double>(qh[row + d]) *
                   static_cast<double>(kh[column + d]);
      }
      scores.push_back(static_cast<float>(plain));
      rotated_scores.push_back(static_cast<float>(rotated));
    }
  }
  ExpectClose(scores, vectors_.Floats("r3.scores"), 1e-5);
  ExpectClose(rotated_scores, vectors_.Floats("r3.scores"), 1e-5);
}

// The reference rotates by a matrix product, whose sums differ in the last bit:
// at most 0.2 % of the codes may be off by one.
TEST_F(CacheVectors, RotatedCache) {
  const std::vector<float> kh = RotatedRows(k_);
  const int64_t columns = static_cast<int64_t>(kh.size());
  const ir::Encoding encoding =
      Encode(Owned({1, columns}, kh), SettingsOf("16a8w"));
  const float wanted_scale = vectors_.Floats("r3.k_scale")[0];
  EXPECT_NEAR(encoding.scales[0], wanted_scale, wanted_scale * 1e-6f);
  const auto codes = CodesOf(encoding, kh, columns);
  const auto wanted = vectors_.Ints("r3.k_q");
  ASSERT_EQ(codes.size(), wanted.size());
  size_t different = 0;
  for (size_t i = 0; i < codes.size(); ++i) {
    EXPECT_LE(std::abs(codes[i] - wanted[i]), 1);
    if (codes[i] != wanted[i]) ++different;
  }
  EXPECT_LE(static_cast<double>(different),
            0.002 * static_cast<double>(codes.size()));
  ExpectClose(Attend(RotatedRows(q_), Rounded(encoding, {1, columns}, kh), v_),
              vectors_.Floats("r3.attn_s8"), 1e-5);
}

}  // namespace
}  // namespace hexllm::quant
