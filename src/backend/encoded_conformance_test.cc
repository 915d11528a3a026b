// Graphs with encodings on every backend against the interpreter: node by node,
// then whole graphs of the ops whose results are exact, and one backend against
// itself in all its forms.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>

#include "backend/cpu/engine.h"
#include "ir/interpret.h"
#include "tests/support/random_encoded_graph.h"
#include "tests/support/run_graph.h"

namespace hexllm {
namespace {

using cpu::Isa;
using ir::HostTensor;
using ir::OpKind;
using testing::EncodingStyle;
using testing::RandomEncodedGraph;

constexpr EncodingStyle kStyles[] = {
    EncodingStyle::kStatic, EncodingStyle::kHalf, EncodingStyle::kDynamic};
constexpr std::string_view kStyleNames[] = {"static", "half", "dynamic"};

std::unique_ptr<Engine> MakeEngine(const cpu::EngineOptions& options) {
  auto engine = cpu::CreateEngine(options);
  return engine.ok() ? *std::move(engine) : nullptr;
}

// Plans keep factors as f32.
void RoundFactors(ir::Graph& graph) {
  for (ir::Node& node : graph.nodes) {
    for (ir::Attr& attr : node.attrs) {
      if (attr.name != ir::AttrName::kScale &&
          attr.name != ir::AttrName::kFactor) {
        continue;
      }
      attr.value =
          static_cast<double>(static_cast<float>(std::get<double>(attr.value)));
    }
  }
}

// Every other graph rounds as chips do.
void RoundOften(ir::Module& module, uint64_t seed) {
  if (seed % 2 == 0) return;
  testing::RoundAsChips(module, static_cast<int64_t>(1 + seed % 31));
}

RandomEncodedGraph MakeGraph(uint64_t seed, EncodingStyle style) {
  RandomEncodedGraph made = testing::MakeRandomEncodedGraph(seed, style);
  RoundFactors(made.module.graphs[0]);
  RoundOften(made.module, seed);
  return made;
}

// --- Node by node ---

// A module of one graph with `node` alone; what it computes with are inputs.
struct OneNode {
  ir::Module module;
  std::vector<HostTensor> inputs;
};

OneNode Isolate(const RandomEncodedGraph& made, const ir::Node& node,
                const std::map<ir::ValueId, HostTensor>& values) {
  const ir::Graph& from = made.module.graphs[0];
  OneNode out;
  out.module.constants = made.module.constants;
  ir::Graph& graph = out.module.graphs.emplace_back();
  graph.name = "node";
  graph.step_tokens = from.step_tokens;
  graph.context_tokens = from.context_tokens;
  std::map<ir::ValueId, ir::ValueId> copies;
  std::vector<ir::ValueId> in;
  for (const ir::ValueId id : node.inputs) {
    const ir::Value& value = from[id];
    if (value.constant.valid()) {
      in.push_back(graph.AddConstant(value.constant,
                                     made.module.constants[value.constant]));
      continue;
    }
    if (!copies.contains(id)) {
      copies[id] =
          graph.AddInput({.kind = RoleKind::kEmbedding,
                          .index = static_cast<int32_t>(copies.size())},
                         value.type);
      graph[copies[id]].encoding = value.encoding;
      out.inputs.push_back(values.at(id));
    }
    in.push_back(copies[id]);
  }
  const ir::ValueId output = graph.AddNode(node.op, in, node.attrs, "node");
  graph[output].encoding = from[node.output].encoding;
  graph.AddOutput({.kind = RoleKind::kTap, .name = "out"}, output);
  return out;
}

// How far the output of a node may be from the interpreter's.
enum class Exactness { kExact, kOneCode };

Exactness ExactnessOf(const ir::Module& module, const ir::Node& node) {
  const ir::Graph& graph = module.graphs[0];
  switch (node.op) {
    case OpKind::kEmbedding:
    case OpKind::kReshape:
    case OpKind::kTranspose:
    case OpKind::kSliceRows:
    case OpKind::kConcat:
    case OpKind::kConvert:
    case OpKind::kAdd:
    case OpKind::kMul:
    case OpKind::kScale:
    case OpKind::kMatMul:
      return Exactness::kExact;
    case OpKind::kLinear:
    case OpKind::kLinearAdd: {
      const auto& encoding =
          module.constants[graph[node.inputs[1]].constant].encoding;
      const bool codes = encoding && encoding->dtype != DType::kF16;
      return codes ? Exactness::kExact : Exactness::kOneCode;
    }
    default:
      return Exactness::kOneCode;
  }
}

// What a code, or a rounding to f16, may change in a number near `value`.
float OneCode(const std::optional<ir::Encoding>& encoding, float value) {
  const float magnitude = std::max(1.0f, std::fabs(value));
  if (!encoding) return 1e-5f * magnitude;
  if (encoding->dtype == DType::kF16) return magnitude / 1024;
  return 1.001f * encoding->scales[0];
}

// Bit for bit, but for the sign of zero and the kind of NaN.
void ExpectSame(const HostTensor& found, const HostTensor& wanted) {
  ASSERT_EQ(found.floats.size(), wanted.floats.size());
  for (size_t i = 0; i < found.floats.size(); ++i) {
    const float a = found.floats[i];
    const float b = wanted.floats[i];
    ASSERT_TRUE(a == b || (std::isnan(a) && std::isnan(b)))
        << "element " << i << ": found " << a << ", expected " << b;
  }
}

void ExpectClose(const HostTensor& found, const HostTensor& wanted,
                 const std::optional<ir::Encoding>& encoding) {
  ASSERT_EQ(found.floats.size(), wanted.floats.size());
  for (size_t i = 0; i < found.floats.size(); ++i) {
    const float limit = OneCode(encoding, wanted.floats[i]);
    ASSERT_LE(std::fabs(found.floats[i] - wanted.floats[i]), limit)
        << "element " << i << ": found " << found.floats[i] << ", expected "
        << wanted.floats[i];
  }
}

class EncodedNodes
    : public ::testing::TestWithParam<std::tuple<EncodingStyle, Isa>> {};

TEST_P(EncodedNodes, MatchTheInterpreter) {
  const auto [style, isa] = GetParam();
  const auto engine = MakeEngine({.threads = 1, .isa = isa});
  if (engine == nullptr) GTEST_SKIP() << "this CPU has no " << IsaName(isa);
  std::map<OpKind, int> compared;
  for (uint64_t seed = 0; seed < 25; ++seed) {
    const RandomEncodedGraph made = MakeGraph(seed, style);
    const ir::Graph& graph = made.module.graphs[0];
    const auto values = AllValues(made);
    for (const ir::Node& node : graph.nodes) {
      SCOPED_TRACE("seed " + std::to_string(seed) + ", " +
                   graph[node.output].name);
      const OneNode one = Isolate(made, node, values);
      const auto found = testing::RunOnEngine(one.module, *engine, one.inputs);
      ASSERT_TRUE(found.ok()) << found.error().message;
      const HostTensor& wanted = values.at(node.output);
      if (ExactnessOf(made.module, node) == Exactness::kExact) {
        ExpectSame((*found)[0], wanted);
      } else {
        ExpectClose((*found)[0], wanted, graph[node.output].encoding);
      }
      if (HasFatalFailure()) return;
      ++compared[node.op];
    }
  }
  const bool dynamic = style == EncodingStyle::kDynamic;
  EXPECT_GT(compared[OpKind::kLinear], 100);
  EXPECT_GT(compared[dynamic ? OpKind::kLinearAdd : OpKind::kMatMul], 5);
}

INSTANTIATE_TEST_SUITE_P(
    Cpu, EncodedNodes,
    ::testing::Combine(::testing::ValuesIn(kStyles),
                       ::testing::Values(Isa::kScalar, Isa::kAvx2, Isa::kAvx512,
                                         Isa::kAvx512Vnni, Isa::kNeon,
                                         Isa::kNeonDot)),
    [](const auto& param) {
      const auto style = static_cast<size_t>(std::get<0>(param.param));
      return std::string(kStyleNames[style]) + "_" +
             std::string(IsaName(std::get<1>(param.param)));
    });

// --- Whole graphs ---

// Replaces every op whose result depends on how exp or a float sum is computed
// by a scale of its first input.
void KeepExactOps(ir::Graph& graph) {
  for (ir::Node& node : graph.nodes) {
    switch (node.op) {
      case OpKind::kRmsNorm:
      case OpKind::kLayerNorm:
      case OpKind::kRope:
      case OpKind::kAttention:
      case OpKind::kSilu:
      case OpKind::kGelu:
      case OpKind::kSoftcap:
      case OpKind::kSoftmax:
        node = {.op = OpKind::kScale,
                .inputs = {node.inputs[0]},
                .output = node.output,
                .attrs = {{ir::AttrName::kFactor, 0.75}}};
        break;
      default:
        break;
    }
  }
}

// A random graph of exact ops with encodings and inputs for it.
RandomEncodedGraph MakeExactGraph(uint64_t seed, EncodingStyle style) {
  const bool dynamic = style == EncodingStyle::kDynamic;
  RandomEncodedGraph made{
      .module = testing::MakeRandomGraph(
          {.seed = seed, .lowered = !dynamic, .fused = dynamic}),
      .inputs = {}};
  ir::Graph& graph = made.module.graphs[0];
  KeepExactOps(graph);
  RoundFactors(graph);
  made.inputs = testing::RandomInputs(graph, seed);
  testing::RandomEncoder(made.module, seed, style).Run(made.inputs);
  for (size_t i = 0; i < made.inputs.size(); ++i) {
    const ir::Value& value = graph[graph.inputs[i].value];
    if (!value.encoding) continue;
    RoundToEncoding(*value.encoding, value.type.shape, made.inputs[i].floats);
  }
  RoundOften(made.module, seed);
  return made;
}

bool IsExact(const ir::Module& module) {
  return std::all_of(module.graphs[0].nodes.begin(),
                     module.graphs[0].nodes.end(), [&](const ir::Node& node) {
                       return ExactnessOf(module, node) == Exactness::kExact;
                     });
}

std::vector<uint32_t> Bits(const std::vector<HostTensor>& tensors) {
  std::vector<uint32_t> bits;
  for (const HostTensor& tensor : tensors) {
    for (const float value : tensor.floats) {
      bits.push_back(std::bit_cast<uint32_t>(value));
    }
  }
  return bits;
}

// Bit for bit: codes on the way and at the outputs. Float sums of linears that
// have no encoding are left out, so some graphs are.
TEST(EncodedGraphs, ExactOpsMatchTheInterpreter) {
  const auto engine = MakeEngine({.threads = 2, .grain_work = 1});
  for (const EncodingStyle style :
       {EncodingStyle::kStatic, EncodingStyle::kDynamic}) {
    int compared = 0;
    for (uint64_t seed = 0; seed < 300; ++seed) {
      SCOPED_TRACE("seed " + std::to_string(seed));
      const RandomEncodedGraph made = MakeExactGraph(seed, style);
      if (!IsExact(made.module)) continue;
      const auto found =
          testing::RunOnEngine(made.module, *engine, made.inputs);
      ASSERT_TRUE(found.ok()) << found.error().message;
      const auto wanted =
          ir::Interpret(made.module, made.module.graphs[0], made.inputs);
      for (size_t i = 0; i < wanted.size(); ++i) {
        SCOPED_TRACE(RoleToString(made.module.graphs[0].outputs[i].role));
        ExpectSame((*found)[i], wanted[i]);
        if (HasFatalFailure()) return;
      }
      ++compared;
    }
    EXPECT_GE(compared, style == EncodingStyle::kStatic ? 300 : 30);
  }
}

// Float ops too: whatever runs them, the bits are the same.
TEST(EncodedGraphs, InstructionSetsAndThreadsChangeNothing) {
  std::vector<std::unique_ptr<Engine>> engines;
  for (const Isa isa : {Isa::kScalar, Isa::kAvx2, Isa::kAvx512,
                        Isa::kAvx512Vnni, Isa::kNeon, Isa::kNeonDot}) {
    for (const int threads : {1, 3}) {
      auto engine =
          MakeEngine({.threads = threads, .isa = isa, .grain_work = 1});
      if (engine != nullptr) engines.push_back(std::move(engine));
    }
  }
  for (const EncodingStyle style : kStyles) {
    for (uint64_t seed = 0; seed < 20; ++seed) {
      SCOPED_TRACE("seed " + std::to_string(seed));
      const RandomEncodedGraph made = MakeGraph(seed, style);
      std::vector<uint32_t> first;
      for (const auto& engine : engines) {
        const auto found =
            testing::RunOnEngine(made.module, *engine, made.inputs);
        ASSERT_TRUE(found.ok()) << found.error().message;
        if (first.empty()) first = Bits(*found);
        ASSERT_EQ(Bits(*found), first);
      }
    }
  }
}

}  // namespace
}  // namespace hexllm
