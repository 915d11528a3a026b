// However a model is cut into graphs, it is the same model: parts of a step run
// in turn and tokens looked up by the host give the logits of one whole graph,
// on the CPU bit for bit.
#include <gtest/gtest.h>

#include <cstring>

#include "tests/e2e/run_model.h"
#include "tests/support/golden_tensors.h"
#include "tests/support/qnn_folder.h"
#include "tests/support/sqnr.h"

namespace hexllm::testing {
namespace {

using models::EmbeddingPlace;

struct Cut {
  std::string name;
  int64_t shards = 1;
  EmbeddingPlace embedding = EmbeddingPlace::kGraph;
  int64_t step = 1;  // T
};

void PrintTo(const Cut& cut, std::ostream* out) { *out << cut.name; }

constexpr const char* kModel = "models/llama3_2_1b";

std::vector<int32_t> PromptIds(size_t most) {
  const GoldenTensors golden(
      DataPath(std::string(kModel) + "/golden.safetensors"));
  std::vector<int32_t> ids = golden.Ints("p1.input_ids");
  ids.resize(std::min(ids.size(), most));
  return ids;
}

CompileOptions OptionsOf(const Cut& cut, const std::string& recipe) {
  CompileOptions options = AllLogits(cut.step, 32);
  options.recipe = recipe;
  options.num_sharding = cut.shards;
  options.embedding = cut.embedding;
  if (recipe == "16a8w") options.calibration.ids = {PromptIds(16)};
  return options;
}

class GraphCuts : public ::testing::TestWithParam<Cut> {};

TEST_P(GraphCuts, GiveTheSameBitsOnTheCpu) {
  const std::vector<int32_t> ids = PromptIds(11);
  for (const char* recipe : {"fp32", "16a8w"}) {
    const LoadedModel whole =
        LoadModel(DataPath(kModel), OptionsOf({"whole"}, recipe));
    const LoadedModel cut =
        LoadModel(DataPath(kModel), OptionsOf(GetParam(), recipe));
    ASSERT_TRUE(whole.session && cut.session);
    const std::vector<float> expected = AllLogitsOf(*whole.session, ids);
    const std::vector<float> found = AllLogitsOf(*cut.session, ids);
    ASSERT_EQ(found.size(), expected.size());
    EXPECT_EQ(0, std::memcmp(found.data(), expected.data(),
                             found.size() * sizeof(float)))
        << recipe;
    EXPECT_EQ(GreedyTokens(*cut.session, ids, 5),
              GreedyTokens(*whole.session, ids, 5));
  }
}

// Calibration, encodings and inputs are the same; the compiler may round
// differently where it fuses differently.
TEST_P(GraphCuts, GiveTheSameLogitsInTheSimulator) {
  const auto qnn = FindQnnFolder();
  if (!qnn) GTEST_SKIP() << kNoQnn;
  const auto logits_of = [&](const Cut& cut) {
    CompileOptions options = OptionsOf(cut, "16a8w");
    options.target = {
        .name = "htp", .qnn_lib_dir = *qnn, .use = htp::ContextUse::kSimulator};
    const LoadedModel model = LoadModel(DataPath(kModel), options);
    return model.session ? AllLogitsOf(*model.session, PromptIds(5))
                         : std::vector<float>();
  };
  const std::vector<float> whole = logits_of({"whole"});
  const std::vector<float> cut = logits_of(GetParam());
  ASSERT_EQ(cut.size(), whole.size());
  EXPECT_GE(Sqnr(whole, cut), 60);
}

INSTANTIATE_TEST_SUITE_P(
    Cuts, GraphCuts,
    ::testing::Values(Cut{"parts", 2},
                      Cut{"host_rows", 1, EmbeddingPlace::kHost},
                      Cut{"parts_of_blocks", 2, EmbeddingPlace::kHost, 4}),
    [](const auto& instance) { return instance.param.name; });

}  // namespace
}  // namespace hexllm::testing
