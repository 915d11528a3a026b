// Whole graphs: a tiny decoder gives the same logits however its tokens are cut
// into steps.
#include "ir/interpret.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>

#include "tests/support/tiny_decoder.h"

namespace hexllm::ir {
namespace {

using hexllm::testing::ExpectTensor;
using hexllm::testing::F32;
using hexllm::testing::F32Type;
using hexllm::testing::kTinyHeadDim;
using hexllm::testing::kTinyKvHeads;
using hexllm::testing::kTinyLayers;
using hexllm::testing::kTinyVocab;
using hexllm::testing::TinyDecoder;

constexpr float kHidden = -std::numeric_limits<float>::infinity();

// Feeds a decoder's graphs step by step: position p of the cache is column p of
// the past.
class Feeder {
 public:
  explicit Feeder(const Module& module) : module_(module) {}

  // Runs `tokens` through the graph `graph_index`, whose T they fill or pad;
  // returns logits of the real rows.
  std::vector<float> Step(size_t graph_index,
                          const std::vector<int64_t>& tokens) {
    const Graph& graph = module_.graphs[graph_index];
    std::vector<HostTensor> inputs;
    for (const GraphIo& io : graph.inputs)
      inputs.push_back(Input(graph, io, tokens));
    const std::vector<HostTensor> outputs = Interpret(module_, graph, inputs);
    for (size_t i = 0; i < graph.outputs.size(); ++i)
      Keep(graph.outputs[i].role, outputs[i], tokens.size());
    position_ += static_cast<int64_t>(tokens.size());
    const HostTensor& logits = outputs.back();
    EXPECT_EQ(graph.outputs.back().role.kind, RoleKind::kLogits);
    const auto rows = static_cast<ptrdiff_t>(tokens.size()) * kTinyVocab;
    return {logits.floats.begin(), logits.floats.begin() + rows};
  }

 private:
  // The cache of one layer: k and v of one KV head and position are
  // `kTinyHeadDim` numbers.
  using Cells = std::map<std::pair<int64_t, int64_t>,
                         std::vector<float>>;  // (head, position)

  HostTensor Input(const Graph& graph, const GraphIo& io,
                   const std::vector<int64_t>& tokens) const {
    const TensorType& type = graph.type(io.value);
    switch (io.role.kind) {
      case RoleKind::kToken: {
        HostTensor out{.type = type, .ints = tokens};
        out.ints.resize(static_cast<size_t>(graph.step_tokens), 0);
        return out;
      }
      case RoleKind::kRopeCos:
      case RoleKind::kRopeSin:
        return Rope(type, io.role.kind == RoleKind::kRopeCos);
      case RoleKind::kMask:
        return Mask(type, tokens.size());
      default:
        return Past(type, io.role);
    }
  }

  HostTensor Rope(const TensorType& type, bool cosine) const {
    HostTensor out{.type = type};
    for (int64_t t = 0; t < type.shape[0]; ++t) {
      for (int64_t i = 0; i < type.shape[1]; ++i) {
        const double angle = static_cast<double>(position_ + t) *
                             std::pow(100.0, -static_cast<double>(i) / 2);
        out.floats.push_back(
            static_cast<float>(cosine ? std::cos(angle) : std::sin(angle)));
      }
    }
    return out;
  }

  // Columns: P past, then T new. Padded rows see nothing.
  HostTensor Mask(const TensorType& type, size_t real_rows) const {
    HostTensor out{.type = type};
    const int64_t past = type.shape[1] - type.shape[0];
    for (int64_t t = 0; t < type.shape[0]; ++t) {
      for (int64_t c = 0; c < type.shape[1]; ++c) {
        const bool visible = c < past ? c < position_ : c - past <= t;
        out.floats.push_back(
            visible && t < static_cast<int64_t>(real_rows) ? 0 : kHidden);
      }
    }
    return out;
  }

  HostTensor Past(const TensorType& type, const Role& role) const {
    HostTensor out{.type = type};
    out.floats.assign(static_cast<size_t>(*NumElements(type.shape)),
                      123.0f);  // stale cells must not matter
    const bool keys = role.kind == RoleKind::kKIn;
    const int64_t past = type.shape[keys ? 2 : 1];
    const auto cells = (keys ? k_ : v_).find(role.index);
    if (cells == (keys ? k_ : v_).end()) return out;
    for (const auto& [at, values] : cells->second) {
      for (int64_t d = 0; d < kTinyHeadDim; ++d) {
        const auto& [head, position] = at;
        if (position >= past) continue;
        const int64_t cell = keys ? (head * kTinyHeadDim + d) * past + position
                                  : (head * past + position) * kTinyHeadDim + d;
        out.floats[static_cast<size_t>(cell)] = values[static_cast<size_t>(d)];
      }
    }
    return out;
  }

  void Keep(const Role& role, const HostTensor& tensor, size_t real_rows) {
    const bool keys = role.kind == RoleKind::kKOut;
    if (!keys && role.kind != RoleKind::kVOut) return;
    const int64_t steps = tensor.type.shape[keys ? 2 : 1];
    for (int64_t head = 0; head < kTinyKvHeads; ++head) {
      for (int64_t t = 0; t < static_cast<int64_t>(real_rows); ++t) {
        std::vector<float>& cell =
            (keys ? k_ : v_)[role.index][{head, position_ + t}];
        cell.clear();
        for (int64_t d = 0; d < kTinyHeadDim; ++d) {
          const int64_t from = keys ? (head * kTinyHeadDim + d) * steps + t
                                    : (head * steps + t) * kTinyHeadDim + d;
          cell.push_back(tensor.floats[static_cast<size_t>(from)]);
        }
      }
    }
  }

  const Module& module_;
  int64_t position_ = 0;
  std::map<int32_t, Cells> k_, v_;  // by layer
};

const std::vector<int64_t> kTokens = {3, 1, 4, 1, 5, 9, 2};

// Logits of kTokens, cut into steps of `step` tokens (the last one padded).
std::vector<float> Logits(int64_t step) {
  constexpr int64_t kContext = 12;
  TinyDecoder decoder;
  decoder.AddGraph("g", step, kContext);
  const Module module = std::move(decoder).Take();
  Feeder feeder(module);
  std::vector<float> logits;
  for (size_t at = 0; at < kTokens.size(); at += static_cast<size_t>(step)) {
    const size_t end = std::min(kTokens.size(), at + static_cast<size_t>(step));
    const auto begin = kTokens.begin();
    const std::vector<int64_t> tokens(begin + static_cast<ptrdiff_t>(at),
                                      begin + static_cast<ptrdiff_t>(end));
    for (const float value : feeder.Step(0, tokens)) logits.push_back(value);
  }
  return logits;
}

TEST(InterpretTest, LogitsDoNotDependOnTheCut) {
  const std::vector<float> one = Logits(1);
  ASSERT_EQ(one.size(), kTokens.size() * static_cast<size_t>(kTinyVocab));
  for (const float value : one) ASSERT_TRUE(std::isfinite(value));
  for (const int64_t step : {2, 3, 7, 12})
    EXPECT_EQ(Logits(step), one) << "T=" << step;
  // The same token at another place has other logits: attention and RoPE take
  // part.
  EXPECT_NE(
      std::vector(one.begin() + kTinyVocab, one.begin() + 2 * kTinyVocab),
      std::vector(one.begin() + 3 * kTinyVocab, one.begin() + 4 * kTinyVocab));
}

TEST(InterpretTest, OutputsStandInTheirOrderAndMayBeInnerValues) {
  Module module;
  Graph& graph = module.graphs.emplace_back();
  graph.name = "g";
  graph.step_tokens = 1;
  const ValueId in =
      graph.AddInput({.kind = RoleKind::kHiddenIn}, F32Type({1, 2}));
  const ValueId twice = graph.AddNode(OpKind::kAdd, {in, in}, {}, "twice");
  const ValueId squared =
      graph.AddNode(OpKind::kMul, {twice, twice}, {}, "squared");
  graph.AddOutput({.kind = RoleKind::kHiddenOut}, squared);
  graph.AddOutput({.kind = RoleKind::kTap, .index = 0, .name = "twice"}, twice);
  const std::vector<HostTensor> outputs =
      Interpret(module, graph, std::vector{F32({1, 2}, {1, -2})});
  ASSERT_EQ(outputs.size(), 2u);
  ExpectTensor(outputs[0], F32({1, 2}, {4, 16}));
  ExpectTensor(outputs[1], F32({1, 2}, {2, -4}));
}

TEST(InterpretDeathTest, ChecksItsInputs) {
  const Module module = hexllm::testing::MakeTinyDecoder(1, 1);
  const std::vector<HostTensor> none;
  EXPECT_EXIT(Interpret(module, module.graphs[0], none),
              ::testing::ExitedWithCode(70), "inputs.size");
  std::vector<HostTensor> wrong(module.graphs[0].inputs.size(),
                                F32({3}, {1, 2, 3}));
  EXPECT_EXIT(Interpret(module, module.graphs[0], wrong),
              ::testing::ExitedWithCode(70), "tensor.type == type");
}

}  // namespace
}  // namespace hexllm::ir
