// The commands on a small model, as a user types them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "base/json.h"
#include "tests/cli/process.h"
#include "tests/support/golden_tensors.h"

namespace hexllm::testing {
namespace {

using ::testing::HasSubstr;

const std::string& Model() {
  static const std::string path = DataPath("models/smollm2_135m");
  return path;
}

// What the fixture's authors got: prompt text, its ids, the greedy ids after it
// and their text.
Json GoldenText() {
  auto json = ParseJson(ReadWholeFile(Model() + "/golden_text.json"));
  EXPECT_TRUE(json.ok());
  return json.ok() ? std::move(*json) : Json();
}

TEST(Commands, HelpAndVersion) {
  EXPECT_THAT(RunHexllm({"--help"}).out, HasSubstr("compile"));
  const Outcome version = RunHexllm({"--version"});
  EXPECT_EQ(version.status, 0);
  EXPECT_THAT(version.out, HasSubstr("hexllm "));
}

TEST(Commands, LogitsMatchTheGoldens) {
  const TempDir dir;
  const std::string ids = Model() + "/golden.safetensors:p1.input_ids";
  const std::vector<float> expected =
      GoldenTensors(Model() + "/golden.safetensors").Floats("p1.logits");
  std::string first;
  for (const std::string step : {"1", "7", "24"}) {
    const std::string out = dir.File("logits.safetensors");
    const Outcome outcome = RunHexllm(
        {"logits", Model(), "--tokens", ids, "--ar-len", step, "-o", out});
    ASSERT_EQ(outcome.status, 0) << outcome.err;
    const std::vector<float> logits = GoldenTensors(out).Floats("logits");
    ASSERT_EQ(logits.size(), expected.size());
    for (size_t i = 0; i < logits.size(); ++i)
      ASSERT_NEAR(logits[i], expected[i], 2e-4f) << i;
    if (first.empty()) first = ReadWholeFile(out);
    EXPECT_EQ(ReadWholeFile(out), first) << "step " << step;
  }
  const std::string out = dir.File("lookahead.safetensors");
  std::vector<std::string> args = {"logits",      Model(), "--tokens", ids,
                                   "--lookahead", "-o",    out};
  const Outcome refused = RunHexllm(args);
  EXPECT_EQ(refused.status, 2);
  EXPECT_THAT(refused.err, HasSubstr("has no lookahead graph"));
  args[1] = dir.File("m.hxl");
  ASSERT_EQ(RunHexllm({"compile", Model(), "-q", "-o", args[1], "--model-mode",
                       "lookahead", "--ngram", "3", "--window", "2", "--gcap",
                       "2", "--max-context-len", "64"})
                .status,
            0);
  ASSERT_EQ(RunHexllm(args).status, 0);
  EXPECT_EQ(ReadWholeFile(out), first);
}

TEST(Commands, CompiledAndUncompiledModelsMakeTheGoldenTokens) {
  const TempDir dir;
  const std::string artifact = dir.File("m.hxl");
  ASSERT_EQ(RunHexllm({"compile", Model(), "-q", "-o", artifact,
                       "--max-context-len", "128", "--prefill-ar-len", "16"})
                .status,
            0);
  const GoldenTensors golden(Model() + "/golden.safetensors");
  std::string expected = "[";
  for (const int32_t id : golden.Ints("p1.greedy"))
    expected += (expected.size() > 1 ? "," : "") + std::to_string(id);
  expected += "]\n";
  for (const std::string& model : {artifact, Model()}) {
    const Outcome outcome = RunHexllm(
        {"run", model, "-q", "--tokens",
         Model() + "/golden.safetensors:p1.input_ids", "--ids", "--temperature",
         "0", "--max-new-tokens", "32", "--ignore-eos"});
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    EXPECT_EQ(outcome.out, expected);
  }
}

TEST(Commands, LookaheadMakesTheSameTokens) {
  const TempDir dir;
  const std::string artifact = dir.File("m.hxl");
  ASSERT_EQ(RunHexllm({"compile", Model(), "-q", "-o", artifact, "--model-mode",
                       "lookahead", "--ngram", "3", "--window", "2", "--gcap",
                       "2", "--max-context-len", "128"})
                .status,
            0);
  EXPECT_THAT(RunHexllm({"inspect", artifact}).out,
              HasSubstr("ngram 3, window 2, gcap 2"));
  const std::vector<std::string> run = {
      "run",
      artifact,
      "-q",
      "--tokens",
      Model() + "/golden.safetensors:p1.input_ids",
      "--ids",
      "--temperature",
      "1.2",
      "--max-new-tokens",
      "50",
      "--ignore-eos",
      "--stats-json",
      dir.File("stats.json")};
  std::string expected;
  for (const std::string mode : {"off", "on", "auto"}) {
    std::vector<std::string> args = run;
    args.insert(args.end(), {"--lookahead", mode});
    if (mode == "on")
      args.insert(args.end(), {"--kv-updater", "shift-pointer"});
    const Outcome outcome = RunHexllm(args);
    ASSERT_EQ(outcome.status, 0) << outcome.err;
    if (mode == "off") expected = outcome.out;
    EXPECT_EQ(outcome.out, expected) << mode;
    const auto stats = ParseJson(ReadWholeFile(dir.File("stats.json")));
    ASSERT_TRUE(stats.ok());
    const Json& turn = (*stats)["turns"][0];
    if (mode == "off") {
      EXPECT_EQ(turn["decode_steps"]["plain"], 49);
    } else if (mode == "on") {
      EXPECT_GT(turn["decode_steps"]["lookahead"], 15);
    }
    EXPECT_GE(turn["accepted_per_step"], 1.0);
  }
}

TEST(Commands, LookaheadFlagsThatDoNotFit) {
  const std::string out = TempDir().File("m.hxl");
  for (const std::vector<std::string>& args :
       {std::vector<std::string>{"compile", Model(), "-o", out, "--ngram", "3"},
        {"compile", Model(), "-o", out, "--model-mode", "lookahead", "--window",
         "0"},
        {"compile", Model(), "-o", out, "--model-mode", "lookahead",
         "--max-context-len", "63"},
        {"run", Model(), "--tokens", "1", "--ids", "--lookahead", "on"}}) {
    const Outcome outcome = RunHexllm(args);
    EXPECT_EQ(outcome.status, 2);
    EXPECT_THAT(outcome.err,
                ::testing::AnyOf(HasSubstr("--ngram"), HasSubstr("--window"),
                                 HasSubstr("lookahead")));
  }
}

TEST(Commands, SameInputGivesTheSameArtifact) {
  const TempDir dir;
  for (const char* name : {"a.hxl", "b.hxl"})
    ASSERT_EQ(
        RunHexllm({"compile", Model(), "-q", "-o", dir.File(name)}).status, 0);
  EXPECT_TRUE(ReadWholeFile(dir.File("a.hxl")) ==
              ReadWholeFile(dir.File("b.hxl")));
  const Outcome inspected =
      RunHexllm({"inspect", dir.File("a.hxl"), "--verify"});
  EXPECT_EQ(inspected.status, 0) << inspected.err;
  EXPECT_THAT(inspected.out, HasSubstr("prefill_128"));
  EXPECT_THAT(inspected.out, HasSubstr("all match their checksums"));
}

// Text to ids, ids to new ids, new ids to text.
TEST(Commands, TextThroughAllStepsMatchesTheGoldens) {
  for (const Json& entry : GoldenText()) {
    const Outcome ids =
        RunHexllm({"tokenize", "--tokenizer", Model(), "--no-special",
                   entry["prompt"].get<std::string>()});
    EXPECT_EQ(ids.out, DumpJson(entry["ids"]) + "\n") << ids.err;
    std::string list = DumpJson(entry["ids"]);
    list = list.substr(1, list.size() - 2);
    const Outcome made = RunHexllm({"run", Model(), "-q", "--tokens", list,
                                    "--ids", "--temperature", "0",
                                    "--max-new-tokens", "24", "--ignore-eos"});
    EXPECT_EQ(made.out, DumpJson(entry["greedy"]) + "\n") << made.err;
    const Outcome text = RunHexllm(
        {"detokenize", "--tokenizer", Model(), DumpJson(entry["greedy"])});
    EXPECT_EQ(text.out, entry["text"].get<std::string>() + "\n") << text.err;
  }
}

TEST(Commands, SamplingIsAFunctionOfTheSeed) {
  const auto sample = [](const std::string& seed) {
    return RunHexllm({"run", Model(), "-q", "--tokens", "5,6,7", "--ids",
                      "--temperature", "1.2", "--seed", seed,
                      "--max-new-tokens", "16", "--ignore-eos"})
        .out;
  };
  EXPECT_EQ(sample("3"), sample("3"));
  EXPECT_NE(sample("3"), sample("4"));
}

TEST(Commands, TokenizeAndDetokenizeAreInverse) {
  const Outcome ids =
      RunHexllm({"tokenize", "--tokenizer", Model(), "Once upon a time"});
  ASSERT_EQ(ids.status, 0) << ids.err;
  const Outcome text =
      RunHexllm({"detokenize", "--tokenizer", Model(), ids.out});
  EXPECT_EQ(text.status, 0) << text.err;
  EXPECT_EQ(text.out, "Once upon a time\n");
}

TEST(Commands, TemplateRendersAChat) {
  const TempDir dir;
  const std::string chat =
      dir.Write("chat.json", R"([{"role":"user","content":"Hi"}])");
  const Outcome outcome =
      RunHexllm({"template", "--model", Model(), "--messages", chat,
                 "--add-generation-prompt"});
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_EQ(outcome.out,
            "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n");
}

TEST(Commands, StatisticsAreWritten) {
  const TempDir dir;
  const Outcome outcome = RunHexllm(
      {"run", Model(), "-q", "--tokens", "5,6,7", "--ids", "--max-new-tokens",
       "4", "--ignore-eos", "--stats-json", dir.File("s.json")});
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  const auto json = ParseJson(ReadWholeFile(dir.File("s.json")));
  ASSERT_TRUE(json.ok());
  EXPECT_EQ((*json)["turns"][0]["prompt_tokens"], 3);
  EXPECT_EQ((*json)["turns"][0]["new_tokens"], 4);
}

// Two runs with a session between them say what one run says.
TEST(Commands, SessionsGoOn) {
  const TempDir dir;
  const std::string session = dir.File("s");
  const auto run = [](const std::string& model,
                      std::vector<std::string> arguments) {
    const std::vector<std::string> common = {
        "run", model,         "-q", "--temperature", "0", "--max-new-tokens",
        "6",   "--ignore-eos"};
    arguments.insert(arguments.begin(), common.begin(), common.end());
    return RunHexllm(arguments);
  };
  const Outcome whole = run(Model(), {"-p", "Hi", "-p", "Why?"});
  ASSERT_EQ(whole.status, 0) << whole.err;
  const Outcome first = run(Model(), {"-p", "Hi", "--save-session", session});
  EXPECT_EQ(first.status, 0) << first.err;
  const Outcome second =
      run(Model(), {"-p", "Why?", "--load-session", session, "--model-mode",
                    "kv", "--save-session", session});
  EXPECT_EQ(first.out + second.out, whole.out) << second.err;
  const Outcome other =
      run(DataPath("models/gemma3_1b"),
          {"--tokens", "1,2", "--ids", "--load-session", session});
  EXPECT_EQ(other.status, 4);
  EXPECT_THAT(other.err, HasSubstr("a session of another model"));
  const Outcome raw =
      run(Model(), {"--raw", "-p", "x", "--load-session", session});
  EXPECT_EQ(raw.status, 2);
  const std::string saved = ReadWholeFile(session);
  const Outcome over = run(Model(), {"-p", "Why?", "--load-session", session,
                                     "--stats-json", session});
  EXPECT_EQ(over.status, 2) << over.err;
  EXPECT_EQ(ReadWholeFile(session), saved);
  dir.Write("s", saved.substr(0, 5000));
  const Outcome damaged =
      run(Model(), {"-p", "Why?", "--load-session", session});
  EXPECT_EQ(damaged.status, 3) << damaged.err;
}

// An error in a later turn costs nothing of those before it.
TEST(Commands, SessionsKeepWhatWasSaidBeforeAnError) {
  const TempDir dir;
  const auto run = [&](const std::vector<std::string>& prompts,
                       const std::string& after = "") {
    std::vector<std::string> args = {"run",
                                     Model(),
                                     "-q",
                                     "--temperature",
                                     "0",
                                     "--max-new-tokens",
                                     "2",
                                     "--ignore-eos",
                                     "--max-context-len",
                                     "64",
                                     "--save-session",
                                     dir.File("s")};
    for (const std::string& prompt : prompts)
      args.insert(args.end(), {"-p", prompt});
    return RunHexllm(args, "", after);
  };
  const std::string too_long(400, '7');
  const Outcome first = run({"Hi"});
  ASSERT_EQ(first.status, 0) << first.err;
  const uintmax_t size = std::filesystem::file_size(dir.File("s"));
  std::filesystem::remove(dir.File("s"));
  const Outcome both = run({"Hi", too_long});
  EXPECT_EQ(both.status, 2);
  EXPECT_EQ(both.out, first.out);
  EXPECT_THAT(both.err, HasSubstr("64"));
  EXPECT_EQ(std::filesystem::file_size(dir.File("s")), size);
  std::filesystem::remove(dir.File("s"));
  EXPECT_EQ(run({too_long}).status, 2);
  EXPECT_FALSE(std::filesystem::exists(dir.File("s")));
  // Nor does an answer that cannot be printed.
  EXPECT_EQ(run({"Hi"}, " >/dev/full").status, 5);
  EXPECT_TRUE(std::filesystem::exists(dir.File("s")));
  // Nor one that has nowhere to go, which is not into the file.
  std::filesystem::remove(dir.File("s"));
  EXPECT_EQ(run({"Hi"}, " >&-").status, 5);
  EXPECT_TRUE(std::filesystem::exists(dir.File("s")));
}

TEST(Commands, WhatCannotBePrintedIsAnErrorAndFilesAreWritten) {
  const TempDir dir;
  for (const char* flag : {"--version", "--help"})
    EXPECT_EQ(RunHexllm({flag}, "", " >/dev/full").status, 5) << flag;
  EXPECT_EQ(RunHexllm({"run", Model(), "-q", "--raw", "--max-new-tokens", "5",
                       "-p", "Once", "--stats-json", dir.File("s.json")},
                      "", " >/dev/full")
                .status,
            5);
  EXPECT_TRUE(std::filesystem::exists(dir.File("s.json")));
}

// ExecuTorch's multi-turn example: five tokens a turn, no template.
TEST(Commands, PlainTextGoesOnInTurns) {
  const TempDir dir;
  const Outcome outcome = RunHexllm(
      {"run", Model(), "-q", "--raw", "--max-new-tokens", "5", "--ignore-eos",
       "-p", "Once", "-p", " a little girl named Lily.", "-p", " She",
       "--stats-json", dir.File("s.json")});
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  const auto json = ParseJson(ReadWholeFile(dir.File("s.json")));
  ASSERT_TRUE(json.ok());
  ASSERT_EQ((*json)["turns"].size(), 3U);
  for (const Json& turn : (*json)["turns"]) EXPECT_EQ(turn["new_tokens"], 5);
  EXPECT_EQ((*json)["turns"][2]["reuse_end"], "all_reused");
}

TEST(Commands, AttentionSinksAreAddedToArtifacts) {
  const TempDir dir;
  const std::string plain = dir.File("plain.hxl");
  const std::string endless = dir.File("endless.hxl");
  ASSERT_EQ(RunHexllm({"compile", Model(), "-q", "-o", plain,
                       "--max-context-len", "24", "--prefill-ar-len", "4"})
                .status,
            0);
  const Outcome added = RunHexllm(
      {"compile", plain, "-q", "--use-attention-sink", "2,7", "-o", endless});
  ASSERT_EQ(added.status, 0) << added.err;
  const auto run = [&](const std::string& artifact) {
    return RunHexllm({"run", artifact, "-q", "--tokens", "5,6,7", "--ids",
                      "--ignore-eos", "--max-new-tokens", "60", "--stats-json",
                      dir.File("s.json")});
  };
  EXPECT_EQ(ParseJson(run(plain).out)->size(), 21U);  // until the context ends
  EXPECT_EQ(ParseJson(run(endless).out)->size(), 60U);
  EXPECT_EQ(
      (*ParseJson(ReadWholeFile(dir.File("s.json"))))["turns"][0]["evictions"],
      6);
  const auto compile = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(),
                     {"compile", plain, "-q", "-o", dir.File("x")});
    return RunHexllm(arguments);
  };
  EXPECT_EQ(compile({}).status, 2);
  EXPECT_EQ(compile({"--use-attention-sink", "2"}).status, 2);
  EXPECT_EQ(compile({"--use-attention-sink", "20,3"}).status, 2);
  EXPECT_THAT(compile({"--use-attention-sink", "2,7", "--recipe", "fp32"}).err,
              HasSubstr("--recipe: expected with a checkpoint only"));
}

TEST(Commands, DumpIrWritesEveryStage) {
  const TempDir dir;
  ASSERT_EQ(RunHexllm({"compile", Model(), "-q", "-o", dir.File("m.hxl"),
                       "--dump-ir", dir.File("ir")})
                .status,
            0);
  EXPECT_THAT(ReadWholeFile(dir.File("ir") + "/00_input.ir"),
              HasSubstr("attention"));
}

}  // namespace
}  // namespace hexllm::testing
