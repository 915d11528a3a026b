// The verifier refuses each kind of defect, and says where.
#include "ir/verify.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "tests/support/ir_tensors.h"
#include "tests/support/tiny_decoder.h"

namespace hexllm::ir {
namespace {

using hexllm::testing::F32Type;
using hexllm::testing::MakeTinyDecoder;
using ::testing::HasSubstr;

// Changes a verified module (one graph of T=2, C=5) into a bad one.
struct Defect {
  std::string name;
  std::function<void(Module&, Graph&)> make;
  std::string message;
};

void PrintTo(const Defect& defect, std::ostream* out) { *out << defect.name; }

class VerifyTest : public ::testing::TestWithParam<Defect> {};

TEST_P(VerifyTest, Refuses) {
  Module module = MakeTinyDecoder(2, 5);
  ASSERT_TRUE(Verify(module).ok());
  GetParam().make(module, module.graphs[0]);
  const Status status = Verify(module);
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code, ErrorCode::kBadInput);
  EXPECT_THAT(status.error().message, HasSubstr(GetParam().message));
  EXPECT_THAT(status.error().message, Not(HasSubstr("\n")));
}

Value& ValueOf(Graph& graph, const Role& role) {
  return graph[graph.FindIo(role)];
}

Node& FirstNode(Graph& graph, OpKind op) {
  for (Node& node : graph.nodes) {
    if (node.op == op) return node;
  }
  ADD_FAILURE() << "no such node";
  return graph.nodes[0];
}

std::vector<Defect> HeaderDefects() {
  return {
      {"EmptyName", [](Module&, Graph& g) { g.name.clear(); },
       "expected a name"},
      {"BadName", [](Module&, Graph& g) { g.name = "a b\n"; },
       "graph 'a b\\x0a': expected a name"},
      {"NameTwice", [](Module& m, Graph& g) { m.graphs.push_back(Graph(g)); },
       "the name occurs twice"},
      {"NoTokens", [](Module&, Graph& g) { g.step_tokens = 0; },
       "expected 1 <= T <= C, found T=0 C=5"},
      {"ContextTooShort", [](Module&, Graph& g) { g.context_tokens = 1; },
       "expected 1 <= T <= C"},
  };
}

std::vector<Defect> IdDefects() {
  return {
      {"InputId", [](Module&, Graph& g) { g.inputs[0].value = {}; },
       "input 0: no value -1"},
      {"InputIdStale", [](Module&, Graph& g) { g.inputs[0].value = {999}; },
       "input 0: no value 999"},
      {"InputIsNodeOutput",
       [](Module&, Graph& g) { g.inputs[0].value = g.nodes[0].output; },
       "is a node output"},
      {"InputTwice",
       [](Module&, Graph& g) { g.inputs[1].value = g.inputs[0].value; },
       "is an input twice"},
      {"OutputId", [](Module&, Graph& g) { g.outputs[0].value = {}; },
       "output 0: no value -1"},
      {"OutputIsInput",
       [](Module&, Graph& g) { g.outputs[0].value = g.inputs[0].value; },
       "is no node's output"},
      {"NodeInputId", [](Module&, Graph& g) { g.nodes[3].inputs[0] = {999}; },
       "input 0: no value 999"},
      {"NodeOutputId", [](Module&, Graph& g) { g.nodes[3].output = {}; },
       "node 3: output: no value -1"},
      {"UseBeforeMade",
       [](Module&, Graph& g) { std::swap(g.nodes[2], g.nodes[3]); }, "node 2 "},
      {"UseOfOwnOutput",
       [](Module&, Graph& g) { g.nodes[1].inputs[0] = g.nodes[1].output; },
       "is used before it is made"},
      {"TwoProducers",
       [](Module&, Graph& g) { g.nodes[3].output = g.nodes[2].output; },
       "has another producer"},
      {"StaleProducer",
       [](Module&, Graph& g) { g[g.nodes[3].output].producer = {0}; },
       "has another producer"},
      {"DeadId",
       [](Module&, Graph& g) {
         g.values.push_back({.type = F32Type({1}), .name = "x"});
       },
       "dead id"},
      {"DeadProducer",
       [](Module&, Graph& g) {
         g.values.push_back(
             {.type = F32Type({1}), .name = "x", .producer = {0}});
       },
       "dead id"},
      {"NoSuchOp",
       [](Module&, Graph& g) { g.nodes[0].op = static_cast<OpKind>(200); },
       "no such op"},
  };
}

std::vector<Defect> NodeDefects() {
  return {
      {"Arity",
       [](Module&, Graph& g) { FirstNode(g, OpKind::kAdd).inputs.pop_back(); },
       "expected 2 to 2 inputs, found 1"},
      {"MissingAttr",
       [](Module&, Graph& g) { FirstNode(g, OpKind::kReshape).attrs.clear(); },
       "expected 1 attributes"},
      {"AttrType",
       [](Module&, Graph& g) {
         FirstNode(g, OpKind::kReshape).attrs[0].value = 1.0;
       },
       "list of integers"},
      {"AttrNotFinite",
       [](Module&, Graph& g) {
         FirstNode(g, OpKind::kAttention).attrs[0].value = std::nan("");
       },
       "attribute scale: expected a finite number"},
      {"InputType",
       [](Module&, Graph& g) {
         FirstNode(g, OpKind::kAdd).inputs[0] = g.FindIo({RoleKind::kMask});
       },
       "'model.layers.0.attention_residual': add: b: expected"},
      {"OutputType",
       [](Module&, Graph& g) { g[g.nodes[1].output].type.shape = {3}; },
       "output: expected f32[2,32], found f32[3]"},
      {"NegativeDim", [](Module&, Graph& g) { g.values[0].type.shape = {-1}; },
       "value 0: bad shape i32[-1]"},
      {"HugeShape",
       [](Module&, Graph& g) {
         g.values[0].type.shape = {INT64_MAX, INT64_MAX};
       },
       "value 0: bad shape"},
  };
}

std::vector<Defect> RoleDefects() {
  return {
      {"RoleTwice",
       [](Module&, Graph& g) { g.inputs[7].role = g.inputs[5].role; },
       "v_in[0]: the role occurs twice"},
      {"Direction",
       [](Module&, Graph& g) {
         g.outputs[0].role = {.kind = RoleKind::kMask, .index = 1};
       },
       "mask[1]: an input's role on an output"},
      {"DirectionIn",
       [](Module&, Graph& g) {
         g.inputs[0].role = {.kind = RoleKind::kLogits};
       },
       "an output's role on an input"},
      {"NegativeIndex", [](Module&, Graph& g) { g.inputs[3].role.index = -1; },
       "bad index -1"},
      {"IndexOfSingle", [](Module&, Graph& g) { g.inputs[0].role.index = 1; },
       "bad index 1"},
      {"TapWithoutName",
       [](Module&, Graph& g) {
         g.AddOutput({.kind = RoleKind::kTap}, g.nodes[0].output);
       },
       "a tap needs a name"},
      {"NameOfOther", [](Module&, Graph& g) { g.inputs[0].role.name = "x"; },
       "other roles have none"},
      {"TokenShape", [](Module&, Graph& g) { g.step_tokens = 1; },
       "token: expected i32[T] with T=1, found i32[2]"},
      {"MaskShape", [](Module&, Graph& g) { g.context_tokens = 6; },
       "mask[0]: expected f32[T,C] with T=2, C=6, found f32[2,5]"},
      {"TokenType",
       [](Module&, Graph& g) {
         g.inputs[0].role = {.kind = RoleKind::kEmbedding};
       },
       "embedding: expected f32[T,M]"},
      {"KeyOfOtherLayer",
       [](Module&, Graph& g) {
         std::swap(g.outputs[0].role.kind, g.outputs[1].role.kind);
       },
       "_out[0]: expected"},
      {"LogitsShape",
       [](Module&, Graph& g) {
         g.outputs.back().value = FirstNode(g, OpKind::kRope).output;
       },
       "logits: expected f32[N,V], found f32[2,4,4]"},
      {"HiddenShape",
       [](Module&, Graph& g) {
         g.AddOutput({.kind = RoleKind::kHiddenOut},
                     FirstNode(g, OpKind::kRope).output);
       },
       "hidden_out: expected f32[T,M] with T=2"},
  };
}

std::vector<Defect> ConstantDefects() {
  const auto add = [](Module& m, Constant constant) {
    m.constants.Add(std::move(constant));
  };
  const Constant good =
      MakeRandomConstant("extra", {.dtype = DType::kQ8_0, .shape = {4, 32}});
  const auto with = [add, good](std::function<void(Constant&)> change) {
    return [=](Module& m, Graph&) {
      Constant constant = good;
      change(constant);
      add(m, std::move(constant));
    };
  };
  return {
      {"Bytes", with([](Constant& c) { c.bytes = c.bytes.first(5); }),
       "'extra': expected 136 bytes for q8_0[4,32], found 5"},
      {"Rows", with([](Constant& c) {
         c.rows = {0, 1};
       }),
       "expected 4 row numbers, found 2"},
      {"RowRange", with([](Constant& c) {
         c.rows = {0, 1, 2, 4};
       }),
       "row 4 is not among the 4 stored"},
      {"RowNegative", with([](Constant& c) {
         c.rows = {0, 1, 2, -1};
       }),
       "row -1 is not"},
      {"RowBytes", with([](Constant& c) {
         c.rows = {0, 0, 0, 0}, c.bytes = c.bytes.first(50);
       }),
       "expected whole rows of 34 bytes"},
      {"Blocks", with([](Constant& c) {
         c.type.shape = {4, 33};
       }),
       "bad shape q8_0[4,33]"},
      {"Empty", with([](Constant& c) {
         c.type.shape = {0, INT64_MAX, INT64_MAX};
       }),
       "shape q8_0[0,"},
      {"Integers", with([](Constant& c) { c.type.dtype = DType::kI32; }),
       "expected a float-like type, found i32[4,32]"},
      {"ConstantId",
       [](Module&, Graph& g) { g[g.nodes[0].inputs[1]].constant = {999}; },
       "no constant 999"},
      {"ConstantTwice",
       [](Module&, Graph& g) { g.values.push_back(g[g.nodes[0].inputs[1]]); },
       "has two values"},
      {"ConstantType",
       [](Module&, Graph& g) {
         g[g.nodes[0].inputs[1]].type.dtype = DType::kBF16;
       },
       "expected its constant's type f16[11,32], found bf16[11,32]"},
      {"ConstantProducer",
       [](Module&, Graph& g) { g[g.nodes[0].inputs[1]].producer = {0}; },
       "a constant with a producer"},
  };
}

// On the value of the mask, f32[2,5].
std::vector<Defect> EncodingDefects() {
  const auto with = [](Encoding encoding) {
    return [encoding](Module&, Graph& g) {
      ValueOf(g, {RoleKind::kMask}).encoding = encoding;
    };
  };
  return {
      {"EncodingAxis", with({.axis = 2, .scales = {1}}), "no axis 2"},
      {"EncodingAxisLow", with({.axis = -2, .scales = {1}}), "no axis -2"},
      {"EncodingScales", with({.axis = 0, .scales = {1}}),
       "expected 2 scales, found 1"},
      {"EncodingNoScale", with({}), "expected 1 scales, found 0"},
      {"EncodingZeroPoints",
       with({.axis = 0, .scales = {1, 1}, .zero_points = {3}}),
       "expected 2 zero points, found 1"},
      {"EncodingZeroPointHigh",
       with({.dtype = DType::kU8, .scales = {1}, .zero_points = {256}}),
       "expected zero points within 0 .. 255, found 256"},
      {"EncodingZeroPointLow",
       with({.dtype = DType::kI8, .scales = {1}, .zero_points = {-128}}),
       "expected zero points within -127 .. 127, found -128"},
      {"EncodingScaleZero", with({.scales = {0}}),
       "not a positive finite number"},
      {"EncodingScaleNan", with({.scales = {std::nanf("")}}),
       "not a positive finite number"},
      {"EncodingType", with({.dtype = DType::kF32, .scales = {1}}),
       "no codes of type f32"},
      {"EncodingBlockType", with({.dtype = DType::kQ8_0}),
       "q8_0 is for constants"},
      {"EncodingI32", with({.dtype = DType::kI32, .scales = {1}}),
       "i32 is for constants"},
      {"EncodingBits", with({.bits = 17, .scales = {1}}),
       "expected 0 or 2 to 16 bits of u16, found 17"},
      {"EncodingOneBit", with({.bits = 1, .scales = {1}}), "found 1"},
      {"EncodingHalf", with({.dtype = DType::kF16, .scales = {1}}),
       "f16 has no bits, axis"},
      {"EncodingOfTokens",
       [](Module&, Graph& g) {
         ValueOf(g, {RoleKind::kToken}).encoding = Encoding{.scales = {1}};
       },
       "expected a value of f32, found i32[2]"},
      {"EncodingOfConstantValue",
       [](Module&, Graph& g) {
         g[g.nodes[0].inputs[1]].encoding = Encoding{.scales = {1}};
       },
       "a constant's stands with the constant"},
  };
}

std::vector<Defect> BlockDefects() {
  const auto with = [](Encoding encoding) {
    encoding.dtype = DType::kI8;
    return [encoding](Module&, Graph& g) {
      ValueOf(g, {RoleKind::kMask}).encoding = encoding;
    };
  };
  return {
      {"Block", with({.axis = 0, .block = 2, .scales = {1, 1}}),
       "blocks of 2 do not divide"},
      {"BlockAxis", with({.axis = 1, .block = 5, .scales = {1, 1, 1, 1, 1}}),
       "blocks of 5"},
      {"BlockOfTensor", with({.block = 5, .scales = {1}}), "along axis -1"},
      {"BlockCount",
       with({.axis = 0, .block = 5, .scales = {1, 1}, .block_scales = {1}}),
       "expected 2 x 1 block scales, found 1"},
      {"BlockNegative", with({.axis = 0, .block = -1, .scales = {1, 1}}),
       "negative block -1"},
      {"BlockScaleZero",
       with({.axis = 0, .block = 5, .scales = {1, 1}, .block_scales = {1, 0}}),
       "a block scale is not within 1 .. 16"},
      {"BlockScaleHigh",
       with({.axis = 0, .block = 5, .scales = {1, 1}, .block_scales = {1, 17}}),
       "a block scale is not within 1 .. 16"},
      {"BlockZeroPoint",
       with({.axis = 0,
             .block = 5,
             .scales = {1, 1},
             .zero_points = {0, 0},
             .block_scales = {1, 1}}),
       "blocks have no zero points"},
      {"BlockScalesAlone", with({.scales = {1}, .block_scales = {1}}),
       "block scales without blocks"},
  };
}

// On the constant of a node: 0 = the embedding, 1 = a norm.
std::vector<Defect> ConstantEncodingDefects() {
  const auto with = [](size_t node, Encoding encoding) {
    return [=](Module& m, Graph& g) {
      m.constants.SetEncoding(g[g.nodes[node].inputs[1]].constant, encoding);
    };
  };
  return {
      {"Scales", with(0, {.dtype = DType::kI8, .axis = 0, .scales = {1}}),
       "'model.embed_tokens.weight': encoding: expected 11 scales, found 1"},
      {"TypeOfBlocks", with(0, {.dtype = DType::kQ4_0}),
       "no codes of type q4_0"},
      {"VectorOfBlocks", with(1, {.dtype = DType::kQ8_0}),
       "q8_0 expected rows of whole blocks, found f32[32]"},
      {"TableOfBlocks", with(0, {.dtype = DType::kQ8_0}),
       "input 1: not for a constant encoded as q8_0"},
      {"BlocksWithScale", with(0, {.dtype = DType::kQ8_0, .scales = {1}}),
       "q8_0 has no bits, axis"},
      {"NormOfI32", with(1, {.dtype = DType::kI32, .scales = {1}}),
       "input 1: not for a constant encoded as i32"},
  };
}

std::string CaseName(const ::testing::TestParamInfo<Defect>& info) {
  return info.param.name;
}

INSTANTIATE_TEST_SUITE_P(Header, VerifyTest,
                         ::testing::ValuesIn(HeaderDefects()), CaseName);
INSTANTIATE_TEST_SUITE_P(Ids, VerifyTest, ::testing::ValuesIn(IdDefects()),
                         CaseName);
INSTANTIATE_TEST_SUITE_P(Nodes, VerifyTest, ::testing::ValuesIn(NodeDefects()),
                         CaseName);
INSTANTIATE_TEST_SUITE_P(Roles, VerifyTest, ::testing::ValuesIn(RoleDefects()),
                         CaseName);
INSTANTIATE_TEST_SUITE_P(Constants, VerifyTest,
                         ::testing::ValuesIn(ConstantDefects()), CaseName);
INSTANTIATE_TEST_SUITE_P(Encodings, VerifyTest,
                         ::testing::ValuesIn(EncodingDefects()), CaseName);
INSTANTIATE_TEST_SUITE_P(Blocks, VerifyTest,
                         ::testing::ValuesIn(BlockDefects()), CaseName);
INSTANTIATE_TEST_SUITE_P(ConstantEncodings, VerifyTest,
                         ::testing::ValuesIn(ConstantEncodingDefects()),
                         CaseName);

TEST(VerifyGoodTest, EncodingsOfEachKind) {
  Module module = MakeTinyDecoder(2, 5);
  Graph& graph = module.graphs[0];
  for (const Encoding& encoding :
       {Encoding{.scales = {0.5f}, .zero_points = {7}},
        Encoding{.bits = 8, .axis = 1, .scales = {1, 2, 3, 4, 5}},
        Encoding{.dtype = DType::kF16},
        Encoding{.dtype = DType::kI8,
        .bits = 4,
        .axis = 0,
        .block = 5,
        .scales = {1, 2},
        .block_scales = {1, 16}}}) {
    ValueOf(graph, {RoleKind::kMask}).encoding = encoding;
    const Status status = Verify(module);
    EXPECT_TRUE(status.ok()) << status.error().message;
  }
}

TEST(VerifyGoodTest, BlockTypesOfWeights) {
  for (const DType dtype : {DType::kQ4_1, DType::kQ8_0}) {
    Module module = MakeTinyDecoder(2, 5);
    Graph& graph = module.graphs[0];
    const ValueId weight = FirstNode(graph, OpKind::kLinear).inputs[1];
    module.constants.SetEncoding(graph[weight].constant, {.dtype = dtype});
    const Status status = Verify(module);
    EXPECT_TRUE(status.ok()) << status.error().message;
  }
}

TEST(VerifyGoodTest, LayersMayDifferInHeads) {
  Module module;
  Graph& graph = module.graphs.emplace_back();
  graph.name = "g";
  graph.step_tokens = 1;
  graph.context_tokens = 1;
  graph.AddInput({.kind = RoleKind::kKIn, .index = 0}, F32Type({2, 4, 0}));
  graph.AddInput({.kind = RoleKind::kKIn, .index = 1}, F32Type({1, 8, 0}));
  EXPECT_TRUE(Verify(module).ok());
  graph.AddInput({.kind = RoleKind::kVIn, .index = 1}, F32Type({2, 0, 8}));
  const Status status = Verify(module);
  ASSERT_FALSE(status.ok());
  EXPECT_THAT(status.error().message,
              HasSubstr("v_in[1]: expected f32[G,P,D] with G=1, P=0, D=8"));
}

}  // namespace
}  // namespace hexllm::ir
