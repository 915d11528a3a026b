// Whole graphs with encodings: what they compute lies on the grids, near what
// the same graph computes without.
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "ir/encode.h"
#include "ir/interpret.h"
#include "ir/text.h"
#include "ir/verify.h"
#include "tests/support/random_encoded_graph.h"

namespace hexllm::ir {
namespace {

using hexllm::testing::EncodingStyle;
using hexllm::testing::MakeRandomEncodedGraph;
using hexllm::testing::RandomEncodedGraph;

constexpr uint64_t kSeeds = 40;

class EncodedGraphTest : public ::testing::TestWithParam<EncodingStyle> {};

TEST_P(EncodedGraphTest, IsVerifiedAndKeepsItsText) {
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    SCOPED_TRACE(seed);
    const RandomEncodedGraph made = MakeRandomEncodedGraph(seed, GetParam());
    const Status status = Verify(made.module);
    ASSERT_TRUE(status.ok()) << status.error().message;
    const std::string text = Print(made.module);
    EXPECT_EQ(Print(MakeRandomEncodedGraph(seed, GetParam()).module), text);
    const auto again = Parse(text);
    ASSERT_TRUE(again.ok()) << again.error().message;
    EXPECT_EQ(Print(*again), text);
  }
}

TEST_P(EncodedGraphTest, ValuesLieOnTheirGrids) {
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    SCOPED_TRACE(seed);
    const RandomEncodedGraph made = MakeRandomEncodedGraph(seed, GetParam());
    const Graph& graph = made.module.graphs[0];
    const auto values = AllValues(made);
    for (const Node& node : graph.nodes) {
      const Value& value = graph[node.output];
      const std::vector<float>& floats = values.at(node.output).floats;
      ASSERT_EQ(value.encoding.has_value(),
                GetParam() != EncodingStyle::kDynamic)
          << value.name;
      for (const float number : floats)
        ASSERT_FALSE(std::isnan(number)) << value.name;
      if (!value.encoding) continue;
      std::vector<float> rounded = floats;
      RoundToEncoding(*value.encoding, value.type.shape, rounded);
      EXPECT_EQ(rounded, floats) << value.name;
    }
  }
}

// Hidden columns have probability 0, as without encodings: the difference to
// visible ones is at least 20 (and 16 bits of probability end at 1e-5).
TEST(RandomEncodedGraphTest, MasksHide) {
  int hidden = 0;
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    const RandomEncodedGraph made =
        MakeRandomEncodedGraph(seed, EncodingStyle::kStatic);
    const Graph& graph = made.module.graphs[0];
    const auto mask = hexllm::testing::RandomInputs(graph, seed);
    const auto values = AllValues(made);
    for (const Node& node : graph.nodes) {
      if (node.op != OpKind::kSoftmax) continue;
      const std::vector<float>& floats = values.at(node.output).floats;
      const auto context = static_cast<size_t>(graph.context_tokens);
      const auto rows = static_cast<size_t>(graph.step_tokens);
      const std::vector<float>& columns = mask[3].floats;
      ASSERT_EQ(graph.inputs[3].role.kind, RoleKind::kMask);
      for (size_t at = 0; at < floats.size(); ++at) {
        const size_t row = at / context % rows;
        const auto first =
            columns.begin() + static_cast<std::ptrdiff_t>(row * context);
        const bool sees =
            std::count(first, first + graph.context_tokens, 0) > 0;
        if (!sees || columns[row * context + at % context] == 0) continue;
        EXPECT_EQ(floats[at], 0) << seed;
        ++hidden;
      }
    }
  }
  EXPECT_GT(hidden, 100);
}

std::string Describe(const Encoding& encoding) {
  std::string out(DTypeName(encoding.dtype));
  if (encoding.bits != 0) out += "/" + std::to_string(encoding.bits);
  if (encoding.axis >= 0) out += " channels";
  if (encoding.block > 0) out += " of " + std::to_string(encoding.block);
  return out;
}

std::set<std::string> KindsOf(EncodingStyle style) {
  std::set<std::string> kinds;
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    const RandomEncodedGraph made = MakeRandomEncodedGraph(seed, style);
    for (const Value& value : made.module.graphs[0].values) {
      if (value.encoding) kinds.insert(Describe(*value.encoding));
    }
    for (size_t i = 0; i < made.module.constants.size(); ++i) {
      const Constant& constant =
          made.module.constants[{static_cast<int32_t>(i)}];
      if (constant.encoding) kinds.insert(Describe(*constant.encoding));
    }
  }
  return kinds;
}

TEST(RandomEncodedGraphTest, HasAllKinds) {
  EXPECT_EQ(KindsOf(EncodingStyle::kStatic),
            (std::set<std::string>{"u8", "u16", "i8", "i16", "i8/4 channels",
                                   "i8/8 channels", "i8/4 channels of 16",
                                   "i8/4 channels of 32", "i8/4 channels of 64",
                                   "i32 channels"}));
  EXPECT_EQ(KindsOf(EncodingStyle::kHalf), std::set<std::string>{"f16"});
  EXPECT_EQ(KindsOf(EncodingStyle::kDynamic),
            (std::set<std::string>{"q4_1", "q8_0"}));
}

INSTANTIATE_TEST_SUITE_P(Styles, EncodedGraphTest,
                         ::testing::Values(EncodingStyle::kStatic,
                                           EncodingStyle::kHalf,
                                           EncodingStyle::kDynamic));

}  // namespace
}  // namespace hexllm::ir
