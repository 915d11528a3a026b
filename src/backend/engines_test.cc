#include "backend/engines.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hexllm {
namespace {

// That of htp: htp/engine_test.cc.
TEST(Engines, EveryListedBackendCanBeMadeOrSaysWhatItLacks) {
  for (const std::string_view name : BackendNames()) {
    const auto engine =
        CreateEngine(name, {.threads = 1, .qnn_lib_dir = "/no/such/folder"});
    if (name == "htp") {
      ASSERT_FALSE(engine.ok());
      EXPECT_EQ(engine.error().code, ErrorCode::kEnvironment);
      EXPECT_THAT(engine.error().message,
                  ::testing::HasSubstr("/no/such/folder"));
      continue;
    }
    ASSERT_TRUE(engine.ok()) << engine.error().message;
    EXPECT_EQ((*engine)->name(), name);
  }
}

TEST(Engines, OthersAreRefusedWithTheList) {
  const auto engine = CreateEngine("gpu\n", {});
  ASSERT_FALSE(engine.ok());
  EXPECT_EQ(engine.error().code, ErrorCode::kUnsupported);
  EXPECT_THAT(engine.error().message, ::testing::HasSubstr("cpu"));
  EXPECT_THAT(engine.error().message,
              ::testing::Not(::testing::HasSubstr("\n")));
}

TEST(Engines, FlagsOfTheHtpAreNotForTheCpu) {
  for (const BackendOptions& options :
       {BackendOptions{.htp_performance = "burst"},
        BackendOptions{.shared_buffer = "off"}}) {
    const auto engine = CreateEngine("cpu", options);
    ASSERT_FALSE(engine.ok());
    EXPECT_EQ(engine.error().code, ErrorCode::kUsage);
  }
  const auto mode = CreateEngine("htp", {.htp_performance = "brust"});
  ASSERT_FALSE(mode.ok());
  EXPECT_EQ(mode.error().code, ErrorCode::kUsage);
  EXPECT_THAT(mode.error().message, ::testing::HasSubstr("'burst'"));
}

TEST(Engines, OptionsReachTheBackend) {
  const auto engine = CreateEngine("cpu", {.threads = -3});
  ASSERT_FALSE(engine.ok());
  EXPECT_EQ(engine.error().code, ErrorCode::kUsage);
}

}  // namespace
}  // namespace hexllm
