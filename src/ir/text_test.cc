#include "ir/text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ir/fingerprint.h"
#include "ir/verify.h"
#include "tests/support/tiny_decoder.h"

namespace hexllm::ir {
namespace {

using hexllm::testing::F32Type;
using hexllm::testing::TinyDecoder;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr std::string_view kSmall = R"(const @w0 "model.norm.weight" : bf16[4]
const @w1 "lm_head.weight" : f16[3,4]
graph kv kind=kv T=1 C=8 {
  in %0 hidden_in : f32[1,4]
  %1 = rms_norm(%0, @w0) {eps=1e-05, weight_offset=0} "model.norm" : f32[1,4]
  %2 = linear(%1, @w1) "lm_head" : f32[1,3]
  out %2 logits
}
)";

Module MustParse(std::string_view text) {
  auto module = Parse(text);
  if (!module.ok()) {
    ADD_FAILURE() << module.error().message;
    return {};
  }
  return *std::move(module);
}

TEST(TextTest, ReadsAndPrintsTheSame) {
  EXPECT_EQ(Print(MustParse(kSmall)), kSmall);
}

TEST(TextTest, EmptyTextIsAnEmptyModule) {
  EXPECT_EQ(Print(MustParse("")), "");
  EXPECT_EQ(Print(MustParse("\n  \n// a comment")), "");
}

TEST(TextTest, DecoderRoundTrip) {
  TinyDecoder decoder;
  decoder.AddGraph("prefill_3", 3, 8);
  decoder.AddGraph("kv", 1, 8);
  const Module module = std::move(decoder).Take();
  const std::string text = Print(module);
  const Module again = MustParse(text);
  EXPECT_EQ(Print(again), text);
  EXPECT_EQ(again.graphs.size(), 2u);
  EXPECT_EQ(again.graphs[0].kind, GraphKind::kPrefill);
  EXPECT_THAT(text, HasSubstr("in %4 k_in[0] : f32[2,4,5]"));
}

TEST(TextTest, NamesOfAnyBytes) {
  Module module;
  const std::string hostile = "a\"b\\c\n\x01\xff}] // \xc3\xa9";
  module.constants.Add(MakeRandomConstant(hostile, F32Type({2})));
  Graph& graph = module.graphs.emplace_back();
  graph.name = "g";
  const ValueId in =
      graph.AddInput({.kind = RoleKind::kHiddenIn}, F32Type({1, 2}));
  graph[in].name = hostile;
  const ValueId out = graph.AddNode(OpKind::kSilu, {in}, {}, hostile);
  graph.AddOutput({.kind = RoleKind::kTap, .index = 0, .name = hostile}, out);
  const std::string text = Print(module);
  const Module again = MustParse(text);
  EXPECT_EQ(Print(again), text);
  EXPECT_EQ(again.constants[{0}].name, hostile);
  EXPECT_EQ(again.graphs[0][in].name, hostile);
  EXPECT_EQ(again.graphs[0][out].name, hostile);
  EXPECT_EQ(again.graphs[0].outputs[0].role.name, hostile);
}

constexpr std::string_view kEncoded =
    R"(const @w0 "model.norm.weight" : bf16[4]
encoding @w0 u16 scales=[2e-30] zero_points=[7]
const @w1 "lm_head.weight" : f16[3,4]
encoding @w1 i8 bits=4 axis=0 block=2 scales=[1,0.1,3] block_scales=[1,2,3,4,5,16]
const @w2 "lm_head.bias" : f32[3]
encoding @w2 i32 axis=0 scales=[1,2,3]
graph kv kind=kv T=1 C=8 shard=1 {
  in %0 hidden_in : f32[1,4]
  encoding %0 u8 bits=7 scales=[0.1] zero_points=[3]
  %1 = rms_norm(%0, @w0) {eps=1e-05, weight_offset=0} "model.norm" : f32[1,4]
  encoding %1 f16
  %2 = linear(%1, @w1, @w2) "lm_head" : f32[1,3]
  encoding %2 i16 axis=1 scales=[1,2,3]
  out %2 logits
}
)";

TEST(TextTest, EncodingsRoundTrip) {
  const Module module = MustParse(kEncoded);
  EXPECT_EQ(Print(module), kEncoded);
  EXPECT_EQ(module.constants[{0}].encoding,
            (Encoding{.scales = {2e-30f}, .zero_points = {7}}));
  EXPECT_EQ(module.constants[{1}].encoding,
            (Encoding{.dtype = DType::kI8,
                      .bits = 4,
                      .axis = 0,
                      .block = 2,
                      .scales = {1, 0.1f, 3},
                      .block_scales = {1, 2, 3, 4, 5, 16}}));
  const Graph& graph = module.graphs[0];
  EXPECT_EQ(graph[graph.inputs[0].value].encoding,
            (Encoding{.dtype = DType::kU8,
                      .bits = 7,
                      .scales = {0.1f},
                      .zero_points = {3}}));
  EXPECT_EQ(graph[graph.nodes[0].output].encoding,
            (Encoding{.dtype = DType::kF16}));
  EXPECT_EQ(graph[graph.nodes[1].output].encoding,
            (Encoding{.dtype = DType::kI16, .axis = 1, .scales = {1, 2, 3}}));
}

TEST(TextTest, AttributesKeepTheirBits) {
  Module module = MustParse(kSmall);
  module.graphs[0].nodes[0].attrs[0].value = 0.1 + 0.2;
  const Module again = MustParse(Print(module));
  EXPECT_EQ(again.graphs[0].nodes[0].attrs, module.graphs[0].nodes[0].attrs);
}

TEST(TextTest, OptionalAttributesAreThereOrNot) {
  constexpr std::string_view kLinear =
      "const @w0 \"w\" : f32[2,4]\ngraph g kind=kv T=1 C=2 {\n"
      "  in %0 hidden_in : f32[1,4]\n"
      "  %1 = linear(%0, @w0){} \"y\" : f32[1,2]\n  out %1 hidden_out\n}\n";
  for (const std::string attrs : {"", " {dropped_bits=8}"}) {
    std::string text(kLinear);
    text.replace(text.find("{}"), 2, attrs);
    EXPECT_EQ(Print(MustParse(text)), text);
  }
}

TEST(TextTest, ConstantsOfOneNameAndTypeHaveOneContent) {
  const Module a = MustParse(kSmall);
  const Module b = MustParse(kSmall);
  EXPECT_EQ(AsText(a.constants[{0}].bytes), AsText(b.constants[{0}].bytes));
  EXPECT_NE(AsText(a.constants[{0}].bytes).substr(0, 4),
            AsText(a.constants[{1}].bytes).substr(0, 4));
}

// One change to kSmall and what must be said about it.
struct BadText {
  std::string from;
  std::string to;
  std::string message;
};

const BadText kBadTexts[] = {
    {"const @w0", "cnst @w0",
     "line 1: expected 'const', 'encoding' or 'graph', found 'cnst @w0"},
    {"bf16[4]", "bf17[4]", "line 1: no type 'bf17'"},
    {"bf16[4]", "bf16[4", "line 1: expected ']', found the end of the line"},
    {"bf16[4]", "bf16[-4]", "line 1: bad shape bf16[-4]"},
    {"bf16[4]", "bf16[99999999999999999999]", "line 1: expected a number"},
    {"bf16[4]", "bf16[4611686018427387904,4]", "line 1: bad shape"},
    {"bf16[4]", "bf16[1000000000000]", "line 1: constants beyond"},
    {"bf16[4]", "bf16[1000000000000,1]", "line 1: constants beyond"},
    {"bf16[4]", "q4_0[4]", "line 1: bad shape q4_0[4]"},
    {"bf16[4]", "i32[4]", "line 1: no constant can have the type i32[4]"},
    {"bf16[4]", "bf16[0]", "line 1: no constant can have the type bf16[0]"},
    {"bf16[4]", "bf16[4] x", "line 1: expected the end of the line, found 'x'"},
    {"norm.weight\"", "norm.weight", "line 1: expected '\"'"},
    {"norm.weight\"", "norm\\q\"", "line 1: expected \\\\, \\\" or \\xNN"},
    {"norm.weight\"", "norm\\xg0\"", "line 1: expected \\\\, \\\" or \\xNN"},
    {"@w1 \"lm", "@w0 \"lm", "line 2: the constant @w0 occurs twice"},
    {"kind=kv", "kind=foo", "line 3: no graph kind 'foo'"},
    {"T=1", "T=x", "line 3: expected a number, found 'x C=8 {'"},
    {"T=1", "T=9", "line 8: graph 'kv': expected 1 <= T <= C"},
    {"hidden_in :", "hiden_in :", "line 4: no role 'hiden_in'"},
    {"hidden_in :", "mask :", "line 4: no role 'mask'"},
    {"hidden_in :", "k_in[-1] :", "line 4: no role 'k_in[-1]'"},
    {"hidden_in :", "k_in[99999999999] :", "line 4: expected a number"},
    {"hidden_in :", "tap[x] :", "line 4: expected '\"'"},
    {"hidden_in :", "logits :",
     "line 8: graph 'kv': logits: an output's role on an input"},
    {"f32[1,4]\n  %1", "f32[2,4]\n  %1",
     "line 5: rms_norm: expected the type f32[2,4], found f32[1,4]"},
    {"%1 = rms", "%0 = rms", "line 5: %0 is defined twice"},
    {"rms_norm(", "rms_nrm(", "line 5: no op 'rms_nrm'"},
    {"(%0, @w0)", "(%7, @w0)", "line 5: %7 is not defined before"},
    {"(%0, @w0)", "(%0, @w9)", "line 5: no constant @w9"},
    {"(%0, @w0)", "(%0 @w0)", "line 5: expected ')', found '@w0)"},
    {"(%0, @w0)", "(%0)", "line 5: rms_norm: expected 2 to 2 inputs, found 1"},
    {"(%0, @w0)", "()", "line 5: rms_norm: expected 2 to 2 inputs, found 0"},
    {"(%0, @w0)", "(%0, @w1)",
     "line 5: rms_norm: w: expected float-like [M] with M=4"},
    {"eps=1e-05", "esp=1e-05", "line 5: rms_norm has no attribute 'esp'"},
    {"eps=1e-05", "factor=1e-05", "line 5: rms_norm has no attribute 'factor'"},
    {"eps=1e-05", "eps=nan",
     "line 5: rms_norm: attribute eps: expected a finite number"},
    {"eps=1e-05", "eps=1e-05, eps=1",
     "line 5: rms_norm: expected 2 attributes, found 3"},
    {"eps=1e-05, weight", "weight",
     "line 5: rms_norm: expected 2 attributes, found 1"},
    {"out %2", "out %3", "line 7: %3 is not defined before"},
    {"out %2", "out %0",
     "line 8: graph 'kv': output 0: value 0 is no node's output"},
    {"logits", "mask[0]",
     "line 8: graph 'kv': mask[0]: an input's role on an output"},
    {"out %2", "encoding %2 u16 axis=0\n  out %2",
     "value 4: encoding: expected 1 scales"},
    {"out %2", "encoding %2 u16 scales=[1e99]\n  out %2",
     "line 7: expected a number"},
    {"out %2", "encoding %2 u17\n  out %2", "line 7: no type 'u17'"},
    {"out %2", "encoding %2\n  out %2", "line 7: expected a word"},
    {"out %2", "encoding %2 u16 scales=[1] bits=4\n  out %2",
     "line 7: expected the end of the line, found 'bits=4'"},
    {"out %2", "encoding %2 f16\n  encoding %2 f16\n  out %2",
     "line 8: a second encoding of one value"},
    {"out %2", "encoding @w1 f16\n  out %2",
     "line 7: the encoding of a constant belongs behind its 'const'"},
    {"graph kv", "encoding @w2 f16\ngraph kv", "line 3: no constant @w2"},
    {"graph kv", "encoding @w1 f16\nencoding @w1 f16\ngraph kv",
     "line 4: a second encoding of one constant"},
    {"graph kv", "encoding %1 f16\ngraph kv", "line 3: expected '@'"},
    {"graph kv",
     "encoding @w1 i8 axis=0 block=2 scales=[1,1,1] "
     "block_scales=[1,1,1,1,1,256]\ngraph kv",
     "line 3: expected a number, found '256]'"},
    {"graph kv", "encoding @w1 i8 scales=[1,1]\ngraph kv",
     "constant 1 'lm_head.weight': encoding: expected 1 scales, found 2"},
    {"out %2", "what %2",
     "line 7: expected 'in', 'out', 'encoding', '%' or '}'"},
    {"}\n", "",
     "line 7: expected '}' of the last graph, found the end of the text"},
};

TEST(TextTest, RefusesBadTextWithItsLine) {
  for (const BadText& bad : kBadTexts) {
    std::string text(kSmall);
    // "}\n" occurs twice; the closing one is the last.
    const size_t at = text.rfind(bad.from);
    ASSERT_NE(at, std::string::npos) << bad.from;
    text.replace(at, bad.from.size(), bad.to);
    const auto module = Parse(text);
    ASSERT_FALSE(module.ok()) << text;
    EXPECT_EQ(module.error().code, ErrorCode::kBadInput);
    EXPECT_THAT(module.error().message, HasSubstr(bad.message)) << text;
    EXPECT_THAT(module.error().message, StartsWith("line ")) << text;
  }
}

TEST(TextTest, RefusesTwoGraphsOfOneName) {
  const std::string graph(kSmall.substr(kSmall.find("graph")));
  const auto module = Parse(std::string(kSmall) + graph);
  ASSERT_FALSE(module.ok());
  EXPECT_EQ(module.error().message,
            "line 14: graph 'kv': the name occurs twice");
}

TEST(TextTest, EveryTruncationIsRefusedOrGood) {
  for (size_t length = 0; length < kSmall.size(); ++length) {
    const auto module = Parse(kSmall.substr(0, length));
    EXPECT_TRUE(!module.ok() || Verify(*module).ok());
  }
}

Digest FingerprintOf(const Module& module, size_t graph = 0) {
  Hasher hasher;
  Fingerprints(module).AddGraphs({&graph, 1}, hasher);
  return hasher.Finish();
}

TEST(Fingerprints, GraphAndNumbersCount) {
  const Digest digest = FingerprintOf(MustParse(kSmall));
  EXPECT_EQ(FingerprintOf(MustParse(kSmall)), digest);
  const std::pair<const char*, const char*> changes[] = {
      {"eps=1e-05", "eps=1e-06"},
      {"C=8", "C=9"},
      {"logits", "hidden_out"},
      {"lm_head.weight", "lm_head.weights"},  // other data, too
      {"graph kv", "encoding @w1 i8 axis=0 scales=[1,2,3]\ngraph kv"},
      {"  out", "  encoding %2 u16 scales=[0.5] zero_points=[1]\n  out"},
  };
  for (const auto& [from, to] : changes) {
    std::string text(kSmall);
    text.replace(text.find(from), std::string_view(from).size(), to);
    EXPECT_NE(FingerprintOf(MustParse(text)), digest) << to;
  }
  // One bit of one weight; the order of its rows.
  Module module = MustParse(kSmall);
  const Constant weight = module.constants[{1}];
  std::string bytes(AsText(weight.bytes));
  bytes.back() = static_cast<char>(bytes.back() ^ 1);
  Constant other = weight;
  other.bytes = AsBytes(bytes);
  Constant turned = weight;
  turned.rows = {0, 2, 1};
  for (const Constant& changed : {other, turned}) {
    const ConstantId id = module.constants.Add(changed);
    for (Value& value : module.graphs[0].values)
      if (value.constant.index > 0) value.constant = id;
    EXPECT_NE(FingerprintOf(module), digest);
  }
}

TEST(Fingerprints, WhatOthersReadDoesNotCount) {
  const Module small = MustParse(kSmall);
  Module module = MustParse(R"(const @w0 "unread" : f32[2]
const @w1 "lm_head.weight" : f16[3,4]
const @w2 "model.norm.weight" : bf16[4]
graph first kind=prefill T=2 C=8 {
  in %0 hidden_in : f32[2,4]
  %1 = linear(%0, @w1) "lm_head" : f32[2,3]
  out %1 logits
}
)");
  Graph graph = small.graphs[0];
  for (Value& value : graph.values)
    if (value.constant.valid()) value.constant = {2 - value.constant.index};
  module.graphs.push_back(graph);
  ASSERT_TRUE(Verify(module).ok());
  EXPECT_EQ(FingerprintOf(module, 1), FingerprintOf(small));
}

}  // namespace
}  // namespace hexllm::ir
