// The same tokens in every decode mode, on checkpoints: kv, hybrid and
// lookahead, greedy and drawn, wherever the prompt ends and up to the context's
// edge. CI looks at a few prompts of a few models; all of them:
//   e2e_tests --gtest_also_run_disabled_tests --gtest_filter='*DecodeSweep*'
#include <gtest/gtest.h>

#include <filesystem>

#include "tests/e2e/run_model.h"
#include "tests/support/golden_tensors.h"

namespace hexllm::testing {
namespace {

using Ids = std::vector<int32_t>;

struct Mode {
  std::string name;
  CompileOptions compile;
  SessionOptions session;
};

CompileOptions Hybrid(int64_t ar_len) {
  CompileOptions options;
  options.prefill_ar_len = ar_len;
  return options;
}

CompileOptions WithLookahead(LookaheadOptions lookahead) {
  CompileOptions options = Hybrid(8);
  options.mode = ModelMode::kLookahead;
  options.lookahead = lookahead;
  return options;
}

std::vector<Mode> Modes() {
  CompileOptions kv;
  kv.mode = ModelMode::kKv;
  const SessionOptions on = {.lookahead = LookaheadMode::kOn};
  const SessionOptions shift = {.kv_update = KvUpdate::kShiftPointer};
  return {{"kv", kv, {}},
          {"hybrid 1", Hybrid(1), {}},
          {"hybrid 8", Hybrid(8), shift},
          {"hybrid 32", Hybrid(32), {}},
          {"hybrid 128", Hybrid(128), {}},
          {"lookahead 3 2 2", WithLookahead({3, 2, 2}), on},
          {"lookahead 5 8 8", WithLookahead({5, 8, 8}), on},
          {"lookahead 2 1 1", WithLookahead({2, 1, 1}), on},
          {"lookahead auto",
           WithLookahead({5, 8, 8}),
           {.kv_update = KvUpdate::kShiftPointer,
            .lookahead = LookaheadMode::kAuto}}};
}

// What is asked of each mode.
struct Question {
  size_t prompt_tokens;
  std::optional<uint32_t> new_tokens;  // unset = until the context is full
  float temperature = 0;
};

Ids Answer(Session& session, const Question& question) {
  const uint32_t vocab = session.artifact().manifest().vocab_size;
  Ids prompt;
  for (size_t i = 0; i < question.prompt_tokens; ++i)
    prompt.push_back(static_cast<int32_t>((i % 23 * 7 + i / 50) % vocab));
  session.Reset();
  const Status status = session.Prefill(prompt);
  EXPECT_TRUE(status.ok()) << status.error().message;
  GenerateOptions options;
  options.sampler = {.temperature = question.temperature,
                     .top_k = 20,
                     .seed = question.prompt_tokens};
  options.max_new_tokens = question.new_tokens;
  return Generated(session, options);
}

void ExpectEqualModes(const std::string& path, int64_t context,
                      const std::vector<Question>& questions,
                      const std::vector<std::string>& overrides = {}) {
  std::vector<Ids> expected;
  uint32_t accepted = 0;
  for (Mode& mode : Modes()) {
    mode.compile.max_context_len = context;
    mode.compile.source.overrides = overrides;
    const int threads = 1 + static_cast<int>(mode.name.size()) % 2;
    const LoadedModel model =
        LoadModel(path, mode.compile, threads, mode.session);
    ASSERT_NE(model.session, nullptr) << path << ' ' << mode.name;
    for (size_t i = 0; i < questions.size(); ++i) {
      const Ids answer = Answer(*model.session, questions[i]);
      if (mode.name == "kv") expected.push_back(answer);
      ASSERT_EQ(answer, expected[i])
          << path << ' ' << mode.name << ", prompt of "
          << questions[i].prompt_tokens << ", temperature "
          << questions[i].temperature;
      accepted += model.session->statistics().turns.back().steps.accepted;
    }
  }
  EXPECT_GT(accepted, 0U);
}

class DecodeSweep : public ::testing::TestWithParam<const char*> {};

TEST_P(DecodeSweep, ModesAgree) {
  ExpectEqualModes(DataPath(std::string("models/") + GetParam()), 144,
                   {{1, 30}, {9, 20, 0.8f}, {65, {}}, {131, {}}, {144, {}}});
}

INSTANTIATE_TEST_SUITE_P(Models, DecodeSweep,
                         ::testing::Values("smollm2_135m", "gemma3_1b"));

std::vector<Question> AllQuestions(size_t context) {
  std::vector<Question> questions;
  const size_t longest = std::min<size_t>(2 * 128 + 1, context);
  for (size_t tokens = 1; tokens <= longest; ++tokens) {
    questions.push_back({tokens, 12});
    if (tokens % 16 == 1) questions.push_back({tokens, 40, 0.8f});
  }
  for (size_t left = 0; left <= 70; ++left)
    questions.push_back({context - left, {}});
  return questions;
}

// What a model's own files do not say, and how long a context it can have.
struct SweptModel {
  std::string path;
  std::vector<std::string> overrides = {};
  int64_t context = 336;
};

SweptModel SweptModelIn(const std::filesystem::path& folder) {
  const std::string context = "max_seq_len=336";
  if (folder.filename() == "stories110m")
    return {folder / "stories110M.pt", {context}};
  if (folder.filename() == "llama3_2_meta")
    return {folder / "consolidated.00.pth", {context, "rope_scale_factor=32"}};
  if (folder.filename() == "codegen2_1b") return {folder, {}, 128};
  return {folder};
}

TEST(DecodeSweep, DISABLED_AllModels) {
  for (const auto& entry :
       std::filesystem::directory_iterator(DataPath("models"))) {
    std::printf("%s\n", entry.path().filename().c_str());
    const SweptModel model = SweptModelIn(entry.path());
    ExpectEqualModes(model.path, model.context,
                     AllQuestions(static_cast<size_t>(model.context)),
                     model.overrides);
  }
}

TEST(DecodeSweep, DISABLED_SmolLm2) {
  std::vector<Question> questions;
  for (const size_t tokens : {1U, 2U, 7U, 8U, 9U, 17U, 31U, 32U, 33U, 64U, 65U,
                              127U, 128U, 129U, 255U, 256U, 257U})
    questions.push_back({tokens, 24, tokens % 2 == 0 ? 0.8f : 0.0f});
  for (const size_t left : {0U, 1U, 2U, 3U, 8U, 63U, 64U, 65U, 66U})
    questions.push_back({336 - left, {}});
  ExpectEqualModes(std::string(HEXLLM_SOURCE_DIR) +
                       "/models/SmolLM2-135M-Instruct.Q4_1.gguf",
                   336, questions);
}

}  // namespace
}  // namespace hexllm::testing
