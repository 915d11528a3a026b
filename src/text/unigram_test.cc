#include "text/unigram.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

#include "text/tokenizer.h"
#include "text/tokenizer_testing.h"

namespace hexllm {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// A tokenizer.json of a Unigram model with this vocabulary; id 0 is unknown.
std::string UnigramJson(const std::string& vocab, bool byte_fallback = false) {
  return R"({"model":{"type":"Unigram","unk_id":0,"byte_fallback":)" +
         std::string(byte_fallback ? "true" : "false") + R"(,"vocab":[)" +
         vocab + R"(]},"decoder":{"type":"Fuse"}})";
}

std::vector<int32_t> Encode(const std::string& json, std::string_view text) {
  const auto ids = MustCreate(json).Encode(text, AddSpecial::kNo);
  EXPECT_TRUE(ids.ok()) << MessageOf(ids);
  return *ids;
}

TEST(Unigram, TakesTheMostProbableCut) {
  // "abcd": ab|cd = -3, abc|d = -3.5, a|bcd = -4.
  const std::string json = UnigramJson(
      R"(["<unk>",0],["a",-2],["b",-2],["c",-2],["d",-2],["ab",-1.5],["cd",-1.5],
         ["abc",-1.5],["bcd",-2])");
  EXPECT_THAT(Encode(json, "abcd"), ElementsAre(5, 6));
  EXPECT_THAT(Encode(json, "abc"), ElementsAre(7));
  EXPECT_THAT(Encode(json, ""), ElementsAre());
}

TEST(Unigram, UnknownCharactersBecomeOneToken) {
  const std::string json = UnigramJson(R"(["<unk>",0],["a",-1],["\u00e9",-1])");
  EXPECT_THAT(Encode(json, "axyza\xC3\xA9"), ElementsAre(1, 0, 1, 2));
  EXPECT_THAT(Encode(json, "\xE2\x82\xAC"), ElementsAre(0));
}

TEST(Unigram, UnknownCharactersBecomeTheirBytesWhereAllAreThere) {
  const std::string json =
      UnigramJson(R"(["<unk>",0],["a",-1],["<0xC3>",-9],["<0xA9>",-9])", true);
  EXPECT_THAT(Encode(json, "a\xC3\xA9"), ElementsAre(1, 2, 3));
  EXPECT_THAT(Encode(json, "a\xC3\xA8"), ElementsAre(1, 0));
}

// What the cut of every way through `text` scores at best.
double BestByTrying(const std::map<std::string, double>& scores,
                    const std::string& text) {
  if (text.empty()) return 0;
  double best = -1e9;
  for (size_t size = 1; size <= text.size(); ++size) {
    const auto piece = scores.find(text.substr(0, size));
    if (piece != scores.end())
      best = std::max(best,
                      piece->second + BestByTrying(scores, text.substr(size)));
  }
  return best;
}

TEST(Unigram, NoOtherCutIsBetter) {
  std::mt19937 random(7);
  const auto below = [&](uint32_t n) {
    return static_cast<uint32_t>(random() % n);
  };
  for (int round = 0; round < 50; ++round) {
    std::map<std::string, double> scores = {{"a", -5}, {"b", -5}, {"c", -5}};
    for (int i = 0; i < 12; ++i) {
      std::string piece;
      for (uint32_t n = 2 + below(3); n > 0; --n)
        piece.push_back(static_cast<char>('a' + below(3)));
      scores[piece] = -1.0 - below(80) / 8.0;
    }
    TokenizerData data;
    data.model = TokenizerModel::kUnigram;
    data.pieces.Add("<unk>");
    data.scores.push_back(0);
    data.unk_id = 0;
    for (const auto& [piece, score] : scores) {
      data.pieces.Add(piece);
      data.scores.push_back(score);
    }
    const StringTable pieces = data.pieces;
    const auto model = UnigramModel::Create(data);
    ASSERT_TRUE(model.ok()) << MessageOf(model);
    std::string text;
    for (int i = 0; i < 12; ++i)
      text.push_back(static_cast<char>('a' + below(3)));
    std::vector<int32_t> ids;
    model->Encode(text, ids);
    double score = 0;
    std::string spelled;
    for (const int32_t id : ids) {
      spelled += pieces[static_cast<size_t>(id)];
      score += scores.at(std::string(pieces[static_cast<size_t>(id)]));
    }
    EXPECT_EQ(spelled, text);
    EXPECT_NEAR(score, BestByTrying(scores, text), 1e-9) << text;
  }
}

TEST(Unigram, RefusesWhatIsNoModel) {
  const auto error = [](const std::string& json) {
    auto data = ParseTokenizerJson(json);
    return data.ok() ? MessageOf(Tokenizer::Create(std::move(*data)))
                     : MessageOf(data);
  };
  EXPECT_THAT(error(UnigramJson("")), HasSubstr("'vocab'"));
  EXPECT_THAT(error(UnigramJson(R"(["a"])")), HasSubstr("[token, score]"));
  EXPECT_THAT(
      error(R"({"model":{"type":"Unigram","unk_id":1,"vocab":[["a",0]]}})"),
      HasSubstr("'unk_id'"));
  EXPECT_THAT(error(R"({"model":{"type":"Unigram","vocab":[["a",0]]}})"),
              HasSubstr("'unk_id'"));
  EXPECT_THAT(error(UnigramJson(R"(["<unk>",0],["a",-1])")
                        .insert(1, R"("pre_tokenizer":{"type":"ByteLevel"},)")),
              HasSubstr("expected a BPE"));
}

}  // namespace
}  // namespace hexllm
