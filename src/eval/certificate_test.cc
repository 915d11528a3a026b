// Certificates and self-tests, and where tapped values part.
#include "eval/certificate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "eval/taps.h"
#include "tests/support/fake_session.h"

namespace hexllm {
namespace {

using testing::FakeArtifactBuilder;
using testing::FakeOptions;
using testing::FakeSession;
using ::testing::HasSubstr;
using testing::Prompt;

Certificate CertificateOfFake() {
  FakeSession a{FakeOptions()}, b{FakeOptions()};
  auto made = Certify(*a.session, *b.session, Prompt(12));
  EXPECT_TRUE(made.ok());
  return std::move(made).value();
}

Status SelfTestWith(const std::string& certificate) {
  FakeArtifactBuilder builder{FakeOptions()};
  builder.Add({std::string(kCertificateSegment), artifact::SegmentKind::kText},
              AsBytes(certificate));
  FakeSession model(builder.Build());
  return SelfTest(*model.session);
}

TEST(Certificate, HoldsFiguresAndProbesThatPass) {
  const Certificate made = CertificateOfFake();
  EXPECT_EQ(made.sqnr_db, kMostDecibels);
  EXPECT_EQ(made.flips, 0u);
  EXPECT_DOUBLE_EQ(made.token_perplexity, made.float_token_perplexity);
  ASSERT_EQ(made.probes.size(), 2u);
  EXPECT_EQ(made.probes[0].tokens.size(), made.probes[0].logits.size());
  EXPECT_GE(made.probes[0].logits[0], made.probes[0].logits[1]);
  const std::string text = DumpJson(CertificateToJson(made));
  const auto read = CertificateFromJson(ParseJson(text).value(), 37);
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(DumpJson(CertificateToJson(*read)), text);
  const Status passed = SelfTestWith(text);
  EXPECT_TRUE(passed.ok()) << passed.error().message;
  FakeSession uncertified{FakeOptions()};
  EXPECT_TRUE(SelfTest(*uncertified.session).ok());
}

TEST(Certificate, GarbageIsFound) {
  Certificate made = CertificateOfFake();
  for (float& logit : made.probes[1].logits) logit = -logit + 1;
  const Status failed = SelfTestWith(DumpJson(CertificateToJson(made)));
  ASSERT_FALSE(failed.ok());
  EXPECT_EQ(failed.error().code, ErrorCode::kEnvironment);
  EXPECT_THAT(failed.error().message, HasSubstr("golden probe 2 within 20 dB"));
}

TEST(Certificate, DamagedOnesAreRefused) {
  const Json good = CertificateToJson(CertificateOfFake());
  const std::pair<const char*, Json> cases[] = {
      {"/version", 7},
      {"/stage", 1},
      {"/probes", 1},
      {"/probes/0/ids", Json::array()},
      {"/probes/0/ids/0", 37},
      {"/probes/0/ids/0", -1},
      {"/probes/0/ids/0", 1e300},
      {"/probes/0/tokens/0", 99},
      {"/probes/0/logits/0", "x"},
      {"/probes/0/logits", Json::array()},
  };
  for (const auto& [path, value] : cases) {
    Json bad = good;
    bad[Json::json_pointer(path)] = value;
    const Status failed = SelfTestWith(DumpJson(bad));
    ASSERT_FALSE(failed.ok()) << path;
    EXPECT_EQ(failed.error().code, ErrorCode::kBadInput);
  }
  EXPECT_FALSE(SelfTestWith("{").ok());
}

TEST(Taps, NameLayersAndDepartures) {
  EXPECT_EQ(LayerOf("model.layers.12.mlp.up_proj"), 12);
  EXPECT_EQ(LayerOf("model.norm"), std::nullopt);
  const std::vector<TapComparison> values = {
      {.name = "model.layers.0.mlp", .sqnr_db = 60},
      {.name = "model.layers.0", .sqnr_db = 50},
      {.name = "model.layers.1.mlp",
       .sqnr_db = 40,
       .worst_channel = 3,
       .worst_channel_db = 5},
      {.name = "model.layers.1", .sqnr_db = 12}};
  EXPECT_EQ(FindDeparture(values, 45), 2u);
  EXPECT_EQ(FindDeparture(values, 20), 2u);  // by its channel
  EXPECT_EQ(FindDeparture(values, 4), std::nullopt);
  const auto layers = LayerOutputs(values);
  ASSERT_EQ(layers.size(), 2u);
  EXPECT_EQ(layers[1].name, "model.layers.1");
}

}  // namespace
}  // namespace hexllm
