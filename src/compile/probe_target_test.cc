// What the HTP's compiler refuses is found before the calibration. Skipped
// where the vendor's library is not there.
#include "compile/probe_target.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/support/golden_tensors.h"
#include "tests/support/qnn_folder.h"

namespace hexllm {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

class Steps final : public ProgressSink {
 public:
  void Begin(std::string_view step, std::string_view, int64_t) override {
    names.emplace_back(step);
  }
  void Update(int64_t) override {}
  void Warn(std::string_view) override {}
  void Note(std::string_view) override {}

  std::vector<std::string> names;
};

class ProbeTargetTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!qnn_) GTEST_SKIP() << testing::kNoQnn;
    options_.mode = ModelMode::kKv;
    options_.max_context_len = 16;
    options_.calibration.ids = {{1, 5, 9, 2, 4}};
    options_.target.name = "htp";
    options_.target.qnn_lib_dir = *qnn_;
  }
  Status Compile(const std::string& model = "llama3_2_1b") {
    return CompileToMemory(testing::DataPath("models/" + model), options_,
                           steps_)
        .status();
  }

  const std::optional<std::string> qnn_ = testing::FindQnnFolder();
  CompileOptions options_;
  Steps steps_;
};

TEST_F(ProbeTargetTest, NamesWhatAChipLacksBeforeItCalibrates) {
  options_.target.soc = "SM8350";
  options_.recipe = "16a4w_block";
  const Status status = Compile();
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code, ErrorCode::kUnsupported);
  EXPECT_THAT(status.error().message,
              AllOf(HasSubstr("graph 'kv_s0': "
                              "'model.layers.0.self_attn.q_proj' = linear"),
                    HasSubstr("SM8350"), HasSubstr("v68"), HasSubstr("LPBQ")));
  EXPECT_THAT(steps_.names, Contains("try single layers"));
  EXPECT_THAT(steps_.names, Not(Contains("calibrate")));
}

TEST_F(ProbeTargetTest, NamesWhatAChipLacksBeforeItSmooths) {
  options_.target.soc = "SM8350";
  options_.recipe_json =
      R"({"name": "s", "smooth": "search", "defaults": {"scheme": "16a4w_block"}})";
  const Status status = Compile();
  ASSERT_FALSE(status.ok());
  EXPECT_THAT(status.error().message, HasSubstr("LPBQ"));
  EXPECT_THAT(steps_.names, Contains("try single layers"));
  EXPECT_THAT(steps_.names, Not(Contains("smooth channels")));
}

TEST_F(ProbeTargetTest, LetsPassWhatCompiles) {
  options_.recipe = "16a8w";
  const Status status = Compile();
  ASSERT_TRUE(status.ok()) << status.error().message;
  const auto probed = std::ranges::find(steps_.names, "try single layers");
  const auto calibrated = std::ranges::find(steps_.names, "calibrate");
  EXPECT_LT(probed, calibrated);
  EXPECT_NE(calibrated, steps_.names.end());
}

// Without logits the last layer's attention goes into no output: a part of that
// layer alone has a mask and does not read it.
TEST_F(ProbeTargetTest, PromptBlocksWithoutLogitsCompile) {
  options_.mode = ModelMode::kHybrid;
  options_.prefill_ar_len = 8;
  options_.max_context_len = 32;
  options_.prefill_logits = LogitsRows::kNone;
  options_.recipe = "16a8w";
  for (const int64_t parts : {1, 4}) {
    options_.num_sharding = parts;
    const Status status = Compile("smollm2_135m");
    EXPECT_TRUE(status.ok()) << parts << ": " << status.error().message;
  }
}

TEST_F(ProbeTargetTest, OpensTheLibraryFirst) {
  options_.target.qnn_lib_dir = "/no/such/folder";
  const Status status = Compile();
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code, ErrorCode::kEnvironment);
  EXPECT_THAT(steps_.names, ::testing::ElementsAre("open checkpoint"));
}

}  // namespace
}  // namespace hexllm
