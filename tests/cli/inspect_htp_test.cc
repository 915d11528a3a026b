// `inspect` on an artifact for the HTP: with the QNN libraries it also says
// what is in the contexts, and it does not show them damaged ones.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "base/json.h"
#include "tests/cli/process.h"
#include "tests/support/golden_tensors.h"

namespace hexllm::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::string QnnFolder() {
  const char* set = std::getenv("HEXLLM_QNN_LIB_DIR");
  const std::string folder =
      set != nullptr ? set : HEXLLM_SOURCE_DIR "/build/qnn";
  return std::filesystem::exists(folder + "/libQnnSystem.so") ? folder : "";
}

class HtpArtifact : public ::testing::Test {
 protected:
  void SetUp() override {
    if (qnn_.empty())
      GTEST_SKIP() << "no QNN libraries: run scripts/setup-qnn, or set "
                      "HEXLLM_QNN_LIB_DIR";
    const Outcome compiled = RunHexllm(
        {"compile", model_, "-q", "-o", file_, "--target", "htp", "--soc",
         "SM8550", "--model-mode", "kv", "--recipe", "16a8w", "--calib-tokens",
         "1,2,3,4", "--max-context-len", "32", "--qnn-lib-dir", qnn_});
    ASSERT_EQ(compiled.status, 0) << compiled.err;
  }

  const std::string qnn_ = QnnFolder();
  const std::string model_ = DataPath("models/smollm2_135m");
  const TempDir dir_;
  const std::string file_ = dir_.File("m.hxl");
};

TEST_F(HtpArtifact, IsDescribedWhereItIsWhole) {
  const Outcome whole = RunHexllm({"inspect", file_, "--qnn-lib-dir", qnn_});
  EXPECT_EQ(whole.status, 0) << whole.err;
  EXPECT_THAT(whole.out,
              AllOf(HasSubstr("QNN context binary for SM8550 (HTP v73)"),
                    HasSubstr("\ngraph kv, optimization"),
                    HasSubstr("\n  out logits u16")));
  // The context is the last segment: one byte of it is altered.
  std::fstream stream(file_, std::ios::in | std::ios::out | std::ios::binary);
  stream.seekp(-5000, std::ios::end);
  const int byte = stream.peek();
  stream.put(static_cast<char>(byte ^ 0x55));
  stream.close();
  const Outcome damaged = RunHexllm({"inspect", file_, "--qnn-lib-dir", qnn_});
  EXPECT_EQ(damaged.status, static_cast<int>(ErrorCode::kBadInput));
  EXPECT_THAT(damaged.err, HasSubstr("checksum"));
}

// The record that it keeps of its calibration is all that qdq needs beside the
// checkpoint.
TEST_F(HtpArtifact, IsQuantizedAgainFromItsCheckpoint) {
  const std::string again = dir_.File("again");
  const std::string direct = dir_.File("direct");
  const auto logits = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "logits");
    for (const char* word : {"--stage", "qdq", "--tokens", "5,6,7,8"})
      arguments.emplace_back(word);
    return RunHexllm(arguments);
  };
  const Outcome made = logits({file_, "--model", model_, "-o", again});
  ASSERT_EQ(made.status, 0) << made.err;
  ASSERT_EQ(logits({model_, "--recipe", "16a8w", "--calib-tokens", "1,2,3,4",
                    "--soc", "SM8550", "-o", direct})
                .status,
            0);
  EXPECT_EQ(ReadWholeFile(again), ReadWholeFile(direct));

  const Outcome other = logits(
      {file_, "--model", model_, "--set", "rms_norm_eps=0.1", "-o", again});
  EXPECT_EQ(other.status, static_cast<int>(ErrorCode::kBadInput));
  EXPECT_THAT(other.err, HasSubstr("expected the checkpoint of"));
  const Outcome alone = logits({file_, "-o", again});
  EXPECT_EQ(alone.status, static_cast<int>(ErrorCode::kUsage));
  EXPECT_THAT(alone.err, HasSubstr("give its checkpoint with --model"));
}

TEST(InspectHtp, TheLibrariesAreForArtifactsAndPeople) {
  const std::string model = DataPath("models/smollm2_135m");
  const Outcome checkpoint =
      RunHexllm({"inspect", model, "--qnn-lib-dir", "x"});
  EXPECT_EQ(checkpoint.status, static_cast<int>(ErrorCode::kUsage));
  EXPECT_THAT(checkpoint.err, HasSubstr("a checkpoint has none"));
  const TempDir dir;
  const std::string file = dir.File("m.hxl");
  ASSERT_EQ(RunHexllm({"compile", model, "-q", "-o", file, "--model-mode", "kv",
                       "--max-context-len", "32"})
                .status,
            0);
  EXPECT_EQ(RunHexllm({"inspect", file, "--json", "--qnn-lib-dir", "x"}).status,
            static_cast<int>(ErrorCode::kUsage));
  const Outcome missing =
      RunHexllm({"inspect", file, "--qnn-lib-dir", "no/such/folder"});
  EXPECT_EQ(missing.status, static_cast<int>(ErrorCode::kEnvironment));
  EXPECT_THAT(missing.err, HasSubstr("scripts/setup-qnn"));
}

}  // namespace
}  // namespace hexllm::testing
