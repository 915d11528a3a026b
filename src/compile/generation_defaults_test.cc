#include "compile/generation_defaults.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/gguf_builder.h"

namespace hexllm {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Result<artifact::GenerationDefaults> FromText(const char* generation,
                                              const char* config) {
  const auto first = ParseJson(generation);
  const auto second = ParseJson(config);
  return GenerationFromHf(&*first, &*second);
}

TEST(GenerationFromHf, ReadsOneOrSeveralEndTokens) {
  EXPECT_THAT(FromText(R"({"eos_token_id":7})", "{}")->end_ids, ElementsAre(7));
  EXPECT_THAT(FromText(R"({"eos_token_id":[7,9,7]})", "{}")->end_ids,
              ElementsAre(7, 9));
  EXPECT_THAT(FromText("{}", R"({"eos_token_id":3})")->end_ids, ElementsAre(3));
}

TEST(GenerationFromHf, ReadsSampling) {
  const auto out = FromText(
      R"({"temperature":0.6,"top_k":40,"top_p":0.9,"repetition_penalty":1.1})",
      "{}");
  ASSERT_TRUE(out.ok()) << out.error().message;
  EXPECT_FLOAT_EQ(*out->temperature, 0.6f);
  EXPECT_EQ(out->top_k, 40);
  EXPECT_FLOAT_EQ(*out->top_p, 0.9f);
  EXPECT_FLOAT_EQ(*out->repetition_penalty, 1.1f);
  EXPECT_FALSE(out->min_p.has_value());
}

TEST(GenerationFromHf, NoSamplingMeansGreedy) {
  EXPECT_EQ(
      FromText(R"({"do_sample":false,"temperature":0.6})", "{}")->temperature,
      0.0f);
  EXPECT_FALSE(FromText("{}", "{}")->temperature.has_value());
}

TEST(GenerationFromHf, NamesWhatIsWrong) {
  const std::pair<const char*, const char*> cases[] = {
      {R"({"eos_token_id":"x"})", "eos_token_id"},
      {R"({"eos_token_id":-1})", "eos_token_id"},
      {R"({"top_p":2})", "top_p"},
      {R"({"top_k":-5})", "top_k"},
      {R"({"do_sample":"no"})", "do_sample"}};
  for (const auto& [text, key] : cases) {
    const auto out = FromText(text, "{}");
    ASSERT_FALSE(out.ok()) << text;
    EXPECT_EQ(out.error().code, ErrorCode::kBadInput);
    EXPECT_THAT(out.error().message, HasSubstr(key));
  }
}

TEST(GenerationFromGguf, ReadsEndTokensAndSampling) {
  const std::string file = testing::GgufBuilder()
                               .Add<uint32_t>("tokenizer.ggml.eos_token_id", 2)
                               .Add<uint32_t>("tokenizer.ggml.eot_token_id", 5)
                               .Add<float>("general.sampling.temp", 0.5f)
                               .Build();
  const auto parsed = ParseGguf(AsBytes(file));
  ASSERT_TRUE(parsed.ok()) << parsed.error().message;
  const auto out = GenerationFromGguf(parsed->metadata);
  ASSERT_TRUE(out.ok()) << out.error().message;
  EXPECT_THAT(out->end_ids, ElementsAre(2, 5));
  EXPECT_FLOAT_EQ(*out->temperature, 0.5f);
}

}  // namespace
}  // namespace hexllm
