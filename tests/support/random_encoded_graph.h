// Random verified graphs with encodings, and inputs for them: what a backend is
// compared with the interpreter on. The same seed gives the same graph
// everywhere.
//
// A graph has one style, as a recipe would give it:
//   kStatic   every f32 value has u8 or u16 codes; weights of linear i8, i4
//   (per
//             channel or tensor), LPBQ of 16, 32 or 64, or i16; norms u16;
//             biases i32; embedding tables none. Attention is taken apart,
//             caches are converted (RandomGraphOptions::lowered); a moved value
//             has the encoding of what it moves, k_in (v_in) that of the new
//             columns, the mask goes from code 0 (hidden) to the highest.
//   kHalf     the same graph, all of it f16.
//   kDynamic  values have none; some weights of linear are q4_1 or q8_0. With
//             whole attention and linear_add.
#pragma once

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "ir/encode.h"
#include "ir/graph.h"
#include "ir/interpret.h"
#include "ir/pseudo_random.h"
#include "tests/support/random_graph.h"

namespace hexllm::testing {

enum class EncodingStyle { kStatic, kHalf, kDynamic };

struct RandomEncodedGraph {
  ir::Module module;                   // one graph
  std::vector<ir::HostTensor> inputs;  // on the grids of their encodings
};

// Gives encodings to the values and constants of a lowered random graph, in the
// order of its nodes.
class RandomEncoder {
 public:
  RandomEncoder(ir::Module& module, uint64_t seed, EncodingStyle style)
      : module_(module),
        graph_(module.graphs[0]),
        random_(seed ^ 0x656e636f6465),
        style_(style) {}

  void Run(const std::vector<ir::HostTensor>& inputs) {
    if (style_ == EncodingStyle::kStatic) Observe(inputs);
    for (const ir::GraphIo& io : graph_.inputs) EncodeInput(io);
    for (const ir::Node& node : graph_.nodes) EncodeNode(node);
  }

 private:
  struct Range {
    float min = 0;
    float max = 0;
  };

  bool Chance(uint64_t percent) { return random_.Below(100) < percent; }
  template <typename T>
  T Pick(const std::vector<T>& items) {
    return items[static_cast<size_t>(random_.Below(items.size()))];
  }

  static Range RangeOf(std::span<const float> values) {
    Range range;
    for (const float value : values) {
      if (!std::isfinite(value)) continue;  // hidden scores
      range.min = std::min(range.min, value);
      range.max = std::max(range.max, value);
    }
    return range;
  }

  // Ranges of all f32 values on `inputs`.
  void Observe(const std::vector<ir::HostTensor>& inputs) {
    for (size_t i = 0; i < inputs.size(); ++i)
      ranges_[graph_.inputs[i].value] = RangeOf(inputs[i].floats);
    ir::Graph tapped = graph_;
    tapped.outputs.clear();
    for (const ir::Node& node : graph_.nodes)
      tapped.AddOutput({.kind = RoleKind::kTap, .name = "x"}, node.output);
    const auto outputs = ir::Interpret(module_, tapped, inputs);
    for (size_t i = 0; i < outputs.size(); ++i)
      ranges_[tapped.outputs[i].value] = RangeOf(outputs[i].floats);
  }

  // Unsigned codes for a range that contains 0.
  static ir::Encoding Codes(Range range, DType dtype) {
    const float most = dtype == DType::kU8 ? 255.0f : 65535.0f;
    const float scale = std::max((range.max - range.min) / most, 1e-8f);
    const float zero = std::clamp(std::rint(-range.min / scale), 0.0f, most);
    return {.dtype = dtype,
            .scales = {scale},
            .zero_points = {static_cast<int32_t>(zero)}};
  }

  // Sometimes narrower than what was seen, so that values are clipped.
  ir::Encoding Activation(ir::ValueId id) {
    if (style_ == EncodingStyle::kHalf) return {.dtype = DType::kF16};
    Range range = ranges_[id];
    if (Chance(20)) range = {range.min * 0.7f, range.max * 0.7f};
    return Codes(range, Chance(30) ? DType::kU8 : DType::kU16);
  }

  void EncodeInput(const ir::GraphIo& io) {
    ir::Value& value = graph_[io.value];
    if (style_ == EncodingStyle::kDynamic || value.type.dtype != DType::kF32)
      return;
    if (io.role.kind == RoleKind::kMask && style_ == EncodingStyle::kStatic) {
      value.encoding = Codes({.min = -kHiddenWidth, .max = 0},
                             Chance(30) ? DType::kU8 : DType::kU16);
    } else {
      value.encoding = Activation(io.value);
    }
  }

  void EncodeNode(const ir::Node& node) {
    EncodeWeights(node);
    if (style_ == EncodingStyle::kDynamic) return;
    auto& encoding = graph_[node.output].encoding;
    switch (node.op) {
      case ir::OpKind::kReshape:
      case ir::OpKind::kTranspose:
      case ir::OpKind::kSliceRows:
        encoding = graph_[node.inputs[0]].encoding;
        return;
      case ir::OpKind::kConcat:  // the cache has what the new columns have
        encoding = graph_[node.inputs[1]].encoding;
        graph_[node.inputs[0]].encoding = encoding;
        return;
      case ir::OpKind::kSoftmax:
        encoding = Probabilities();
        return;
      case ir::OpKind::kAdd:
        encoding = Activation(node.output);
        if (IsMask(node.inputs[1])) encoding = MaskedScores(node.output);
        return;
      default:
        encoding = Activation(node.output);
    }
  }

  bool IsMask(ir::ValueId id) const {
    return id == graph_.FindIo({.kind = RoleKind::kMask});
  }

  ir::Encoding MaskedScores(ir::ValueId id) {
    if (style_ == EncodingStyle::kHalf) return {.dtype = DType::kF16};
    Range range = ranges_[id];
    range.min -= kHiddenWidth / 2;
    return Codes(range, DType::kU16);
  }

  ir::Encoding Probabilities() {
    if (style_ == EncodingStyle::kHalf) return {.dtype = DType::kF16};
    if (Chance(30)) return {.dtype = DType::kU8, .scales = {1.0f / 256}};
    return {.dtype = DType::kU16, .scales = {1.0f / 65536}};
  }

  void EncodeWeights(const ir::Node& node) {
    const bool linear =
        node.op == ir::OpKind::kLinear || node.op == ir::OpKind::kLinearAdd;
    if (style_ == EncodingStyle::kDynamic) {
      if (linear) Set(node.inputs[1], BlockType(Weight(node.inputs[1])));
      return;
    }
    if (node.op == ir::OpKind::kEmbedding) return;
    for (size_t i = 1; i < node.inputs.size(); ++i) {
      if (!graph_[node.inputs[i]].constant.valid()) continue;
      if (style_ == EncodingStyle::kHalf) {
        Set(node.inputs[i], {{.dtype = DType::kF16}});
      } else if (!linear) {
        Set(node.inputs[i],
            Codes(RangeOf(ReadAll(node.inputs[i])), DType::kU16));
      } else if (i == 1) {
        Set(node.inputs[1], WeightCodes(node));
        ChooseCodes(graph_[node.inputs[1]].constant);
      } else {
        Set(node.inputs[i], BiasCodes(node));
      }
    }
  }

  const ir::Constant& Weight(ir::ValueId id) const {
    return module_.constants[graph_[id].constant];
  }
  std::vector<float> ReadAll(ir::ValueId id) const {
    return ir::ReadConstant(Weight(id)).floats;
  }
  void Set(ir::ValueId id, std::optional<ir::Encoding> encoding) {
    if (encoding)
      module_.constants.SetEncoding(graph_[id].constant, *std::move(encoding));
  }

  // Half of the weights of i8 have other codes than the nearest.
  void ChooseCodes(ir::ConstantId id) {
    const ir::Constant& weight = module_.constants[id];
    ir::PseudoRandom random("codes of " + weight.name);
    if (weight.encoding->dtype != DType::kI8 || random.Below(2) == 0) return;
    const ir::CodeRange range = ir::CodesOf(*weight.encoding);
    const auto width = static_cast<size_t>(ir::RowElems(weight));
    auto chosen = std::make_shared<std::vector<std::byte>>();
    std::vector<float> values(width);
    std::vector<int32_t> codes(width);
    for (int64_t row = 0; row < ir::NumRows(weight); ++row) {
      ir::ReadRow(weight, row, values);
      ir::EncodeRow(*weight.encoding, row, values, codes);
      for (const int32_t code : codes) {
        const int32_t other = code + static_cast<int32_t>(random.Below(3)) - 1;
        chosen->push_back(static_cast<std::byte>(
            std::clamp(other, range.least, range.most) & 255));
      }
    }
    module_.constants.SetCodes(id, *chosen, chosen);
  }

  std::optional<ir::Encoding> BlockType(const ir::Constant& weight) {
    if (weight.type.shape[1] % 32 != 0 || Chance(20)) return std::nullopt;
    // As stored, now and then.
    if (weight.type.dtype == DType::kQ4_1 || weight.type.dtype == DType::kQ8_0)
      return ir::Encoding{.dtype = weight.type.dtype};
    return ir::Encoding{.dtype = Chance(50) ? DType::kQ4_1 : DType::kQ8_0};
  }

  // What a linear with the activations of its input may have.
  ir::Encoding WeightCodes(const ir::Node& linear) {
    const bool wide = graph_[linear.inputs[0]].encoding->dtype == DType::kU16;
    switch (random_.Below(wide ? 5 : 3)) {
      case 0:
        return Channels(linear.inputs[1], 8);
      case 1:
        return Channels(linear.inputs[1], 4);
      case 2:
        return Tensor(linear.inputs[1], DType::kI8);
      case 3:
        return Tensor(linear.inputs[1], DType::kI16);
      default:
        return Blocks(linear.inputs[1]);
    }
  }

  ir::Encoding Tensor(ir::ValueId id, DType dtype) const {
    ir::Encoding encoding{.dtype = dtype, .scales = {1}};
    encoding.scales = {ScaleOf(ReadAll(id), ir::CodesOf(encoding).most)};
    return encoding;
  }

  ir::Encoding Channels(ir::ValueId id, int32_t bits) const {
    ir::Encoding encoding{.dtype = DType::kI8, .bits = bits, .axis = 0};
    const std::vector<float> values = ReadAll(id);
    const auto width = static_cast<size_t>(graph_.type(id).shape[1]);
    for (size_t at = 0; at < values.size(); at += width) {
      encoding.scales.push_back(ScaleOf(std::span(values).subspan(at, width),
                                        ir::CodesOf(encoding).most));
    }
    return encoding;
  }

  // LPBQ; the fixtures' formula.
  ir::Encoding Blocks(ir::ValueId id) {
    const int64_t columns = graph_.type(id).shape[1];
    std::vector<int32_t> fitting;
    for (const int32_t block : {16, 32, 64}) {
      if (columns % block == 0) fitting.push_back(block);
    }
    if (fitting.empty()) return Channels(id, 4);
    ir::Encoding encoding{.dtype = DType::kI8,
                          .bits = 4,
                          .axis = 0,
                          .block = Chance(50) ? fitting.back() : Pick(fitting)};
    const std::vector<float> values = ReadAll(id);
    const auto width = static_cast<size_t>(columns);
    for (size_t at = 0; at < values.size(); at += width)
      AddBlocks(std::span(values).subspan(at, width), encoding);
    return encoding;
  }

  static void AddBlocks(std::span<const float> row, ir::Encoding& encoding) {
    const auto block = static_cast<size_t>(encoding.block);
    std::vector<float> scales;
    for (size_t at = 0; at < row.size(); at += block)
      scales.push_back(ScaleOf(row.subspan(at, block), 7));
    const float channel = *std::max_element(scales.begin(), scales.end()) / 16;
    encoding.scales.push_back(channel);
    for (const float scale : scales) {
      encoding.block_scales.push_back(static_cast<uint8_t>(
          std::clamp(std::rint(scale / channel), 1.0f, 16.0f)));
    }
  }

  ir::Encoding BiasCodes(const ir::Node& linear) const {
    const ir::Encoding& x = *graph_[linear.inputs[0]].encoding;
    const ir::Encoding& w = *Weight(linear.inputs[1]).encoding;
    ir::Encoding encoding{.dtype = DType::kI32, .axis = 0};
    const auto rows =
        static_cast<size_t>(graph_.type(linear.inputs[1]).shape[0]);
    for (size_t n = 0; n < rows; ++n) {
      encoding.scales.push_back(static_cast<float>(
          static_cast<double>(x.scales[0]) *
          static_cast<double>(w.scales[w.axis < 0 ? 0 : n])));
    }
    return encoding;
  }

  static float ScaleOf(std::span<const float> values, int32_t most) {
    float largest = 0;
    for (const float value : values)
      largest = std::max(largest, std::fabs(value));
    return std::max(largest / static_cast<float>(most), 1e-8f);
  }

  static constexpr float kHiddenWidth = 40;

  ir::Module& module_;
  ir::Graph& graph_;
  ir::PseudoRandom random_;
  const EncodingStyle style_;
  std::map<ir::ValueId, Range> ranges_;
};

inline RandomEncodedGraph MakeRandomEncodedGraph(uint64_t seed,
                                                 EncodingStyle style) {
  const bool dynamic = style == EncodingStyle::kDynamic;
  RandomEncodedGraph out{
      .module = MakeRandomGraph(
          {.seed = seed, .lowered = !dynamic, .fused = dynamic}),
      .inputs = {}};
  const ir::Graph& graph = out.module.graphs[0];
  out.inputs = RandomInputs(graph, seed);
  RandomEncoder(out.module, seed, style).Run(out.inputs);
  for (size_t i = 0; i < out.inputs.size(); ++i) {
    const ir::Value& value = graph[graph.inputs[i].value];
    if (!value.encoding) continue;
    ir::RoundToEncoding(*value.encoding, value.type.shape,
                        out.inputs[i].floats);
  }
  return out;
}

// The attribute with which chips round the output of `node`, if any: sums of
// codes lose their low `bits`.
class ChipRounding {
 public:
  ChipRounding(const ir::Module& module, int64_t bits)
      : module_(module), bits_(bits) {}

  std::optional<ir::Attr> Of(const ir::Node& node) const {
    const DType x = CodesOf(node.inputs[0]);
    const DType y = CodesOf(node.output);
    switch (node.op) {
      case ir::OpKind::kLinear:
      case ir::OpKind::kMatMul:
        return OfSums(node, x, y);
      case ir::OpKind::kConvert:
        return OfConvert(node, x, y);
      case ir::OpKind::kSoftmax:
        if (!HasCodes(x) || y != DType::kU16) return std::nullopt;
        return Flag(ir::AttrName::kFixedPoint);
      case ir::OpKind::kRmsNorm:
        if (y == DType::kF16) return Flag(ir::AttrName::kFastRoot);
        if (y == DType::kU16) return Flag(ir::AttrName::kRoundsDown);
        return std::nullopt;
      default:
        return std::nullopt;
    }
  }

 private:
  static ir::Attr Flag(ir::AttrName name) { return {name, int64_t{1}}; }

  std::optional<ir::Attr> OfSums(const ir::Node& node, DType x, DType y) const {
    if (!HasCodes(x) || !HasCodes(CodesOf(node.inputs[1]))) return std::nullopt;
    const bool bytes = x == DType::kU8 && y == DType::kU8;
    if (node.op == ir::OpKind::kLinear && bytes)
      return Flag(ir::AttrName::kFixedPoint);
    return ir::Attr{ir::AttrName::kDroppedBits, bits_};
  }

  std::optional<ir::Attr> OfConvert(const ir::Node& node, DType x,
                                    DType y) const {
    if (x == DType::kF16 && y == DType::kU8)
      return Flag(ir::AttrName::kHalfSteps);
    const ir::Graph& graph = module_.graphs[0];
    if (!HasCodes(x) || !HasCodes(y) ||
        !ir::FindConversion(*graph[node.inputs[0]].encoding,
                            *graph[node.output].encoding)) {
      return std::nullopt;
    }
    return Flag(ir::AttrName::kFixedPoint);
  }

  // kF32: no encoding.
  DType CodesOf(ir::ValueId id) const {
    const ir::Value& value = module_.graphs[0][id];
    const auto& encoding = value.constant.valid()
                               ? module_.constants[value.constant].encoding
                               : value.encoding;
    return encoding ? encoding->dtype : DType::kF32;
  }
  static bool HasCodes(DType dtype) {
    return dtype != DType::kF32 && ir::HasCodes({.dtype = dtype});
  }

  const ir::Module& module_;
  int64_t bits_;
};

// In graphs of halves what is converted becomes u8.
inline void RoundAsChips(ir::Module& module, int64_t bits) {
  const ChipRounding rounding(module, bits);
  ir::Graph& graph = module.graphs[0];
  for (ir::Node& node : graph.nodes) {
    auto& y = graph[node.output].encoding;
    if (node.op == ir::OpKind::kConvert && y && y->dtype == DType::kF16) {
      y = ir::Encoding{
          .dtype = DType::kU8, .scales = {0.017f}, .zero_points = {120}};
    }
    if (const auto attr = rounding.Of(node)) node.attrs.push_back(*attr);
  }
}

// What the interpreter computes for every node, and the inputs.
inline std::map<ir::ValueId, ir::HostTensor> AllValues(
    const RandomEncodedGraph& made) {
  const ir::Graph& graph = made.module.graphs[0];
  std::map<ir::ValueId, ir::HostTensor> values;
  for (size_t i = 0; i < made.inputs.size(); ++i) {
    values[graph.inputs[i].value] = made.inputs[i];
  }
  ir::Graph tapped = graph;
  tapped.outputs.clear();
  for (const ir::Node& node : graph.nodes) {
    tapped.AddOutput({.kind = RoleKind::kTap, .name = "x"}, node.output);
  }
  auto outputs = ir::Interpret(made.module, tapped, made.inputs);
  for (size_t i = 0; i < outputs.size(); ++i) {
    values[tapped.outputs[i].value] = std::move(outputs[i]);
  }
  return values;
}

}  // namespace hexllm::testing
