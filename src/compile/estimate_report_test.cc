#include "compile/estimate_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hexllm {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

ModelEstimate Example() {
  const htp::GraphEstimate kv{
      .soc = "SM8750",
      .cycles = 4000000,
      .core_mhz = 1600,
      .us = 2500,
      .ddr_read_bytes = 150000000,
      .ddr_write_bytes = 20000,
      .spill_bytes = 10000,
      .fill_bytes = 30000,
      .ops = {{.unit = "DMA", .name = "weights", .count = 7, .busy_us = 2000},
              {.unit = "HVX", .name = "softmax", .count = 30, .busy_us = 100}}};
  htp::GraphEstimate prefill = kv;
  prefill.us = 5000;
  prefill.ops.clear();
  return {.producer = "hexllm 1",
          .library = "v2.51",
          .model = "Tiny",
          .recipe = "16a8w",
          .calibrated = true,
          .graphs = {{.name = "prefill_128",
                      .kind = "prefill",
                      .step_tokens = 128,
                      .context_tokens = 1024,
                      .estimate = prefill},
                     {.name = "kv",
                      .kind = "kv",
                      .step_tokens = 1,
                      .context_tokens = 1024,
                      .estimate = kv}}};
}

TEST(EstimateReport, SaysWhatItIsAndIsNot) {
  const std::string text = DescribeModelEstimate(Example(), 1);
  EXPECT_THAT(text, HasSubstr("estimate of the QNN compiler's cost model"));
  EXPECT_THAT(text, HasSubstr("nothing was measured on a device"));
  EXPECT_THAT(text, Not(HasSubstr("not calibrated")));
  EXPECT_THAT(text, HasSubstr("weights"));
  EXPECT_THAT(text, Not(HasSubstr("softmax")));
  ModelEstimate estimate = Example();
  estimate.calibrated = false;
  EXPECT_THAT(DescribeModelEstimate(estimate, 1), HasSubstr("not calibrated"));
}

TEST(EstimateReport, TokensPerSecondAreStepTokensOverLatency) {
  const ModelEstimate estimate = Example();
  EXPECT_DOUBLE_EQ(TokensPerSecond(estimate.graphs[0]), 25600);
  EXPECT_DOUBLE_EQ(TokensPerSecond(estimate.graphs[1]), 400);
  EXPECT_THAT(DescribeModelEstimate(estimate, 0), HasSubstr("25600.0"));
}

// Two parts on two SoCs: a sum for each kind of graph and SoC.
TEST(EstimateReport, PartsOfAStepAddUp) {
  ModelEstimate estimate = Example();
  estimate.graphs.pop_back();
  for (const char* soc : {"SM8750", "SM8650"}) {
    for (const char* name : {"kv_s0", "kv_s1"}) {
      GraphFigures part = Example().graphs[1];
      part.name = name;
      part.estimate.soc = soc;
      estimate.graphs.push_back(part);
    }
  }
  const std::string text = DescribeModelEstimate(estimate, 0);
  for (const char* soc : {"SM8750", "SM8650"}) {
    EXPECT_THAT(text, ContainsRegex(std::string(soc) +
                                    " +kv_s1 +1 +1024 +2.500 +4.000 +- "));
    EXPECT_THAT(text, ContainsRegex(std::string(soc) +
                                    " +all of kv +1 +1024 +5.000 +8.000 "
                                    "+200.0 +300.00 +0.04 +0.02 +0.06"));
  }
  EXPECT_THAT(text, Not(HasSubstr("all of prefill")));
  const Json json = EstimateToJson(estimate);
  ASSERT_EQ(json["steps"].size(), 3u);
  EXPECT_EQ(json["steps"][0]["tokens_per_second"], 25600);
  EXPECT_EQ(json["steps"][2]["soc"], "SM8650");
  EXPECT_EQ(json["steps"][2]["graphs"], 2);
  EXPECT_EQ(json["steps"][2]["us"], 5000);
  EXPECT_EQ(json["steps"][2]["tokens_per_second"], 200);
  EXPECT_TRUE(json["graphs"][0].contains("tokens_per_second"));
  EXPECT_FALSE(json["graphs"][1].contains("tokens_per_second"));
}

TEST(EstimateReport, JsonGoesThereAndBack) {
  const Json json = EstimateToJson(Example());
  EXPECT_THAT(json["what"].get<std::string>(), HasSubstr("estimate"));
  EXPECT_EQ(json["graphs"][1]["tokens_per_second"], 400);
  const auto back = EstimateFromJson(ParseJson(DumpJson(json)).value());
  ASSERT_TRUE(back.ok()) << back.error().message;
  EXPECT_EQ(EstimateToJson(*back), json);
  EXPECT_EQ(DescribeModelEstimate(*back, 9),
            DescribeModelEstimate(Example(), 9));
}

TEST(EstimateReport, DamagedJsonIsRefused) {
  const Json whole = EstimateToJson(Example());
  const auto expect_refused = [](const Json& json) {
    const auto estimate = EstimateFromJson(json);
    ASSERT_FALSE(estimate.ok()) << DumpJson(json);
    EXPECT_EQ(estimate.error().code, ErrorCode::kBadInput);
  };
  expect_refused(Json());
  expect_refused(Json::array());
  for (const char* key :
       {"producer", "library", "model", "recipe", "calibrated", "graphs"}) {
    Json json = whole;
    json.erase(key);
    expect_refused(json);
  }
  const std::pair<const char*, Json> bad[] = {{"us", 0},
                                              {"us", -1},
                                              {"us", "2"},
                                              {"cycles", 1e300},
                                              {"cycles", nullptr},
                                              {"step_tokens", 0},
                                              {"context_tokens", 1LL << 40},
                                              {"ops", 1},
                                              {"fill_bytes", -1},
                                              {"soc", 8750},
                                              {"name", nullptr},
                                              {"core_mhz", false},
                                              {"ops", Json::array({1})}};
  for (const auto& [key, value] : bad) {
    Json json = whole;
    json["graphs"][0][key] = value;
    expect_refused(json);
  }
  Json none = whole;
  none["graphs"] = Json::array();
  expect_refused(none);
}

}  // namespace
}  // namespace hexllm
