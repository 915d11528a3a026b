#include "backend/htp/soc_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

namespace hexllm::htp {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(SocTableTest, RowsAreSane) {
  std::set<uint32_t> ids;
  const std::set<uint32_t> generations = {68, 69, 73, 75, 79, 81, 85};
  std::string_view before;
  for (const Soc& soc : AllSocs()) {
    EXPECT_LT(before, soc.name);
    before = soc.name;
    EXPECT_TRUE(ids.insert(soc.qnn_id).second) << soc.name;
    EXPECT_TRUE(generations.contains(soc.htp)) << soc.name;
    EXPECT_GE(soc.vtcm_mb, 2U);
    EXPECT_LE(soc.vtcm_mb, 16U);
    ASSERT_NE(FindSocById(soc.qnn_id), nullptr);
    EXPECT_EQ(FindSocById(soc.qnn_id)->name, soc.name);
  }
  EXPECT_EQ(ids.size(), 24U);
  EXPECT_EQ(FindSocById(0), nullptr);
}

TEST(SocTableTest, FindsByNameInAnyCase) {
  EXPECT_EQ(FindSoc("sm8750")->qnn_id, 69U);
  EXPECT_EQ(FindSoc("SM8650")->htp, 75U);
}

TEST(SocTableTest, HasTheLaptops) {
  const Soc elite = FindSoc("SC8380XP").value();
  const Soc elite2 = FindSoc("sc8480xp").value();
  EXPECT_EQ(elite.htp, 73U);
  EXPECT_EQ(elite2.htp, 81U);
  for (const Soc& soc : {elite, elite2}) {
    for (const Feature feature : {Feature::kHalf, Feature::kBlockWeights,
                                  Feature::kWeightSharing, Feature::k16BitKv})
      EXPECT_TRUE(RequireFeature(soc, feature).ok());
    EXPECT_TRUE(soc.has_cost_model);
  }
}

TEST(SocTableTest, SuggestsNames) {
  const auto soc = FindSoc("SM8751");
  ASSERT_FALSE(soc.ok());
  EXPECT_EQ(soc.error().code, ErrorCode::kUsage);
  EXPECT_THAT(soc.error().message,
              AllOf(HasSubstr("'SM8751'"), HasSubstr("'SM8750'")));
}

TEST(SocTableTest, FeaturesFollowTheGeneration) {
  const Soc v68 = FindSoc("SM8350").value();
  const Soc v69 = FindSoc("SM8450").value();
  const Soc v73 = FindSoc("SM8550").value();
  EXPECT_FALSE(RequireFeature(v68, Feature::kBlockWeights).ok());
  EXPECT_TRUE(RequireFeature(v69, Feature::kBlockWeights).ok());
  for (const Feature feature :
       {Feature::kWeightSharing, Feature::k16BitKv, Feature::k16BitWeights,
        Feature::k16BitLayerNorm, Feature::k2BitWeights}) {
    EXPECT_FALSE(RequireFeature(v69, feature).ok());
    EXPECT_TRUE(RequireFeature(v73, feature).ok());
  }
  const Status refused = RequireFeature(v69, Feature::k16BitKv);
  EXPECT_EQ(refused.error().code, ErrorCode::kUnsupported);
  EXPECT_THAT(refused.error().message,
              AllOf(HasSubstr("SM8450"), HasSubstr("v69"), HasSubstr("v73"),
                    HasSubstr("8-bit KV")));
}

TEST(SocTableTest, HalfPrecisionIsAMatterOfTheChip) {
  for (const char* name : {"SM8450", "SM8550", "SM8850"})
    EXPECT_TRUE(RequireFeature(FindSoc(name).value(), Feature::kHalf).ok());
  for (const char* name : {"SM8350", "SSG2115P"}) {
    const Status refused =
        RequireFeature(FindSoc(name).value(), Feature::kHalf);
    ASSERT_FALSE(refused.ok()) << name;
    EXPECT_EQ(refused.error().code, ErrorCode::kUnsupported);
    EXPECT_THAT(refused.error().message,
                AllOf(HasSubstr(name), HasSubstr("\"residual\"")));
  }
}

TEST(SocTableTest, ContextsHaveALimit) {
  constexpr uint64_t kGiB = uint64_t{1} << 30;
  EXPECT_TRUE(CheckContextSize(3 * kGiB).ok());
  const Status whole = CheckContextSize(4 * kGiB);
  ASSERT_FALSE(whole.ok());
  EXPECT_EQ(whole.error().code, ErrorCode::kUnsupported);
  EXPECT_THAT(whole.error().message, HasSubstr("--num-sharding"));
}

}  // namespace
}  // namespace hexllm::htp
