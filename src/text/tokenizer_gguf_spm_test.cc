// SentencePiece vocabularies out of GGUF metadata: with the keys that a
// converter writes for a tokenizer.model, the same ids as that model.
#include "text/tokenizer_gguf_spm.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "text/protobuf_reader.h"
#include "text/tokenizer.h"
#include "text/tokenizer_testing.h"

namespace hexllm {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string Data(const std::string& name) {
  return ReadTestFile(std::string(HEXLLM_SOURCE_DIR) +
                      "/tests/data/tokenizers/tiny_llama2c/" + name)
      .value();
}

struct Keys {
  std::string model = Data("tokenizer.model");
  std::vector<std::string_view> tokens;
  std::vector<float> scores;
  std::vector<int32_t> types;

  Keys() {
    for (ProtobufReader in(model); !in.AtEnd();) {
      const ProtobufField piece = in.Next().value();
      if (piece.number != 1) continue;
      tokens.emplace_back();
      scores.push_back(0);
      types.push_back(1);
      for (ProtobufReader fields(piece.bytes); !fields.AtEnd();) {
        const ProtobufField field = fields.Next().value();
        if (field.number == 1) tokens.back() = field.bytes;
        if (field.number == 2) scores.back() = field.fixed32;
        if (field.number == 3)
          types.back() = static_cast<int32_t>(field.varint);
      }
    }
  }

  GgufTokenizer View() const {
    GgufTokenizer view;
    view.model = "llama";
    view.tokens = tokens;
    view.scores = scores;
    view.token_types = types;
    view.bos_id = 1;
    view.eos_id = 2;
    view.unk_id = 0;
    return view;
  }
};

TEST(TokenizerGgufSpm, GivesTheIdsOfTheModelFile) {
  const Keys keys;
  ASSERT_EQ(keys.tokens.size(), 512u);
  auto data = TokenizerDataFromGguf(keys.View());
  ASSERT_TRUE(data.ok()) << MessageOf(data);
  EXPECT_THAT(data->prefix_ids, ElementsAre(1));
  const auto tokenizer = Tokenizer::Create(std::move(*data));
  ASSERT_TRUE(tokenizer.ok()) << MessageOf(tokenizer);
  std::istringstream lines(Data("golden.jsonl"));
  size_t compared = 0;
  for (std::string text; std::getline(lines, text);) {
    const Json line = ParseJson(text).value();
    // Control tokens in the text are recognised here, unlike there.
    if (!line.contains("text") ||
        line["text"].get_ref<const std::string&>().find('<') !=
            std::string::npos)
      continue;
    EXPECT_EQ(
        tokenizer->Encode(line["text"].get<std::string>(), AddSpecial::kNo)
            .value(),
        line["ids_sp"].get<std::vector<int32_t>>())
        << text.substr(0, 200);
    ++compared;
  }
  EXPECT_GT(compared, 300u);
  EXPECT_EQ(tokenizer->Encode("</s>", AddSpecial::kYes).value(),
            (std::vector<int32_t>{1, 2}));
}

TEST(TokenizerGgufSpm, RefusesKeysThatDoNotFit) {
  const Keys keys;
  GgufTokenizer view = keys.View();
  view.scores = view.scores.first(3);
  EXPECT_THAT(MessageOf(TokenizerDataFromGguf(view)),
              HasSubstr("tokenizer.ggml.scores"));
  view = keys.View();
  view.bos_id = 512;
  EXPECT_THAT(MessageOf(TokenizerDataFromGguf(view)),
              HasSubstr("bos_token_id"));
}

}  // namespace
}  // namespace hexllm
