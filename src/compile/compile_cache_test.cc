// What --cache-dir keeps, and what makes a compilation do work again. Skipped
// where the vendor's library is not there.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "compile/compiler.h"
#include "tests/support/golden_tensors.h"
#include "tests/support/qnn_folder.h"
#include "tests/support/temp_dir.h"

namespace hexllm {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using testing::TempDir;
using ::testing::UnorderedElementsAre;

class Lines final : public ProgressSink {
 public:
  void Begin(std::string_view step, std::string_view, int64_t) override {
    steps.emplace_back(step);
  }
  void Update(int64_t) override {}
  void Warn(std::string_view line) override { warnings.emplace_back(line); }
  void Note(std::string_view line) override {
    notes.emplace_back(line);
    if (line.ends_with(": from the cache"))
      reused.emplace_back(line.substr(0, line.find(':')));
    if (line.find(" CPU-seconds and ") != line.npos)
      made.emplace_back(line.substr(0, line.find(':')));
  }

  std::vector<std::string> steps, warnings, notes, reused, made;
};

class CompileCacheTest : public ::testing::Test {
 protected:
  CompileCacheTest() {
    options_.mode = ModelMode::kKv;
    options_.max_context_len = 16;
    options_.recipe = "16a8w";
    options_.calibration.ids = {{1, 5, 9, 2, 4}};
    options_.target.name = "htp";
    options_.target.qnn_lib_dir = qnn_.value_or("");
    options_.cache_dir = dir_.File("cache");
    options_.num_sharding = 2;
    fs::copy(testing::DataPath("models/llama3_2_1b"), dir_.File("model"),
             fs::copy_options::recursive);
  }

  // The artifact's bytes.
  std::string Compile() {
    lines_ = {};
    const std::string out = dir_.File("m.hxl");
    const Status status =
        CompileToFile(dir_.File("model"), out, options_, lines_);
    EXPECT_TRUE(status.ok()) << status.error().message;
    return testing::ReadWholeFile(out);
  }

  Error CompileError() {
    const Status status =
        CompileToFile(dir_.File("model"), dir_.File("m.hxl"), options_, lines_);
    EXPECT_FALSE(status.ok());
    EXPECT_FALSE(fs::exists(dir_.File("m.hxl")));
    return status.ok() ? Error{} : status.error();
  }

  const std::optional<std::string> qnn_ = testing::FindQnnFolder();
  const TempDir dir_;
  CompileOptions options_;
  Lines lines_;
};

TEST_F(CompileCacheTest, WhatChangedIsMadeAgain) {
  if (!qnn_) GTEST_SKIP() << testing::kNoQnn;
  const std::string first = Compile();
  EXPECT_THAT(lines_.made,
              UnorderedElementsAre("context/kv_s0", "context/kv_s1"));
  EXPECT_THAT(lines_.reused, IsEmpty());

  EXPECT_EQ(Compile(), first);
  EXPECT_THAT(lines_.made, IsEmpty());
  EXPECT_THAT(lines_.reused,
              ElementsAre("calibration", "context/kv_s0", "context/kv_s1"));
  EXPECT_THAT(lines_.steps, Not(Contains("calibrate")));

  // Other weights in the last layer: what comes before it stays the same.
  std::string weights =
      testing::ReadWholeFile(dir_.File("model/model.safetensors"));
  weights.back() = static_cast<char>(weights.back() ^ 1);
  dir_.Write("model/model.safetensors", weights);
  const std::string changed = Compile();
  EXPECT_NE(changed, first);
  EXPECT_THAT(lines_.steps, Contains("calibrate"));
  EXPECT_THAT(lines_.reused, ElementsAre("context/kv_s0"));
  EXPECT_THAT(lines_.made, ElementsAre("context/kv_s1"));

  // Without a cache, and with a damaged one, the same comes out.
  for (const auto& entry : fs::directory_iterator(options_.cache_dir)) {
    if (entry.file_size() > 10'000)
      fs::resize_file(entry, entry.file_size() - 1);
  }
  EXPECT_EQ(Compile(), changed);
  EXPECT_THAT(lines_.warnings, Contains(HasSubstr("it is truncated")).Times(2));
  EXPECT_THAT(lines_.made,
              UnorderedElementsAre("context/kv_s0", "context/kv_s1"));
  options_.cache_dir.clear();
  EXPECT_EQ(Compile(), changed);
}

TEST_F(CompileCacheTest, AnotherChipIsAnotherContext) {
  if (!qnn_) GTEST_SKIP() << testing::kNoQnn;
  options_.num_sharding = 1;
  options_.recipe = "fp16";
  options_.calibration = {};
  for (const char* soc : {"SM8650", "SM8750"}) {
    options_.target.soc = soc;
    Compile();
    EXPECT_THAT(lines_.made, ElementsAre("context/kv")) << soc;
  }
}

TEST_F(CompileCacheTest, TheCpuKeepsCalibrationsAlone) {
  options_.target.name = "cpu";
  options_.num_sharding = 1;
  const std::string first = Compile();
  EXPECT_EQ(Compile(), first);
  EXPECT_THAT(lines_.reused, ElementsAre("calibration"));
  options_.recipe = "fp32";
  options_.calibration = {};
  fs::remove(dir_.File("m.hxl"));
  const Error error = CompileError();
  EXPECT_EQ(error.code, ErrorCode::kUsage);
  EXPECT_THAT(error.message, AllOf(HasSubstr("--cache-dir"), HasSubstr("cpu")));
}

TEST_F(CompileCacheTest, MemoryIsCheckedBeforeTheWork) {
  if (!qnn_) GTEST_SKIP() << testing::kNoQnn;
  options_.num_sharding = 1;
  options_.target.max_memory = uint64_t{1} << 20;
  const Error error = CompileError();
  EXPECT_EQ(error.code, ErrorCode::kUnsupported);
  EXPECT_THAT(error.message,
              AllOf(HasSubstr("--max-memory"), HasSubstr("context/kv"),
                    HasSubstr("no --num-sharding")));
  EXPECT_THAT(lines_.steps, Not(Contains("calibrate")));
}

TEST_F(CompileCacheTest, ScalesAndCodesOfWeightsAreKept) {
  constexpr const char* kSampled = "layers' inputs are sampled";
  options_.target = {};
  options_.num_sharding = 1;
  const auto recipe = [](const char* observer, const char* smooth = "none") {
    return fmt::format(R"({{"name": "r", "defaults": {{"scheme": "16a4w",
        "weight_observer": "{}", "rounding": "gptq"}}, "smooth": "{}"}})",
                       observer, smooth);
  };
  options_.recipe_json = recipe("seq_mse");
  const std::string first = Compile();
  EXPECT_EQ(Compile(), first);
  EXPECT_THAT(lines_.notes, Not(Contains(kSampled)));
  // Ranges are there, inputs of layers are not.
  options_.recipe_json = recipe("min_max");
  const std::string other = Compile();
  EXPECT_THAT(lines_.reused, Contains("calibration"));
  EXPECT_THAT(lines_.notes, Contains(kSampled));
  options_.recipe_json = recipe("min_max", "search");
  const std::string smoothed = Compile();
  EXPECT_NE(smoothed, other);
  EXPECT_EQ(Compile(), smoothed);
  EXPECT_THAT(lines_.reused, ElementsAre("channel factors", "calibration"));
  options_.cache_dir.clear();
  options_.threads = 1;
  EXPECT_EQ(Compile(), smoothed);
  options_.recipe_json = recipe("min_max");
  EXPECT_EQ(Compile(), other);
  options_.recipe_json = recipe("seq_mse");
  EXPECT_EQ(Compile(), first);
}

}  // namespace
}  // namespace hexllm
