#include "base/near_name.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace hexllm {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr std::string_view kNames[] = {"16a8w", "16a4w", "16a4w_block",
                                       "cpu-w4a8"};

TEST(NearName, FindsTypingErrorsNearestFirst) {
  EXPECT_THAT(NearNames("16a8", kNames), ElementsAre("16a8w"));
  EXPECT_THAT(NearNames("16a4w_blok", kNames), ElementsAre("16a4w_block"));
  EXPECT_THAT(NearNames("16a4", kNames), ElementsAre("16a4w", "16a4w_block"));
  EXPECT_THAT(NearNames("cpu-w8a4", kNames), ElementsAre("cpu-w4a8"));
  EXPECT_THAT(NearNames("CPU-W4A8", kNames), ElementsAre("cpu-w4a8"));
}

TEST(NearName, ASwapOfNeighboursIsOneEdit) {
  constexpr std::string_view kWords[] = {"abc"};
  EXPECT_THAT(NearNames("acb", kWords), ElementsAre("abc"));
  EXPECT_THAT(NearNames("cba", kWords), IsEmpty());
}

TEST(NearName, FarNamesGetNone) {
  EXPECT_THAT(NearNames("int3", kNames), IsEmpty());
  EXPECT_THAT(NearNames("", kNames), IsEmpty());
  EXPECT_THAT(NearNames(std::string(1 << 20, '1'), kNames), IsEmpty());
}

TEST(NearName, AtMostThree) {
  constexpr std::string_view kMany[] = {"a1", "a2", "a3", "a4", "a5"};
  EXPECT_THAT(NearNames("a", kMany), ElementsAre("a1", "a2", "a3"));
}

TEST(NearName, MessageListsAllWhenNothingIsNear) {
  EXPECT_EQ(SuggestNames("16a8", kNames), "did you mean '16a8w'?");
  EXPECT_EQ(SuggestNames("16a4", kNames),
            "did you mean '16a4w' or '16a4w_block'?");
  EXPECT_EQ(SuggestNames("x", kNames),
            "expected one of 16a8w, 16a4w, 16a4w_block, cpu-w4a8");
}

}  // namespace
}  // namespace hexllm
