// hexllm eval and eval merge on a small model.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "base/json.h"
#include "tests/cli/process.h"
#include "tests/support/golden_tensors.h"
#include "tests/support/tiny_llama.h"

namespace hexllm::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

std::string Model() { return DataPath("models/smollm2_135m"); }

void ExpectError(const Outcome& outcome, int status, const std::string& part) {
  EXPECT_EQ(outcome.status, status) << outcome.err;
  EXPECT_THAT(outcome.err,
              AllOf(StartsWith("hexllm: error: "), HasSubstr(part)));
}

constexpr const char* kQuestions =
    "{\"query\": \"The sky is\", \"choices\": [\"blue\", \"made of tin\"], "
    "\"label\": 0}\n"
    "{\"query\": \"Fish live in\", \"choices\": [\"trees\", \"the sea\"], "
    "\"label\": 1}\r\n"
    "{\"query\": \"Two and two is\", \"choices\": [\"four\", \"a river\"], "
    "\"label\": 0}\n";

// More ids than a window of 64 has.
std::string LongIds() {
  std::string ids = "1";
  for (int i = 0; i < 64; ++i) ids += ",1";
  return ids;
}

class EvalTest : public ::testing::Test {
 protected:
  std::vector<std::string> Args(std::vector<std::string> more) {
    std::vector<std::string> args = {"eval", Model(), "-q", "--window", "64"};
    args.insert(args.end(), more.begin(), more.end());
    return args;
  }
  Json ReadJson(const std::string& name) {
    auto json = ParseJson(ReadWholeFile(dir_.File(name)));
    EXPECT_TRUE(json.ok());
    return json.ok() ? std::move(*json) : Json();
  }

  TempDir dir_;
  std::string questions_ = dir_.Write("q.jsonl", kQuestions);
};

TEST_F(EvalTest, WritesFiguresOfEachTaskAndStage) {
  const std::string texts = dir_.Write(
      "t.jsonl", "{\"text\": \"One text.\"}\n{\"text\": \"Another one.\"}\n");
  const Outcome done = RunHexllm(
      Args({"--tasks", questions_ + "," + texts, "--stages", "fp,qdq",
            "--recipe", "16a8w", "--json", dir_.File("r.json"), "--csv",
            dir_.File("r.csv"), "--report", dir_.File("r.html")}));
  ASSERT_EQ(done.status, 0) << done.err;
  EXPECT_THAT(done.out,
              AllOf(HasSubstr("q qdq (16a8w, weights "), HasSubstr("acc_norm"),
                    HasSubstr("3 questions"), HasSubstr("token_perplexity")));
  const Json json = ReadJson("r.json");
  ASSERT_EQ(json["tasks"].size(), 2u);
  EXPECT_EQ(json["tasks"][0]["kind"], "choices");
  EXPECT_EQ(json["tasks"][1]["stages"][1]["stage"], "qdq");
  const double fp =
      json["tasks"][1]["stages"][0]["figures"]["token_perplexity"]["value"];
  const double qdq =
      json["tasks"][1]["stages"][1]["figures"]["token_perplexity"]["value"];
  EXPECT_GT(fp, 1);
  EXPECT_NEAR(qdq, fp, fp * 0.05);
  EXPECT_THAT(ReadWholeFile(dir_.File("r.csv")),
              HasSubstr(",t,qdq,16a8w,word_perplexity,"));
  EXPECT_THAT(ReadWholeFile(dir_.File("r.html")), StartsWith("<!doctype html"));
}

// What took long is not lost with a standard output that takes nothing.
TEST_F(EvalTest, FilesAreWrittenWhereNothingCanBePrinted) {
  const Outcome done =
      RunHexllm(Args({"--tasks", questions_, "--sqnr", "--recipe", "16a8w",
                      "--json", dir_.File("r.json")}),
                "", " >/dev/full");
  ExpectError(done, 5, "standard output");
  const Json json = ReadJson("r.json");
  EXPECT_EQ(json["tasks"].size(), 1u);
  EXPECT_EQ(json["comparisons"].size(), 1u);
}

// Every mode of running gives the same scores on the CPU.
TEST_F(EvalTest, ModesAndResumedRunsAgree) {
  const auto figures = [&](const std::vector<std::string>& flags) {
    std::vector<std::string> args =
        Args({"--tasks", questions_, "--json", dir_.File("r.json"),
              "--log-samples"});
    args.insert(args.end(), flags.begin(), flags.end());
    const Outcome done = RunHexllm(args);
    EXPECT_EQ(done.status, 0) << done.err;
    Json tasks = ReadJson("r.json")["tasks"];
    for (Json& task : tasks)  // other graphs ran
      for (Json& stage : task["stages"]) stage.erase("digest");
    return DumpJson(tasks);
  };
  const std::string hybrid = figures({"--mode", "hybrid"});
  EXPECT_EQ(figures({"--mode", "kv"}), hybrid);
  EXPECT_EQ(figures({"--mode", "lookahead"}), hybrid);
  const std::string journal = dir_.File("journal");
  EXPECT_EQ(figures({"--resume", journal}), hybrid);
  const std::string kept = ReadWholeFile(journal);
  EXPECT_EQ(figures({"--resume", journal}), hybrid);
  EXPECT_EQ(ReadWholeFile(journal), kept);
  ExpectError(RunHexllm(Args({"--tasks", questions_, "--resume", journal,
                              "--num-fewshot", "1"})),
              2, "expected a file of the same run");
  // The folder's name and flags are the same, what it computes is not.
  const std::string config =
      dir_.Write("c.json", ReadWholeFile(Model() + "/config.json"));
  const std::string other = dir_.File("other");
  const std::vector<std::string> with_config =
      Args({"--tasks", questions_, "--resume", other, "--config", config});
  EXPECT_EQ(RunHexllm(with_config).status, 0);
  EXPECT_EQ(RunHexllm(with_config).status, 0);
  Json changed = ReadJson("c.json");
  changed["rms_norm_eps"] = 0.5;
  dir_.Write("c.json", DumpJson(changed));
  ExpectError(RunHexllm(with_config), 2, "another --resume file");
}

TEST_F(EvalTest, ArtifactsTakeWindowsThatTheirContextHolds) {
  const std::string artifact = dir_.File("m.hxl");
  ASSERT_EQ(RunHexllm({"compile", Model(), "-q", "-o", artifact,
                       "--max-context-len", "64"})
                .status,
            0);
  const auto eval = [&](const std::string& window) {
    return RunHexllm(
        {"eval", artifact, "-q", "--tasks", questions_, "--window", window});
  };
  const Outcome fits = eval("64");
  EXPECT_EQ(fits.status, 0) << fits.err;
  ExpectError(eval("65"), 2, "--window: expected at most");
  ExpectError(RunHexllm({"eval", artifact, "-q", "--tasks", questions_,
                         "--mode", "lookahead"}),
              2, "no lookahead graph");
}

// Artifact and checkpoint must be of one model; NaN weights give no figures and
// no certificate.
TEST_F(EvalTest, RefusesOtherModelsAndNumbersThatAreNone) {
  const std::string artifact = dir_.File("m.hxl");
  ASSERT_EQ(RunHexllm({"compile", Model(), "-q", "--model-mode", "kv",
                       "--max-context-len", "64", "--recipe", "16a8w", "-o",
                       artifact})
                .status,
            0);
  const TempDir folder;
  TinyLlama tiny;
  tiny.WriteFolder(folder);
  const Outcome other =
      RunHexllm({"eval", artifact, "-q", "--sqnr", "--model", folder.path()});
  ExpectError(other, 3, artifact);
  EXPECT_THAT(other.err, HasSubstr(folder.path()));

  const TempDir damaged;
  for (const auto& entry : std::filesystem::directory_iterator(Model()))
    std::filesystem::copy(entry, damaged.path());
  std::string weights = ReadWholeFile(damaged.File("model.safetensors"));
  std::fill(weights.end() - 64, weights.end(), '\xff');
  damaged.Write("model.safetensors", weights);
  const Outcome eval = RunHexllm(
      {"eval", damaged.path(), "-q", "--window", "64", "--tasks", questions_});
  ExpectError(eval, 3, "q item 0: the logit of token ");
  EXPECT_EQ(eval.out, "");
  const TempDir out;
  ExpectError(RunHexllm({"compile", damaged.path(), "-q", "--certify",
                         "--max-context-len", "64", "-o", out.File("m.hxl")}),
              3, "position 0 is");
  EXPECT_EQ(out.CountFiles(), 0u);
}

TEST_F(EvalTest, CertificatesNeedATokenizer) {
  const TempDir out;
  ExpectError(
      RunHexllm({"compile", DataPath("models/llama3_2_1b"), "-q", "--certify",
                 "--max-context-len", "64", "-o", out.File("m.hxl")}),
      4, "expected a tokenizer");
  EXPECT_EQ(out.CountFiles(), 0u);
}

TEST_F(EvalTest, ShardsAreMerged) {
  const auto run = [&](const std::string& name,
                       const std::vector<std::string>& flags) {
    std::vector<std::string> args =
        Args({"--tasks", questions_, "--json", dir_.File(name)});
    args.insert(args.end(), flags.begin(), flags.end());
    const Outcome done = RunHexllm(args);
    EXPECT_EQ(done.status, 0) << done.err;
  };
  run("whole.json", {});
  run("1.json", {"--shard", "1/2"});
  run("2.json", {"--shard", "2/2"});
  const Outcome merged =
      RunHexllm({"eval", "merge", dir_.File("2.json"), dir_.File("1.json"),
                 "-o", dir_.File("all.json")});
  ASSERT_EQ(merged.status, 0) << merged.err;
  EXPECT_EQ(ReadWholeFile(dir_.File("all.json")),
            ReadWholeFile(dir_.File("whole.json")));
  ExpectError(RunHexllm({"eval", "merge", dir_.File("1.json"), "-o",
                         dir_.File("x.json")}),
              3, "one part of each shard");
  run("one.json", {"--shard", "1/1"});
  EXPECT_EQ(RunHexllm({"eval", "merge", dir_.File("one.json"), "-o",
                       dir_.File("all.json")})
                .status,
            0);
  EXPECT_EQ(ReadWholeFile(dir_.File("all.json")),
            ReadWholeFile(dir_.File("whole.json")));
  ExpectError(RunHexllm({"eval", "--mode", "kv", "merge", dir_.File("1.json"),
                         "-o", dir_.File("x.json")}),
              2, "alone, found --mode");
  ExpectError(RunHexllm({"eval", "merge", dir_.File("1.json"), "-o",
                         dir_.File("1.json")}),
              2, "input of this command");
}

// Nothing of the first stage is printed before what is wrong with the second.
TEST_F(EvalTest, LaterStagesAreCheckedFirst) {
  const std::string artifact = dir_.File("m.hxl");
  ASSERT_EQ(RunHexllm({"compile", Model(), "-q", "--recipe", "16a8w", "-o",
                       artifact, "--max-context-len", "64"})
                .status,
            0);
  const auto refused = [&](const std::vector<std::string>& args, int status,
                           const std::string& part) {
    const Outcome outcome = RunHexllm(args);
    ExpectError(outcome, status, part);
    EXPECT_EQ(outcome.out, "");
  };
  const auto stages = [&](const std::vector<std::string>& more) {
    std::vector<std::string> args =
        Args({"--tasks", questions_, "--stages", "fp,qdq"});
    args.insert(args.end(), more.begin(), more.end());
    return args;
  };
  refused(stages({"--recipe", "nosuch"}), 2, "nosuch");
  refused(stages({"--recipe", "fp32"}), 2, "a quantized recipe");
  refused(stages({"--recipe", "16a8w", "--calib-tokens", "1,99999"}), 3,
          "99999");
  refused(stages({"--recipe", "cpu-w8a8", "--calib-tokens", "1"}), 2,
          "--calib-*");
  const std::vector<std::string> own = {"eval",    artifact,   "-q",
                                        "--tasks", questions_, "--stages",
                                        "qdq,fp",  "--model"};
  std::vector<std::string> other = own;
  other.push_back(dir_.File("no"));
  refused(other, 5, dir_.File("no"));
  other.back() = DataPath("models/llama3_2_1b");
  refused(other, 3, "expected the checkpoint of");
  refused({"eval", artifact, "-q", "--window", "9000", "--sqnr", "--model",
           Model()},
          2, "--window: expected at most 64");
  refused({"eval", artifact, "-q", "--tasks", questions_, "--sqnr"}, 2,
          "--model");
  refused({"eval", artifact, "-q", "--tasks", questions_, "--bisect", "--model",
           Model()},
          2, "--taps");
}

TEST_F(EvalTest, PartsOfOtherRunsAreNotMerged) {
  const std::string others =
      dir_.Write("o.jsonl", std::string(kQuestions).replace(15, 3, "sea"));
  std::filesystem::create_directory(dir_.File("o"));
  std::filesystem::rename(others, dir_.File("o/q.jsonl"));
  const auto run = [&](const std::string& shard, const std::string& tasks,
                       const std::string& ids) {
    const std::string json = dir_.File(shard.substr(0, 1) + ids + ".json");
    EXPECT_EQ(
        RunHexllm(Args({"--tasks", tasks, "--recipe", "16a8w", "--calib-tokens",
                        ids, "--shard", shard, "--json", json}))
            .status,
        0);
    return json;
  };
  const std::string first = run("1/2", questions_, "5,6");
  const auto merge = [&](const std::string& part) {
    return RunHexllm(
        {"eval", "merge", first, part, "-o", dir_.File("all.json")});
  };
  ExpectError(merge(run("2/2", questions_, "5,6,7")), 3,
              "digest of recipe, calibration and chip");
  ExpectError(merge(run("2/2", dir_.File("o/q.jsonl"), "5,6")), 3,
              "digest of the items");
}

TEST_F(EvalTest, RefusesWhatMakesNoSense) {
  const std::string bad = dir_.Write(
      "bad.jsonl",
      "{\"query\": \"q\", \"choices\": [\"a\", \"b\"], \"label\": 2}\n");
  ExpectError(RunHexllm(Args({"--tasks", bad})), 3,
              "line 1: label: expected 0 to 1");
  ExpectError(RunHexllm(Args({"--tasks", dir_.File("no.jsonl")})), 5,
              "no.jsonl");
  const std::pair<std::vector<std::string>, std::string> usage[] = {
      {{}, "expected --tasks, --sqnr or --bisect"},
      {{"--tasks", "mmlu"}, "--tasks: expected wikitext"},
      {{"--tasks", "hellaswag"}, "expected --data-dir"},
      {{"--tasks", questions_ + "," + questions_}, "twice"},
      {{"--tasks", questions_, "--stages", "fp,fp"}, "each stage once"},
      {{"--tasks", questions_, "--shard", "3/2"}, "--shard: expected i/n"},
      {{"--tasks", questions_, "--shard", "1/2"}, "expected --json"},
      {{"--tasks", questions_, "--prompt", "x"}, "with --sqnr or --bisect"},
      {{"--sqnr"}, "found fp alone"},
      {{"--sqnr", "--recipe", "16a8w", "--shard", "1/2"}, "with --tasks"},
      {{"--bisect", "--recipe", "16a8w", "--tolerance", "nan"}, "--tolerance"},
      {{"--sqnr", "--recipe", "16a8w", "--tolerance", "5"}, "--bisect"},
      {{"--sqnr", "--recipe", "16a8w", "--prompt", "x\xff"}, "expected UTF-8"},
      {{"--sqnr", "--recipe", "16a8w", "--limit", "1"}, "--tasks"},
      {{"--sqnr", "--recipe", "16a8w", "--resume", "x"}, "--tasks"},
      {{"--tasks", questions_, "--data-dir", "x"}, "--data-dir: expected with"},
      {{"--tasks", questions_, "--calib-tokens", "1"}, "found fp alone"},
      {{"--tasks", questions_, "--soc", "SM8650"}, "found fp alone"},
      {{"--tasks", questions_, "--qnn-lib-dir", "x"}, "leave it out"},
      {{"--tasks", questions_, "--no-self-test"}, "found the checkpoint"},
      {{"--tasks", questions_, "--sqnr", "--recipe", "16a8w", "--shard", "1/2",
        "--json", "x"},
       "expected without --shard"},
      {{"--tasks", questions_, "--json", dir_.File("j"), "--resume",
        dir_.File("j")},
       "--json"},
      {{"--tasks", questions_, "--sqnr", "--recipe", "16a8w", "--tokens",
        "1,99999"},
       "found 99999 at 1"},
      {{"--tasks", questions_, "--sqnr", "--recipe", "16a8w", "--tokens",
        LongIds()},
       "expected 1 to 64 tokens"},
  };
  for (const auto& [flags, part] : usage)
    ExpectError(RunHexllm(Args(flags)), 2, part);
  ExpectError(RunHexllm({"eval", "--tasks", questions_}), 2, "MODEL|FILE.hxl");
  ExpectError(RunHexllm({"eval", Model(), "-q", "--window", "100000", "--tasks",
                         questions_}),
              2, "positions of the model, found 100000");
  const Outcome no_device =
      RunHexllm(Args({"--tasks", questions_, "--stages", "fp,device",
                      "--qnn-lib-dir", dir_.File("no")}));
  ExpectError(no_device, 5, dir_.File("no"));
  EXPECT_EQ(no_device.out, "");
}

TEST_F(EvalTest, SqnrComparesLogitsAndLayers) {
  const Outcome done =
      RunHexllm(Args({"--sqnr", "--recipe", "16a8w", "--json",
                      dir_.File("r.json"), "--report", dir_.File("r.html")}));
  ASSERT_EQ(done.status, 0) << done.err;
  EXPECT_THAT(done.out, HasSubstr("qdq against fp on "));
  const Json comparison = ReadJson("r.json")["comparisons"][0];
  EXPECT_GT(comparison["sqnr_db"], 20.0);
  EXPECT_LT(comparison["mean_kld"], 0.1);
  EXPECT_EQ(comparison["layers"][0]["name"], "model.layers.0");
  EXPECT_EQ(comparison["positions"].size(), comparison["tokens"]);
  EXPECT_THAT(ReadWholeFile(dir_.File("r.html")), HasSubstr("<polyline"));
}

// A few codes of one weight of a compiled artifact are overwritten.
TEST_F(EvalTest, BisectNamesADamagedWeight) {
  const std::string artifact = dir_.File("m.hxl");
  ASSERT_EQ(RunHexllm({"compile", Model(), "-q", "--taps", "--recipe", "16a8w",
                       "--max-context-len", "64", "--prefill-ar-len", "16",
                       "-o", artifact})
                .status,
            0);
  const std::vector<std::string> bisect = {"eval",        artifact,  "-q",
                                           "--bisect",    "--model", Model(),
                                           "--tolerance", "10"};
  const Outcome whole = RunHexllm(bisect);
  ASSERT_EQ(whole.status, 0) << whole.err;
  EXPECT_THAT(whole.out, HasSubstr("stays within 10 dB of fp"));

  const std::string name = "model.layers.1.mlp.up_proj";
  const Outcome inspected = RunHexllm({"inspect", artifact, "--json"});
  ASSERT_EQ(inspected.status, 0) << inspected.err;
  const Json manifest = ParseJson(inspected.out).value();
  std::string text = ReadWholeFile(artifact);
  bool damaged = false;
  for (const Json& segment : manifest["segments"]) {
    if (segment["name"].get<std::string>().find(name) == std::string::npos)
      continue;
    const size_t at = segment["offset"].get<size_t>();
    std::fill_n(text.begin() + static_cast<std::ptrdiff_t>(at), 64, '\x7f');
    damaged = true;
    break;
  }
  ASSERT_TRUE(damaged) << inspected.out.substr(0, 2000);
  dir_.Write("m.hxl", text);
  const Outcome found = RunHexllm(bisect);
  ASSERT_EQ(found.status, 0) << found.err;
  EXPECT_THAT(found.out, HasSubstr("at layer 1, " + name + ": SQNR"));
}

// A certified artifact whose head is damaged computes garbage.
TEST_F(EvalTest, CertifiedArtifactsTestThemselves) {
  const std::string artifact = dir_.File("m.hxl");
  const Outcome made =
      RunHexllm({"compile", Model(), "-q", "--certify", "--recipe", "16a8w",
                 "--max-context-len", "64", "-o", artifact});
  ASSERT_EQ(made.status, 0) << made.err;
  EXPECT_EQ(dir_.CountFiles(), 2u);
  const std::vector<std::string> run = {
      "run",   artifact,           "-q", "--tokens", "1,2",
      "--ids", "--max-new-tokens", "2"};
  EXPECT_EQ(RunHexllm(run).status, 0);
  std::string text = ReadWholeFile(artifact);
  const Json manifest =
      ParseJson(RunHexllm({"inspect", artifact, "--json"}).out).value();
  for (const Json& segment : manifest["segments"]) {
    if (!segment["name"].get<std::string>().starts_with("weights/model.norm"))
      continue;
    const auto at = text.begin() + segment["offset"].get<std::ptrdiff_t>();
    std::reverse(at, at + segment["bytes"].get<std::ptrdiff_t>());
    for (auto byte = at; byte < at + 64; ++byte) *byte = '\x55';
  }
  dir_.Write("m.hxl", text);
  ExpectError(RunHexllm(run), 5, "self-test: expected the logits");
  ExpectError(RunHexllm({"eval", artifact, "-q", "--tasks", questions_}), 5,
              "self-test");
  std::vector<std::string> untested = run;
  untested.push_back("--no-self-test");
  EXPECT_EQ(RunHexllm(untested).status, 0);
}

// One layer whose weights get 4 bits in the place of 8.
TEST_F(EvalTest, BisectNamesAWrongEncoding) {
  const std::string recipe = dir_.Write(
      "r.json",
      R"({"name": "r", "defaults": {"scheme": "16a8w"}, "kv_bits": 16,
          "residual": "activations",
          "rules": [{"names": ["model.layers.1.mlp.down_proj"],
                     "scheme": "16a4w"}]})");
  const std::string ids = "1,7,30,12,99,45,200,17,23,5,81,64,33,2,150,9";
  const Outcome found =
      RunHexllm(Args({"--bisect", "--recipe", recipe, "--tolerance", "18",
                      "--tokens", ids, "--calib-tokens", ids}));
  ASSERT_EQ(found.status, 0) << found.err;
  EXPECT_THAT(found.out,
              HasSubstr("at layer 1, model.layers.1.mlp.down_proj: SQNR"));
}

TEST_F(EvalTest, ShardsMayBeEmpty) {
  std::vector<std::string> merge = {"eval", "merge", "-o",
                                    dir_.File("all.json")};
  for (const char* shard : {"1/2", "2/2"}) {
    merge.push_back(dir_.File(std::string(1, shard[0]) + ".json"));
    const Outcome part = RunHexllm(
        Args({"--tasks", questions_, "--limit", "1", "--shard", shard, "--json",
              merge.back(), "--report", dir_.File("r.html")}));
    EXPECT_EQ(part.status, 0) << part.err;
  }
  const Outcome merged = RunHexllm(merge);
  ASSERT_EQ(merged.status, 0) << merged.err;
  EXPECT_THAT(merged.out, HasSubstr("1 questions"));
}

// What was printed stays, before it.
TEST_F(EvalTest, ResultsMayGoToTheStandardOutput) {
  const Outcome done =
      RunHexllm(Args({"--tasks", questions_, "--json", "/dev/stdout"}));
  ASSERT_EQ(done.status, 0) << done.err;
  const size_t at = done.out.find("\n{");
  ASSERT_NE(at, std::string::npos) << done.out;
  EXPECT_THAT(done.out.substr(0, at), HasSubstr("3 questions"));
  EXPECT_TRUE(ParseJson(done.out.substr(at)).ok());
}

}  // namespace
}  // namespace hexllm::testing
