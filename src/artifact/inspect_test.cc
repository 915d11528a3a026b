#include "artifact/inspect.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "artifact/artifact_testing.h"
#include "artifact/writer.h"

namespace hexllm::artifact {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(DescribeArtifactTest, SaysWhatIsThere) {
  const std::string text = DescribeArtifact(*MakeTestArtifact());
  EXPECT_THAT(text, HasSubstr("model      tiny (llama)"));
  EXPECT_THAT(text, HasSubstr("2 layers, vocabulary 11, context 8"));
  // 2 layers x (K + V) x 2 heads x 4 dims x 7 past columns of one byte.
  EXPECT_THAT(text, HasSubstr("kv cache   u8 (8 bit), 2 layers, 224 B"));
  EXPECT_THAT(text, HasSubstr("graph prefill_4 (prefill, T = 4, C = 8"));
  EXPECT_THAT(text, HasSubstr("k_in[0] .. k_in[1]"));
  EXPECT_THAT(text, HasSubstr("[2,4,7], scale 0.5 zero point 128"));
  EXPECT_THAT(text, HasSubstr("weights/head"));
  EXPECT_THAT(text, HasSubstr("embedding  bf16 [11,6], looked up by the"));
  EXPECT_THAT(text, HasSubstr("total 8 segments"));
}

TEST(DescribeArtifactTest, NamesFromTheFileAreMadePrintable) {
  MemorySink sink;
  auto manifest = AddTestSegments(sink);
  ASSERT_TRUE(manifest.ok());
  manifest->model_name = "\x1b[31mred\n";
  const auto artifact = sink.Finish(*manifest, nullptr);
  ASSERT_TRUE(artifact.ok());
  EXPECT_THAT(DescribeArtifact(**artifact), Not(HasSubstr("\x1b")));
  EXPECT_THAT(DescribeArtifact(**artifact), HasSubstr("\\x1b[31mred\\x0a"));
}

TEST(ArtifactToJsonTest, HasTheWholeManifest) {
  const Json json = ArtifactToJson(*MakeTestArtifact());
  EXPECT_EQ(json["model_name"], "tiny");
  EXPECT_EQ(json["kv_cache"]["bits"], 8);
  EXPECT_EQ(json["kv_cache"]["bytes"], 224);
  EXPECT_EQ(json["mask_windows"], Json({0, 4}));
  EXPECT_EQ(json["rope_tables"][0]["sin"], "rope/0/sin");
  EXPECT_EQ(json["special_tokens"]["bos_token"], "<s>");
  EXPECT_EQ(json["generation"]["end_ids"], Json({2, 10}));
  EXPECT_TRUE(json["generation"]["min_p"].is_null());
  EXPECT_EQ(json["graphs"][1]["name"], "kv");
  EXPECT_EQ(json["graphs"][1]["program"], "plan/kv");
  EXPECT_EQ(json["graphs"][1]["inputs"][3]["role"], "mask[0]");
  EXPECT_EQ(json["graphs"][1]["inputs"][3]["visible"], 0xffff);
  EXPECT_TRUE(json["graphs"][1]["simulator_program"].is_null());
  EXPECT_EQ(json["embedding"]["segment"], "embedding");
  EXPECT_EQ(json["embedding"]["dtype"], "bf16");
  EXPECT_EQ(json["embedding"]["width"], 6);
  EXPECT_EQ(json["segments"].size(), 8u);
  EXPECT_TRUE(json["segments"][0]["xxh3"].is_null());
}

}  // namespace
}  // namespace hexllm::artifact
