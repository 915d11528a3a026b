// Every tokenizer of the fixtures against what Hugging Face tokenizers 0.23.3
// computes: ids, text, and the text of each step of a stream. The tiny ones are
// in the tree; the published ones are skipped where the fixtures are absent.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "text/detokenizer.h"
#include "text/tokenizer.h"
#include "text/tokenizer_testing.h"

namespace hexllm {
namespace {

using Ids = std::vector<int32_t>;

std::string FromHex(const std::string& hex) {
  std::string out;
  for (size_t i = 0; i + 1 < hex.size(); i += 2)
    out.push_back(static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16)));
  return out;
}

class Checker {
 public:
  explicit Checker(const Tokenizer& tokenizer) : tokenizer_(tokenizer) {}

  void Check(const Json& line) {
    SCOPED_TRACE(line.dump().substr(0, 400));
    if (line.contains("bytes_hex")) {
      ExpectEncode(FromHex(line["bytes_hex"]), AddSpecial::kNo,
                   line["ids_of_replaced"]);
    } else if (line.contains("text")) {
      CheckText(line);
    } else if (line.contains("decode_only")) {
      CheckIds(line);
    }
  }

 private:
  void ExpectEncode(const std::string& text, AddSpecial add_special,
                    const Json& ids) {
    const auto found = tokenizer_.Encode(text, add_special);
    ASSERT_TRUE(found.ok()) << MessageOf(found);
    EXPECT_EQ(*found, ids.get<Ids>());
  }

  void CheckText(const Json& line) {
    const std::string text = line["text"];
    const Ids ids = line["ids"];
    const Ids special =
        line.contains("ids_special") ? line["ids_special"].get<Ids>() : ids;
    ExpectEncode(text, AddSpecial::kNo, ids);
    ExpectEncode(text, AddSpecial::kYes, special);
    EXPECT_EQ(tokenizer_.Decode(ids, SpecialTokens::kKeep),
              line["decode"].get<std::string>());
    const Json& skipped =
        line[line.contains("decode_skip_special") ? "decode_skip_special"
                                                  : "decode"];
    EXPECT_EQ(tokenizer_.Decode(special, SpecialTokens::kSkip),
              skipped.get<std::string>());
    if (line.contains("stream")) CheckStream(ids, line["stream"]);
  }

  void CheckIds(const Json& line) {
    const Ids ids = line["decode_only"];
    EXPECT_EQ(tokenizer_.Decode(ids, SpecialTokens::kKeep),
              line["decode"].get<std::string>());
    EXPECT_EQ(tokenizer_.Decode(ids, SpecialTokens::kSkip),
              line["decode_skip_special"].get<std::string>());
    if (!line["stream"].is_null()) CheckStream(ids, line["stream"]);
  }

  void CheckStream(const Ids& ids, const Json& steps) {
    StreamDetokenizer stream(tokenizer_, SpecialTokens::kKeep);
    ASSERT_EQ(ids.size(), steps.size());
    for (size_t i = 0; i < ids.size(); ++i) {
      EXPECT_EQ(stream.Feed(ids[i]), steps[i].get<std::string>())
          << "step " << i;
    }
  }

  const Tokenizer& tokenizer_;
};

class TokenizerGolden : public ::testing::TestWithParam<const char*> {};

TEST_P(TokenizerGolden, AgreesWithHuggingFace) {
  const auto fixture = LoadTokenizerFixture(GetParam());
  if (!fixture)
    GTEST_SKIP() << "no fixture " << GetParam()
                 << " beside the source tree (or no zstd program)";
  const Tokenizer tokenizer = MustCreate(fixture->tokenizer_json);
  EXPECT_EQ(tokenizer.vocab_size(),
            fixture->golden[0]["meta"]["vocab"].get<int32_t>());
  ASSERT_GT(fixture->golden.size(), 400u);
  Checker checker(tokenizer);
  for (const Json& line : fixture->golden) {
    checker.Check(line);
    if (::testing::Test::HasFailure()) break;
  }
}

TEST_P(TokenizerGolden, SurvivesTheBlob) {
  const auto fixture = LoadTokenizerFixture(GetParam());
  if (!fixture)
    GTEST_SKIP() << "no fixture " << GetParam()
                 << " beside the source tree (or no zstd program)";
  const auto data = ParseTokenizerJson(fixture->tokenizer_json);
  ASSERT_TRUE(data.ok()) << MessageOf(data);
  const std::string blob = SerializeTokenizer(*data);
  const auto read = ParseTokenizerBlob(AsBytes(blob));
  ASSERT_TRUE(read.ok()) << MessageOf(read);
  EXPECT_TRUE(*read == *data);
  EXPECT_EQ(SerializeTokenizer(*read), blob);
}

std::string NameOf(const ::testing::TestParamInfo<const char*>& fixture) {
  return fixture.param;
}

INSTANTIATE_TEST_SUITE_P(Tiny, TokenizerGolden,
                         ::testing::Values("tiny_bpe_codegen",
                                           "tiny_bpe_llama3", "tiny_bpe_phi4",
                                           "tiny_bpe_qwen2",
                                           "tiny_bpe_smollm_granite",
                                           "tiny_unigram"),
                         NameOf);
INSTANTIATE_TEST_SUITE_P(Published, TokenizerGolden,
                         ::testing::Values("smollm2", "llama3_2", "qwen2_5",
                                           "qwen3", "gemma2", "gemma3"),
                         NameOf);

}  // namespace
}  // namespace hexllm
