// A checkpoint compiled for the HTP and run in the vendor's x86 simulator,
// beside the same graphs on the CPU engine and the float golden. The figures
// are the simulator's, not a phone's.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "runtime/decode_steps.h"
#include "tests/e2e/run_model.h"
#include "tests/support/golden_tensors.h"
#include "tests/support/qnn_folder.h"
#include "tests/support/sqnr.h"

namespace hexllm::testing {
namespace {

constexpr size_t kPositions = 6;  // the simulator takes its time

// A part of the table in docs/htp-backend.md: each model, scheme and
// generation. v68 and v69 take caches of 8 bits alone; smollm2_135m is 72 wide,
// no whole number of blocks.
struct Expectation {
  std::string model;
  std::string recipe;
  std::string soc;
  double least_db;  // device against qdq; for fp16 against the float golden
  int kv_bits = 16;
};

void PrintTo(const Expectation& value, std::ostream* out) {
  *out << value.model << ", " << value.recipe << " on " << value.soc;
}

class Device : public ::testing::TestWithParam<Expectation> {
 protected:
  void SetUp() override {
    if (!qnn_) GTEST_SKIP() << kNoQnn;
  }

  CompileOptions Options(Stage stage) const {
    CompileOptions options = AllLogits(1, 32);
    options.mode = ModelMode::kKv;
    options.prefill_ar_len.reset();
    options.recipe_json = "{\"name\": \"test\", \"kv_bits\": " +
                          std::to_string(GetParam().kv_bits) +
                          ", \"defaults\": {\"scheme\": \"" +
                          GetParam().recipe + "\"}}";
    if (GetParam().recipe != "fp16")
      options.calibration.ids = {golden_.Ints("p1.input_ids")};
    options.stage = stage;
    options.target.soc = GetParam().soc;
    if (stage == Stage::kDevice) {
      options.target.name = "htp";
      options.target.qnn_lib_dir = *qnn_;
      options.target.use = htp::ContextUse::kSimulator;
    }
    return options;
  }

  std::vector<float> Logits(Stage stage) const {
    const LoadedModel model = LoadModel(path_, Options(stage));
    if (model.session == nullptr) return {};
    std::vector<int32_t> ids = golden_.Ints("p1.input_ids");
    ids.resize(kPositions);
    return AllLogitsOf(*model.session, ids);
  }

  const std::string path_ = DataPath("models/" + GetParam().model);
  const GoldenTensors golden_{path_ + "/golden.safetensors"};
  const std::optional<std::string> qnn_ = FindQnnFolder();
};

TEST_P(Device, IsNearItsReference) {
  const std::vector<float> device = Logits(Stage::kDevice);
  std::vector<float> reference;
  if (GetParam().recipe == "fp16") {
    reference = golden_.Floats("p1.logits");
    reference.resize(device.size());
  } else {
    reference = Logits(Stage::kQdq);
  }
  const double sqnr = Sqnr(reference, device);
  std::printf("%s, %s on %s: SQNR %.1f dB\n", GetParam().model.c_str(),
              GetParam().recipe.c_str(), GetParam().soc.c_str(), sqnr);
  EXPECT_GE(sqnr, GetParam().least_db);
}

INSTANTIATE_TEST_SUITE_P(
    Htp, Device,
    ::testing::Values(Expectation{"llama3_2_1b", "fp16", "SM8550", 40},
                      Expectation{"smollm2_135m", "fp16", "SM8750", 40},
                      Expectation{"llama3_2_1b", "16a8w", "SM8550", 40},
                      Expectation{"smollm2_135m", "16a8w", "SM8650", 40},
                      Expectation{"llama3_2_1b", "16a4w", "SM8850", 40},
                      Expectation{"smollm2_135m", "16a4w", "SM8750", 40},
                      Expectation{"llama3_2_1b", "16a4w_block", "SM8650", 40},
                      Expectation{"llama3_2_1b", "16a4w_block", "SM8850", 40},
                      Expectation{"smollm2_135m", "16a8w", "SM8350", 30, 8},
                      Expectation{"llama3_2_1b", "16a4w_block", "SM8450", 35,
                                  8}),
    [](const auto& instance) {
      const Expectation& row = instance.param;
      return row.model + "_" + row.recipe + "_" + row.soc;
    });

// The same text through graphs of several tokens a step.
class DeviceModes : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!qnn_) GTEST_SKIP() << kNoQnn;
    CompileOptions options = AllLogits(4, 32);
    options.mode = ModelMode::kLookahead;
    options.lookahead = {3, 1, 1};
    options.recipe = "16a8w";
    options.calibration.ids = {golden_.Ints("p1.input_ids")};
    options.stage = Stage::kDevice;
    options.target = {.name = "htp",
                      .qnn_lib_dir = *qnn_,
                      .use = htp::ContextUse::kSimulator};
    NullProgress progress;
    auto artifact =
        CompileToMemory(DataPath("models/llama3_2_1b"), options, progress);
    ASSERT_TRUE(artifact.ok()) << artifact.error().message;
    artifact_ = *artifact;
    engine_ = std::move(CreateEngine("htp", {.qnn_lib_dir = *qnn_})).value();
  }

  // In blocks of T = `step` tokens.
  std::vector<float> BlockLogits(uint32_t step) {
    auto session = Session::Create(
        {artifact_, engine_.get(), {.prompt_step_tokens = step}});
    EXPECT_TRUE(session.ok()) << session.error().message;
    return AllLogitsOf(**session, text_);
  }

  // As an answer that happens to be the text.
  std::vector<float> LookaheadLogits(KvUpdate update) {
    const auto& manifest = artifact_->manifest();
    const auto steps = FindStepGraphs(manifest);
    const StepChoice choice =
        *ChooseSteps(steps, {.lookahead = LookaheadMode::kOn});
    Sequence sequence(std::move(
        KvManager::Create(*engine_, *FindKvGeometry(manifest, steps), update)
            .value()));
    const RunnerConfig config{artifact_, engine_.get(), &sequence.kv, {}};
    const auto single = *DecoderRunner::Create(config, choice.single);
    const auto wide = *DecoderRunner::Create(config, *choice.lookahead);
    DecodeSteps decode({.sequence = &sequence,
                        .single = single.get(),
                        .wide = wide.get(),
                        .shape = *manifest.lookahead,
                        .mode = LookaheadMode::kOn});
    std::vector<float> logits;
    for (const int32_t id : text_) {
      sequence.ids.push_back(id);
      const Status status = decode.Run();
      EXPECT_TRUE(status.ok()) << status.error().message;
      logits.insert(logits.end(), sequence.logits.begin(),
                    sequence.logits.end());
    }
    EXPECT_GT(decode.counts().accepted, 2U);
    return logits;
  }

  // Where the best token leads by more than the numbers differ, it is the best
  // in both.
  static void ExpectSameBest(const std::vector<float>& a,
                             const std::vector<float>& b, size_t vocab) {
    ASSERT_EQ(a.size(), b.size());
    float most = 0;
    for (size_t i = 0; i < a.size(); ++i)
      most = std::max(most, std::fabs(a[i] - b[i]));
    size_t clear = 0;
    for (size_t begin = 0; begin < a.size(); begin += vocab) {
      const auto best = [&](const std::vector<float>& logits) {
        const auto row = std::span(logits).subspan(begin, vocab);
        return std::max_element(row.begin(), row.end()) - row.begin();
      };
      const auto row = std::span(a).subspan(begin, vocab);
      std::vector<float> sorted(row.begin(), row.end());
      std::nth_element(sorted.begin(), sorted.begin() + 1, sorted.end(),
                       std::greater<>());
      if (sorted[0] - sorted[1] <= 2 * most) continue;
      ++clear;
      EXPECT_EQ(best(a), best(b)) << "position " << begin / vocab;
    }
    std::printf("largest difference %g, %zu of %zu positions clear\n", most,
                clear, a.size() / vocab);
    EXPECT_GT(2 * clear, a.size() / vocab);
  }

  const GoldenTensors golden_{
      DataPath("models/llama3_2_1b/golden.safetensors")};
  const std::optional<std::string> qnn_ = FindQnnFolder();
  const std::vector<int32_t> text_ = {3, 14, 15, 3, 14, 15, 3, 14, 15, 3};
  std::shared_ptr<const artifact::Artifact> artifact_;
  std::unique_ptr<Engine> engine_;
};

TEST_F(DeviceModes, AgreeWhereTheBestTokenIsClear) {
  const size_t vocab = artifact_->manifest().vocab_size;
  const std::vector<float> kv = BlockLogits(1);
  ExpectSameBest(kv, BlockLogits(4), vocab);
  const std::vector<float> lookahead = LookaheadLogits(KvUpdate::kSmartMask);
  ExpectSameBest(kv, lookahead, vocab);
  EXPECT_EQ(LookaheadLogits(KvUpdate::kShiftPointer), lookahead);
}

// All three rotations, token by token and in blocks.
TEST(DeviceRotations, AreNearTheirReference) {
  const auto qnn = FindQnnFolder();
  if (!qnn) GTEST_SKIP() << kNoQnn;
  const std::string path = DataPath("models/smollm2_135m");
  std::vector<int32_t> ids =
      GoldenTensors(path + "/golden.safetensors").Ints("p1.input_ids");
  CompileOptions options = AllLogits(4, 16);
  options.recipe_json = R"({"name": "r", "defaults": {"scheme": "16a8w"},
      "kv_bits": 8, "r1": "hadamard", "r2": "hadamard", "r3": "hadamard"})";
  options.calibration.ids = {ids};
  ids.resize(6);  // a block of 4, and 2 tokens
  options.target.soc = "SM8750";
  options.stage = Stage::kQdq;
  const LoadedModel cpu = LoadModel(path, options);
  const std::vector<float> expected = AllLogitsOf(*cpu.session, ids);
  options.stage = Stage::kDevice;
  options.target = {.name = "htp",
                    .soc = "SM8750",
                    .qnn_lib_dir = *qnn,
                    .use = htp::ContextUse::kSimulator};
  for (const bool blocks : {true, false}) {
    const LoadedModel device =
        LoadModel(path, options, 2, {.prompt_step_tokens = blocks ? 4u : 1u});
    const double sqnr = Sqnr(expected, AllLogitsOf(*device.session, ids));
    std::printf("rotations, %s: SQNR %.1f dB\n", blocks ? "hybrid" : "kv",
                sqnr);
    EXPECT_GE(sqnr, 40);
  }
}

// A text longer than the context: the evictor turns keys on both backends.
TEST(DeviceSink, TurnsKeysAsTheCpuDoes) {
  const auto qnn = FindQnnFolder();
  if (!qnn) GTEST_SKIP() << kNoQnn;
  const std::string path = DataPath("models/llama3_2_1b");
  std::vector<int32_t> ids =
      GoldenTensors(path + "/golden.safetensors").Ints("p1.input_ids");
  CompileOptions options = AllLogits(1, 8);
  options.mode = ModelMode::kKv;
  options.prefill_ar_len.reset();
  options.recipe = "16a8w";
  options.calibration.ids = {ids};
  options.attention_sink = artifact::SinkSettings{1, 3};
  ids.resize(12);  // two evictions
  options.stage = Stage::kQdq;
  const LoadedModel cpu = LoadModel(path, options);
  const std::vector<float> expected = AllLogitsOf(*cpu.session, ids);
  options.stage = Stage::kDevice;
  options.target = {
      .name = "htp", .qnn_lib_dir = *qnn, .use = htp::ContextUse::kSimulator};
  const LoadedModel device = LoadModel(path, options);
  const double sqnr = Sqnr(expected, AllLogitsOf(*device.session, ids));
  std::printf("attention sink, 16a8w SQNR %.1f dB\n", sqnr);
  EXPECT_GE(sqnr, 40);
}

}  // namespace
}  // namespace hexllm::testing
