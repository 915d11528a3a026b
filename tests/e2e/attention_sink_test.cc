// Texts longer than the context, from checkpoint to tokens on the CPU.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "compile/evictor.h"
#include "runtime/session_file.h"
#include "tests/e2e/run_model.h"
#include "tests/support/golden_tensors.h"
#include "tests/support/sqnr.h"
#include "tests/support/temp_dir.h"
#include "tests/support/tiny_llama.h"

namespace hexllm {
namespace {

using testing::AllLogits;
using testing::AllLogitsOf;
using testing::DataPath;
using testing::GreedyTokens;
using testing::LoadedModel;
using testing::LoadModel;
using testing::TempDir;
using testing::TinyLlama;
using Ids = std::vector<int32_t>;

constexpr int64_t kContext = 24;
constexpr artifact::SinkSettings kSink = {2, 7};

Ids Prompt(size_t tokens) {
  Ids ids;
  for (size_t i = 0; i < tokens; ++i)
    ids.push_back(static_cast<int32_t>((i * i * 3 + 2 * i + 5) % 31));
  return ids;
}

CompileOptions WithSink(int64_t step, LogitsRows rows = LogitsRows::kLast) {
  CompileOptions options = AllLogits(step, kContext);
  options.prefill_logits = rows;
  options.attention_sink = kSink;
  return options;
}

// With one layer keys and values hang on nothing but their tokens: the logits
// after evictions are those of a text that has the tokens that are left.
TEST(AttentionSink, OneLayerForgetsAsIfItHadNeverKnown) {
  TinyLlama llama;
  llama.config["num_hidden_layers"] = 1;
  std::erase_if(llama.tensors, [](const auto& item) {
    return item.first.find("layers.1.") != std::string::npos;
  });
  const TempDir dir;
  llama.WriteFolder(dir);
  const Ids text = Prompt(70);
  const LoadedModel endless =
      LoadModel(dir.path(), WithSink(4, LogitsRows::kAll));
  const auto logits = AllLogitsOf(*endless.session, text);
  const LoadedModel fresh = LoadModel(dir.path(), AllLogits(4, kContext));
  const size_t vocab = logits.size() / text.size();
  Ids left;
  int evictions = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    if (left.size() == kContext - 1) {
      left.erase(left.begin() + kSink.sink_tokens,
                 left.begin() + kSink.sink_tokens + kSink.evict_tokens);
      ++evictions;
    }
    left.push_back(text[i]);
    if (i % 3 != 0) continue;
    const auto wanted = AllLogitsOf(*fresh.session, left);
    for (size_t v = 0; v < vocab; ++v) {
      ASSERT_NEAR(logits[i * vocab + v], wanted[(left.size() - 1) * vocab + v],
                  2e-5)
          << "position " << i;
    }
  }
  EXPECT_EQ(evictions, 7);
}

// Rotated keys (R3) are turned back before they get another position: the
// logits are those of keys that are not rotated.
TEST(AttentionSink, RotatedKeysAreTurnedAsOthersAre) {
  const Ids text = Prompt(60);
  const auto logits_with = [&](const std::string& more) {
    CompileOptions options = WithSink(4, LogitsRows::kAll);
    options.recipe_json =
        R"({"name": "r", "defaults": {"scheme": "fp32"})" + more + "}";
    const LoadedModel model =
        LoadModel(DataPath("models/smollm2_135m"), options);
    return AllLogitsOf(*model.session, text);
  };
  EXPECT_GE(
      testing::Sqnr(logits_with(""), logits_with(R"(, "r3": "hadamard")")), 90);
}

// Same tokens whatever the steps, the KV update and the windows of the model:
// Gemma 3 has local and global layers with RoPE tables of their own, SmolLM3
// layers without RoPE.
TEST(AttentionSink, EveryModeDropsTheSame) {
  for (const std::string name : {"gemma3_1b", "smollm3_3b"}) {
    const std::string path = DataPath("models/" + name);
    Ids expected;
    for (const int64_t step : {1, 4, 16}) {
      const LoadedModel model = LoadModel(path, WithSink(step));
      const Ids found = GreedyTokens(*model.session, Prompt(40), 60);
      if (expected.empty()) expected = found;
      EXPECT_EQ(found, expected) << name << ", steps of " << step;
      const TurnStatistics turn = model.session->statistics().turns.back();
      EXPECT_EQ(turn.evictions, 11U);
      EXPECT_EQ(turn.prompt_tokens, 40U);
    }
    SessionOptions shift;
    shift.kv_update = KvUpdate::kShiftPointer;
    const LoadedModel shifted = LoadModel(path, WithSink(4), 2, shift);
    EXPECT_EQ(GreedyTokens(*shifted.session, Prompt(40), 60), expected);
    CompileOptions wide = WithSink(4);
    wide.mode = ModelMode::kLookahead;
    wide.lookahead = {.ngram = 3, .window = 2, .gcap = 2};
    SessionOptions on;
    on.lookahead = LookaheadMode::kOn;
    const LoadedModel looking = LoadModel(path, wide, 2, on);
    EXPECT_EQ(GreedyTokens(*looking.session, Prompt(40), 60), expected);
  }
}

// The prompt of a later turn has all that was said.
TEST(AttentionSink, LongConversationsReuseWhatIsLeft) {
  const LoadedModel model =
      LoadModel(DataPath("models/gemma3_1b"), WithSink(4));
  Session& session = *model.session;
  Ids text = Prompt(40);
  const Ids answer = GreedyTokens(session, text, 30);
  text.insert(text.end(), answer.begin(), answer.end());
  text.insert(text.end(), {3, 4, 5});
  ASSERT_TRUE(session.ReplacePrompt(text).ok());
  TurnStatistics turn = session.statistics().turns.back();
  EXPECT_EQ(turn.reuse_end, ReuseEnd::kAllReused);
  EXPECT_EQ(turn.prompt_tokens, 4U);  // and the answer's last one
  // A text that differs within what was dropped is run from the sink on.
  text[10] = 30;
  EXPECT_EQ(session.ReplacePrompt(text).value(), kSink.sink_tokens);
  turn = session.statistics().turns.back();
  EXPECT_EQ(turn.reuse_end, ReuseEnd::kEvicted);
  EXPECT_EQ(turn.prompt_tokens, text.size() - kSink.sink_tokens);
}

// A saved session keeps the keys as they were first stored: later evictions
// turn the same codes.
TEST(AttentionSink, SavedSessionsGoOnTheSame) {
  const std::string path = DataPath("models/smollm3_3b");
  const LoadedModel model = LoadModel(path, WithSink(4));
  GreedyTokens(*model.session, Prompt(40), 10);
  const TempDir dir;
  auto file = OutputFile::Create(dir.File("s"));
  ASSERT_TRUE(model.session->Save(*file).ok());
  const Ids expected = GreedyTokens(*model.session, 50);
  const auto saved = OpenSession(dir.File("s"));
  ASSERT_TRUE(saved.ok()) << saved.error().message;
  const LoadedModel other = LoadModel(path, WithSink(1));
  const Status restored = other.session->Restore(saved->saved);
  ASSERT_TRUE(restored.ok()) << restored.error().message;
  EXPECT_EQ(GreedyTokens(*other.session, 50), expected);
  const LoadedModel without = LoadModel(path, AllLogits(1, kContext));
  EXPECT_THAT(without.session->Restore(saved->saved).error().message,
              ::testing::HasSubstr("no attention sink"));
}

// Adding a sink to an artifact gives the bytes of compiling it with one.
TEST(AttentionSink, IsReplacedInAnArtifact) {
  const TempDir dir;
  const std::string path = DataPath("models/gemma3_1b");
  NullProgress progress;
  const auto compile = [&](const char* name, const CompileOptions& options) {
    const Status status =
        CompileToFile(path, dir.File(name), options, progress);
    EXPECT_TRUE(status.ok()) << status.error().message;
    return dir.File(name);
  };
  const std::string plain = compile("plain", AllLogits(4, kContext));
  CompileOptions options = AllLogits(4, kContext);
  options.attention_sink = kSink;
  const std::string wanted = testing::ReadWholeFile(compile("wanted", options));
  ASSERT_TRUE(ReplaceEvictor(plain, dir.File("a"), {}, {5, 3}).ok());
  ASSERT_TRUE(ReplaceEvictor(dir.File("a"), dir.File("b"), {}, kSink).ok());
  EXPECT_NE(testing::ReadWholeFile(dir.File("a")), wanted);
  EXPECT_EQ(testing::ReadWholeFile(dir.File("b")), wanted);
}

}  // namespace
}  // namespace hexllm
