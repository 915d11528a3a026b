// `bench --estimate` and `compile --estimate`: the compiler's opinion of a
// phone, from a model and from an artifact, and no number where there is none.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "base/json.h"
#include "tests/cli/process.h"
#include "tests/support/golden_tensors.h"
#include "tests/support/qnn_folder.h"

namespace hexllm::testing {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr int kUsage = 2;
constexpr int kUnsupported = 4;
constexpr int kEnvironment = 5;

class BenchEstimate : public ::testing::Test {
 protected:
  // `bench MODEL ARGS` fails with one line that holds `part`, and no number.
  static void ExpectError(std::vector<std::string> args, int status,
                          const std::string& part) {
    args.insert(args.begin(), {"bench", "-q"});
    const Outcome outcome = RunHexllm(args);
    EXPECT_EQ(outcome.status, status) << outcome.err;
    EXPECT_EQ(outcome.out, "");
    EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1)
        << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr(part));
  }

  // The estimates in a file, by chip and graph.
  static std::map<std::string, Json> Graphs(const std::string& path) {
    auto json = ReadJsonFile(path);
    if (!json.ok()) {
      ADD_FAILURE() << json.error().message;
      return {};
    }
    EXPECT_THAT((*json)["what"].get<std::string>(),
                HasSubstr("nothing was measured"));
    std::map<std::string, Json> graphs;
    for (const Json& graph : (*json)["graphs"])
      graphs[graph["soc"].get<std::string>() + " " +
             graph["name"].get<std::string>()] = graph;
    return graphs;
  }

  const std::string model_ = DataPath("models/smollm2_135m");
  const std::optional<std::string> qnn_ = FindQnnFolder();
  const TempDir dir_;
};

TEST_F(BenchEstimate, WhatCannotBeEstimated) {
  ExpectError({model_}, kUsage, "expected --estimate");
  ExpectError({model_, "--estimate", "--soc", "SM8749"}, kUsage, "SM8750");
  ExpectError({model_, "--estimate", "--soc", "SM8750,QCM6490"}, kUnsupported,
              "no cost model of QCM6490");
  ExpectError({model_, "--estimate", "--qnn-lib-dir", dir_.File("none")},
              kEnvironment, "scripts/setup-qnn");
  ExpectError({model_, "--estimate", "--model", model_}, kUsage,
              "expected with an artifact only");
  ExpectError({model_, "--estimate", "--json", dir_.File("a"), "--trace",
               dir_.File("a")},
              kUsage, "--trace");
  EXPECT_EQ(dir_.CountFiles(), 0U);
}

TEST_F(BenchEstimate, ArtifactsForTheCpuHaveNone) {
  const std::string file = dir_.File("m.hxl");
  const Outcome refused =
      RunHexllm({"compile", model_, "-q", "-o", file, "--estimate"});
  EXPECT_EQ(refused.status, kUsage);
  EXPECT_THAT(refused.err, HasSubstr("expected with --target htp"));
  ASSERT_EQ(RunHexllm({"compile", model_, "-q", "-o", file}).status, 0);
  ExpectError({file, "--estimate"}, kUsage, "for the backend cpu");
  ExpectError({file, "--estimate", "--model", model_}, kUsage,
              "for the backend cpu");
  ExpectError({file, "--estimate", "--recipe", "16a8w"}, kUsage, "--recipe");
}

TEST_F(BenchEstimate, OfAModelForSeveralChips) {
  if (!qnn_) GTEST_SKIP() << kNoQnn;
  const Outcome outcome = RunHexllm({"bench",
                                     model_,
                                     "-q",
                                     "--estimate",
                                     "--soc",
                                     "SM8650,sm8750",
                                     "--max-context-len",
                                     "64",
                                     "--prefill-ar-len",
                                     "8",
                                     "--recipe",
                                     "16a8w",
                                     "--qnn-lib-dir",
                                     *qnn_,
                                     "--json",
                                     dir_.File("e.json"),
                                     "--trace",
                                     dir_.File("t.json"),
                                     "--top",
                                     "3"});
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_EQ(outcome.err, "");
  EXPECT_THAT(outcome.out,
              AllOf(HasSubstr("nothing was measured on a device"),
                    HasSubstr("SM8650    prefill_8"), HasSubstr("SM8750    kv"),
                    HasSubstr("kv on SM8750")));
  const auto graphs = Graphs(dir_.File("e.json"));
  ASSERT_EQ(graphs.size(), 4U);
  for (const auto& [name, graph] : graphs) {
    const double us = graph["us"].get<double>();
    EXPECT_GT(us, 10) << name;
    EXPECT_LT(us, 10000) << name;
    EXPECT_NEAR(graph["tokens_per_second"].get<double>(),
                graph["step_tokens"].get<double>() / us * 1e6, 1);
    EXPECT_GT(graph["ddr_read_bytes"], 10000) << name;
    EXPECT_GT(graph["ops"].size(), 10U);
  }
  EXPECT_EQ(graphs.at("SM8650 prefill_8")["context_tokens"], 64);
  const auto trace = ReadJsonFile(dir_.File("t.json"));
  ASSERT_TRUE(trace.ok()) << trace.error().message;
  std::vector<std::string> processes;
  double end = 0;
  for (const Json& event : (*trace)["traceEvents"]) {
    if (event["name"] == "process_name")
      processes.push_back(event["args"]["name"].get<std::string>());
    if (event["ph"] == "X" && event["pid"] == 4)
      end =
          std::max(end, event["ts"].get<double>() + event["dur"].get<double>());
  }
  EXPECT_THAT(processes, ElementsAre("prefill_8 on SM8650", "kv on SM8650",
                                     "prefill_8 on SM8750", "kv on SM8750"));
  EXPECT_NEAR(end, graphs.at("SM8750 kv")["us"].get<double>(), 0.01);
}

// What an artifact was compiled with, and the same anew from its checkpoint,
// without a calibration.
TEST_F(BenchEstimate, OfAnArtifact) {
  if (!qnn_) GTEST_SKIP() << kNoQnn;
  const std::string file = dir_.File("m.hxl");
  const std::vector<std::string> compile = {
      "compile", model_,           "-q",      "-o",
      file,      "--target",       "htp",     "--soc",
      "SM8550",  "--recipe",       "16a8w",   "--model-mode",
      "kv",      "--calib-tokens", "1,2,3,4", "--max-context-len",
      "64",      "--qnn-lib-dir",  *qnn_};
  ASSERT_EQ(RunHexllm(compile).status, 0);
  ExpectError({file, "--estimate"}, kUsage, "--model");
  std::vector<std::string> with_estimate = compile;
  with_estimate.push_back("--estimate");
  ASSERT_EQ(RunHexllm(with_estimate).status, 0);
  const Outcome stored = RunHexllm(
      {"bench", file, "-q", "--estimate", "--json", dir_.File("a.json")});
  ASSERT_EQ(stored.status, 0) << stored.err;
  EXPECT_THAT(stored.out, HasSubstr("SM8550    kv"));
  const Outcome anew =
      RunHexllm({"bench", file, "-q", "--estimate", "--model", model_,
                 "--qnn-lib-dir", *qnn_, "--json", dir_.File("b.json")});
  ASSERT_EQ(anew.status, 0) << anew.err;
  EXPECT_THAT(anew.out, HasSubstr("not calibrated"));
  const auto a = Graphs(dir_.File("a.json"));
  const auto b = Graphs(dir_.File("b.json"));
  ASSERT_EQ(a.size(), 1U);
  ASSERT_TRUE(b.contains("SM8550 kv"));
  const double us = a.at("SM8550 kv")["us"].get<double>();
  EXPECT_NEAR(b.at("SM8550 kv")["us"].get<double>(), us, us * 0.01);
  ExpectError({file, "--estimate", "--soc", "SM8550,SM8750"}, kUsage,
              "--model");
  ExpectError({file, "--estimate", "--trace", dir_.File("t")}, kUsage,
              "--model");
  ExpectError({file, "--estimate", "--model", DataPath("models/llama3_2_1b"),
               "--qnn-lib-dir", *qnn_},
              kUsage,
              "expected the checkpoint that the artifact was made from");
}

}  // namespace
}  // namespace hexllm::testing
