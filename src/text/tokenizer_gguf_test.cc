// TokenizerDataFromGguf: with the keys that a converter would write for a
// tokenizer.json, it must give the same ids.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "text/gguf_pre_tokenizers.h"
#include "text/tokenizer.h"
#include "text/tokenizer_testing.h"

namespace hexllm {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// GGUF keys that own their strings.
struct GgufKeys {
  std::vector<std::string> token_texts;
  std::vector<std::string> merge_texts;
  std::vector<std::string_view> tokens;
  std::vector<std::string_view> merges;
  std::vector<int32_t> types;

  GgufTokenizer View(std::string_view pre) {
    tokens.assign(token_texts.begin(), token_texts.end());
    merges.assign(merge_texts.begin(), merge_texts.end());
    GgufTokenizer view;
    view.model = "gpt2";
    view.pre = pre;
    view.tokens = tokens;
    view.token_types = types;
    view.merges = merges;
    return view;
  }
};

GgufKeys KeysOf(const TokenizerData& data) {
  GgufKeys keys;
  for (size_t i = 0; i < data.pieces.size(); ++i)
    keys.token_texts.emplace_back(data.pieces[i]);
  keys.types.assign(keys.token_texts.size(), 1);
  for (const AddedToken& added : data.added_tokens) {
    const auto id = static_cast<size_t>(added.id);
    if (id >= keys.token_texts.size()) {
      keys.token_texts.resize(id + 1);
      keys.types.resize(id + 1, 5);
    }
    keys.token_texts[id] = added.content;
    keys.types[id] = added.special ? 3 : 4;
  }
  for (const Merge& merge : data.merges) {
    keys.merge_texts.push_back(
        std::string(data.pieces[static_cast<size_t>(merge.left)]) + " " +
        std::string(data.pieces[static_cast<size_t>(merge.right)]));
  }
  return keys;
}

struct Family {
  const char* fixture;
  const char* pre;
};

class GgufFamily : public ::testing::TestWithParam<Family> {};

TEST_P(GgufFamily, GivesTheIdsOfTokenizerJson) {
  const auto fixture = LoadTokenizerFixture(GetParam().fixture);
  if (!fixture)
    GTEST_SKIP() << "no fixture " << GetParam().fixture
                 << " beside the source tree";
  GgufKeys keys = KeysOf(ParseTokenizerJson(fixture->tokenizer_json).value());
  GgufTokenizer view = keys.View(GetParam().pre);
  view.add_bos = false;
  auto data = TokenizerDataFromGguf(view);
  ASSERT_TRUE(data.ok()) << MessageOf(data);
  const auto tokenizer = Tokenizer::Create(std::move(*data));
  ASSERT_TRUE(tokenizer.ok()) << MessageOf(tokenizer);
  for (const Json& line : fixture->golden) {
    if (!line.contains("text")) continue;
    const std::string text = line["text"];
    ASSERT_EQ(tokenizer->Encode(text, AddSpecial::kYes).value(),
              line["ids"].get<std::vector<int32_t>>())
        << text;
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, GgufFamily,
    ::testing::Values(Family{"tiny_bpe_llama3", "llama-bpe"},
                      Family{"tiny_bpe_qwen2", "qwen2"},
                      Family{"tiny_bpe_smollm_granite", "smollm"},
                      Family{"tiny_bpe_phi4", "gpt-4o"},
                      Family{"smollm2", "smollm"},
                      Family{"llama3_2", "llama-bpe"}),
    [](const ::testing::TestParamInfo<Family>& family) {
      return std::string(family.param.fixture);
    });

GgufKeys SmallKeys() {
  GgufKeys keys;
  keys.token_texts = {"a", "b", "ab", "<s>"};
  keys.merge_texts = {"a b"};
  keys.types = {1, 1, 1, 3};
  return keys;
}

TEST(TokenizerGguf, AddsWhatTheFileOrTheFamilySays) {
  GgufKeys keys = SmallKeys();
  GgufTokenizer view = keys.View("llama-bpe");
  view.bos_id = 3;
  view.eos_id = 0;
  EXPECT_THAT(TokenizerDataFromGguf(view)->prefix_ids, ElementsAre(3));
  view.add_bos = false;
  view.add_eos = true;
  EXPECT_TRUE(TokenizerDataFromGguf(view)->prefix_ids.empty());
  EXPECT_THAT(TokenizerDataFromGguf(view)->suffix_ids, ElementsAre(0));
}

TEST(TokenizerGguf, PrefixSpace) {
  GgufKeys keys = SmallKeys();
  keys.token_texts.emplace_back("Ġ");
  keys.types.push_back(1);
  GgufTokenizer view = keys.View("gpt-2");
  view.add_space_prefix = true;
  const Tokenizer tokenizer =
      Tokenizer::Create(TokenizerDataFromGguf(view).value()).value();
  EXPECT_THAT(tokenizer.Encode("ab", AddSpecial::kNo).value(),
              ElementsAre(4, 2));
}

TEST(TokenizerGguf, NamesWhatIsWrong) {
  GgufKeys keys = SmallKeys();
  const auto error = [&](auto change) {
    GgufTokenizer view = keys.View("default");
    change(view);
    return MessageOf(TokenizerDataFromGguf(view));
  };
  EXPECT_THAT(error([](GgufTokenizer& v) { v.model = "bert"; }),
              HasSubstr("tokenizer.ggml.model 'bert' is not supported"));
  EXPECT_THAT(error([](GgufTokenizer& v) { v.pre = "nosuch"; }),
              HasSubstr("tokenizer.ggml.pre 'nosuch' is not supported"));
  EXPECT_THAT(error([](GgufTokenizer& v) { v.tokens = {}; }),
              HasSubstr("found 0"));
  EXPECT_THAT(
      error([](GgufTokenizer& v) { v.token_types = v.token_types.first(2); }),
      HasSubstr("expected 4 entries"));
  EXPECT_THAT(error([](GgufTokenizer& v) { v.add_bos = true; }),
              HasSubstr("bos_token_id is missing"));
  EXPECT_THAT(error([](GgufTokenizer& v) {
                v.add_eos = true;
                v.eos_id = 4;
              }),
              HasSubstr("eos_token_id: expected 0..3, found 4"));
  keys.merge_texts = {"ab"};
  EXPECT_THAT(error([](GgufTokenizer&) {}), HasSubstr("merges[0]"));
  keys.merge_texts = {"b a"};
  EXPECT_THAT(error([](GgufTokenizer&) {}), HasSubstr("no piece 'ba'"));
}

// Every row of the table must compile; the list says which names must be there.
TEST(TokenizerGguf, EachKnownNameRuns) {
  for (const char* name : {"",
                           "default",
                           "llama3",
                           "llama-bpe",
                           "smaug-bpe",
                           "glm4",
                           "gpt-2",
                           "mpt",
                           "smollm",
                           "starcoder",
                           "command-r",
                           "falcon",
                           "qwen2",
                           "deepseek-r1-qwen",
                           "qwen35",
                           "stablelm2",
                           "gpt-4o",
                           "llama4",
                           "tekken",
                           "deepseek-coder",
                           "deepseek-v3",
                           "bailingmoe",
                           "seed-coder",
                           "bloom",
                           "viking"}) {
    SCOPED_TRACE(name);
    ASSERT_NE(FindGgufPreTokenizer(name), nullptr);
    GgufKeys keys = SmallKeys();
    GgufTokenizer view = keys.View(name);
    view.bos_id = 3;
    const auto tokenizer =
        Tokenizer::Create(TokenizerDataFromGguf(view).value());
    ASSERT_TRUE(tokenizer.ok()) << MessageOf(tokenizer);
    EXPECT_TRUE(
        tokenizer->Encode("ab 12345 漢字 it's\n\n  x", AddSpecial::kNo).ok());
  }
}

// The prompts of the real file, whose vocabulary is that of the smollm2
// fixture.
TEST(TokenizerGguf, PromptsOfTheRealModel) {
  const std::string root = std::string(HEXLLM_SOURCE_DIR) +
                           "/../shared/fixtures/real/smollm2_135m_q4_1.golden.";
  const auto fixture = LoadTokenizerFixture("smollm2");
  const auto texts = ReadTestFile(root + "json");
  const auto tensors = ReadTestFile(root + "safetensors");
  if (!fixture || !texts || !tensors)
    GTEST_SKIP() << "no fixtures beside the source tree";
  GgufKeys keys = KeysOf(ParseTokenizerJson(fixture->tokenizer_json).value());
  const Tokenizer tokenizer =
      Tokenizer::Create(TokenizerDataFromGguf(keys.View("smollm")).value())
          .value();
  uint64_t header_bytes = 0;
  std::memcpy(&header_bytes, tensors->data(), sizeof(header_bytes));
  const Json header =
      ParseJson(std::string_view(*tensors).substr(8, header_bytes)).value();
  const Json prompts = ParseJson(*texts).value();
  for (const char* prompt : {"chat", "story", "code"}) {
    const auto range =
        header[std::string(prompt) + ".input_ids"]["data_offsets"]
            .get<std::vector<size_t>>();
    std::vector<int32_t> ids((range[1] - range[0]) / sizeof(int32_t));
    std::memcpy(ids.data(), tensors->data() + 8 + header_bytes + range[0],
                range[1] - range[0]);
    EXPECT_EQ(tokenizer
                  .Encode(prompts[prompt]["text"].get<std::string>(),
                          AddSpecial::kYes)
                  .value(),
              ids);
  }
}

}  // namespace
}  // namespace hexllm
