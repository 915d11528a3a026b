// Quantized checkpoints from files to logits: every scheme stays near the float
// golden, whatever the step size, and each mistake is named.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "artifact/artifact.h"
#include "base/json.h"
#include "quant/scheme.h"
#include "tests/e2e/run_model.h"
#include "tests/support/golden_tensors.h"
#include "tests/support/sqnr.h"
#include "tests/support/temp_dir.h"
#include "tests/support/tiny_llama.h"

namespace hexllm::testing {
namespace {

// The least SQNR of the tiny Llama-3.2-1B with each scheme; a few dB below what
// was seen.
struct Expectation {
  std::string recipe;
  double least_db;
};

std::vector<Expectation> Expectations() {
  return {{"fp32", 90},     {"fp16", 50},       {"16a16w", 57}, {"16a8w", 28},
          {"16a4w", 5},     {"16a4w_block", 6}, {"8a8w", 19},   {"8a4w", 5},
          {"cpu-w8a8", 27}, {"cpu-w4a8", 7}};
}

// True for the recipes whose ranges are static.
bool Calibrates(const std::string& recipe) {
  return quant::FindScheme(recipe)->activations ==
         quant::ActivationKind::kStatic;
}

void PrintTo(const Expectation& value, std::ostream* out) {
  *out << value.recipe;
}

class Quantized : public ::testing::TestWithParam<Expectation> {
 protected:
  const std::string model_ = DataPath("models/llama3_2_1b");
  const GoldenTensors golden_{
      DataPath("models/llama3_2_1b/golden.safetensors")};

  CompileOptions Options(int64_t step, int64_t context) const {
    CompileOptions options = AllLogits(step, context);
    options.recipe = GetParam().recipe;
    // Calibration must not depend on the context of the run.
    if (Calibrates(GetParam().recipe)) {
      options.calibration.ids = {golden_.Ints("p0.input_ids"),
                                 golden_.Ints("p1.input_ids")};
    }
    return options;
  }
};

TEST_P(Quantized, LogitsAreNearFloatAndTheSameForEveryStepSize) {
  const std::vector<int32_t> ids = golden_.Ints("p1.input_ids");
  const std::vector<float> expected = golden_.Floats("p1.logits");
  const auto tokens = static_cast<int64_t>(ids.size());
  std::vector<float> first;
  for (const int64_t step : {int64_t{1}, int64_t{7}, tokens}) {
    const LoadedModel model =
        LoadModel(model_, Options(step, std::max<int64_t>(tokens, 64)));
    ASSERT_NE(model.session, nullptr);
    const std::vector<float> logits = AllLogitsOf(*model.session, ids);
    const double sqnr = Sqnr(expected, logits);
    if (first.empty()) {
      first = logits;
      std::printf("%-12s SQNR %.1f dB\n", GetParam().recipe.c_str(), sqnr);
    }
    EXPECT_GE(sqnr, GetParam().least_db) << "step " << step;
    EXPECT_TRUE(first == logits) << "step " << step << " differs from step 1";
  }
}

TEST_P(Quantized, GreedyTokensAreTheSameInEveryMode) {
  const std::vector<int32_t> prompt = golden_.Ints("p0.input_ids");
  std::vector<int32_t> first;
  for (const int64_t step : {1, 5, 16}) {
    CompileOptions options = Options(step, 64);
    options.prefill_logits = LogitsRows::kLast;
    const LoadedModel model = LoadModel(model_, options, step == 5 ? 1 : 2);
    ASSERT_NE(model.session, nullptr);
    const auto made = GreedyTokens(*model.session, prompt, 12);
    ASSERT_EQ(made.size(), 12u);
    if (first.empty()) first = made;
    EXPECT_EQ(made, first) << "step " << step;
  }
}

TEST_P(Quantized, TheFileSaysWhatMemorySays) {
  const TempDir dir;
  const std::vector<int32_t> ids = golden_.Ints("p0.input_ids");
  const CompileOptions options = Options(8, 64);
  NullProgress progress;
  const Status written =
      CompileToFile(model_, dir.File("model.hxl"), options, progress);
  ASSERT_TRUE(written.ok()) << written.error().message;
  auto artifact = artifact::Artifact::Open(dir.File("model.hxl"));
  ASSERT_TRUE(artifact.ok()) << artifact.error().message;
  EXPECT_EQ((*artifact)->manifest().recipe, GetParam().recipe);
  EXPECT_EQ((*artifact)->manifest().stage,
            GetParam().recipe == "fp32" ? "fp" : "qdq");
  EXPECT_GT((*artifact)->manifest().weight_bytes, 0u);
  const auto engine = CreateEngine("cpu", {.threads = 2});
  const auto session = Session::Create({*artifact, engine->get(), {}});
  ASSERT_TRUE(session.ok()) << session.error().message;
  const LoadedModel memory = LoadModel(model_, options);
  ASSERT_NE(memory.session, nullptr);
  EXPECT_TRUE(AllLogitsOf(**session, ids) == AllLogitsOf(*memory.session, ids));
}

INSTANTIATE_TEST_SUITE_P(Schemes, Quantized,
                         ::testing::ValuesIn(Expectations()),
                         [](const auto& instance) {
                           std::string name = instance.param.recipe;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

// A new scheme needs a row above.
TEST(QuantizedTripwire, EverySchemeIsRun) {
  const std::vector<Expectation> rows = Expectations();
  for (const quant::Scheme& scheme : quant::AllSchemes()) {
    EXPECT_TRUE(std::any_of(rows.begin(), rows.end(), [&](const auto& row) {
      return row.recipe == scheme.name;
    })) << scheme.name;
  }
}

// --- The KV cache ---

TEST(QuantizedKv, EightBitsAreStoredAsEightBits) {
  const TempDir dir;
  CompileOptions options = AllLogits(8, 32);
  options.recipe = dir.Write("r.json", R"({
      "name": "kv8", "defaults": {"scheme": "16a8w"}, "kv_bits": 8,
      "kv_outlier_db": 0})");
  NullProgress progress;
  auto artifact =
      CompileToMemory(DataPath("models/llama3_2_1b"), options, progress);
  ASSERT_TRUE(artifact.ok()) << artifact.error().message;
  for (const auto& graph : (*artifact)->manifest().graphs) {
    for (const auto& io : graph.inputs) {
      if (io.role.kind == RoleKind::kKIn || io.role.kind == RoleKind::kVIn) {
        EXPECT_EQ(io.dtype, DType::kU8) << RoleToString(io.role);
      }
    }
  }
}

TEST(QuantizedKv, OutlierLayersKeepWideKeys) {
  const TempDir dir;
  CompileOptions options = AllLogits(8, 32);
  // More than any 8-bit cache can have.
  options.recipe = dir.Write("r.json", R"({
      "name": "kv8", "defaults": {"scheme": "16a8w"}, "kv_bits": 8,
      "kv_outlier_db": 90})");
  NullProgress progress;
  auto artifact =
      CompileToMemory(DataPath("models/llama3_2_1b"), options, progress);
  ASSERT_TRUE(artifact.ok()) << artifact.error().message;
  for (const auto& io : (*artifact)->manifest().graphs.front().inputs) {
    if (io.role.kind == RoleKind::kKIn) {
      EXPECT_EQ(io.dtype, DType::kU16) << RoleToString(io.role);
    }
    if (io.role.kind == RoleKind::kVIn) {
      EXPECT_EQ(io.dtype, DType::kU8) << RoleToString(io.role);
    }
  }
}

// --- What can go wrong ---

std::string ErrorOf(const std::string& model, const CompileOptions& options) {
  NullProgress progress;
  const auto artifact = CompileToMemory(model, options, progress);
  return artifact.ok() ? "no error" : artifact.error().message;
}

// A tiny checkpoint with the weights of one output channel replaced.
std::string SpoiltModel(const TempDir& dir, float value) {
  TinyLlama tiny;
  std::string& data = tiny.tensors["model.layers.1.mlp.up_proj.weight"].data;
  for (size_t i = 16; i < 32; ++i)
    std::memcpy(data.data() + i * sizeof(float), &value, sizeof(value));
  tiny.WriteFolder(dir);
  return dir.path();
}

TEST(QuantizedErrors, NanWeightsNameTheTensor) {
  for (const char* recipe : {"16a4w", "8a8w"}) {
    const TempDir dir;
    CompileOptions options = AllLogits(4, 16);
    options.recipe = recipe;
    const std::string error = ErrorOf(SpoiltModel(dir, NAN), options);
    EXPECT_NE(error.find("model.layers.1.mlp.up_proj"), std::string::npos)
        << recipe << ": " << error;
  }
}

// Also where the same run shows what layers read.
TEST(QuantizedErrors, NanWeightsNameTheTensorWhereCodesAreSearched) {
  const TempDir dir;
  CompileOptions options = AllLogits(4, 16);
  options.recipe_json =
      R"({"name": "r", "defaults": {"scheme": "16a8w", "rounding": "gptq"}})";
  const std::string error = ErrorOf(SpoiltModel(dir, NAN), options);
  EXPECT_NE(error.find("model.layers.1.mlp.up_proj"), std::string::npos)
      << error;
}

TEST(QuantizedErrors, InfiniteActivationsNameTheValue) {
  const TempDir dir;
  CompileOptions options = AllLogits(4, 16);
  options.recipe = "16a16w";
  const std::string error = ErrorOf(SpoiltModel(dir, 3e38f), options);
  EXPECT_NE(error.find("model.layers.1.mlp"), std::string::npos) << error;
}

TEST(QuantizedErrors, EmptyCalibrationSet) {
  CompileOptions options = AllLogits(4, 16);
  options.recipe = "16a8w";
  options.calibration.ids = {{1, 2, 3}};
  options.calibration.limit = 0;
  EXPECT_NE(ErrorOf(DataPath("models/llama3_2_1b"), options)
                .find("calibration: the set is empty"),
            std::string::npos);
}

TEST(QuantizedErrors, UnknownRecipe) {
  CompileOptions options = AllLogits(4, 16);
  options.recipe = "16a8";
  EXPECT_NE(ErrorOf(DataPath("models/llama3_2_1b"), options).find("16a8w"),
            std::string::npos);
}

TEST(QuantizedErrors, RuleThatMatchesNothing) {
  const TempDir dir;
  CompileOptions options = AllLogits(4, 16);
  options.recipe = dir.Write("r.json", R"({
      "name": "r", "defaults": {"scheme": "16a8w"},
      "rules": [{"names": ["*.no_proj"], "scheme": "16a4w"}]})");
  EXPECT_NE(ErrorOf(DataPath("models/llama3_2_1b"), options).find("*.no_proj"),
            std::string::npos);
}

// --- The residual stream ---

struct Notes final : ProgressSink {
  void Begin(std::string_view, std::string_view, int64_t) override {}
  void Update(int64_t) override {}
  void Warn(std::string_view) override {}
  void Note(std::string_view message) override { lines.emplace_back(message); }
  std::vector<std::string> lines;
};

// What a chip lacks is said, and done without.
TEST(QuantizedResidual, ChipsWithoutHalvesKeepCodes) {
  for (const char* soc : {"SM8350", "SM8750"}) {
    CompileOptions options = AllLogits(8, 32);
    options.recipe = "16a8w";
    options.target.soc = soc;
    Notes notes;
    const auto artifact =
        CompileToMemory(DataPath("models/llama3_2_1b"), options, notes);
    ASSERT_TRUE(artifact.ok()) << artifact.error().message;
    const bool said = std::any_of(
        notes.lines.begin(), notes.lines.end(), [](const std::string& line) {
          return line.starts_with("residual stream in 16-bit codes");
        });
    EXPECT_EQ(said, std::string_view(soc) == "SM8350") << soc;
  }
}

}  // namespace
}  // namespace hexllm::testing
