#include "text/bpe.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "text/bpe_merges.h"
#include "text/tokenizer_testing.h"

namespace hexllm {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// A vocabulary of `pieces` with merges given as pairs of halves.
TokenizerData MakeData(const std::vector<std::string>& pieces,
                       const std::vector<std::string>& halves) {
  TokenizerData data;
  for (const auto& piece : pieces) data.pieces.Add(piece);
  StringTable table;
  for (const auto& half : halves) table.Add(half);
  data.merges = ResolveMerges(data.pieces, table).value();
  return data;
}

std::vector<int32_t> Encode(TokenizerData data, std::string_view word,
                            WordAlphabet alphabet = WordAlphabet::kText) {
  const BpeModel model = BpeModel::Create(data, alphabet).value();
  BpeScratch scratch;
  std::vector<int32_t> out;
  model.Encode(word, scratch, out);
  return out;
}

TEST(Bpe, LowestRankThenLeftmost) {
  const TokenizerData data = MakeData({"a", "b", "c", "ab", "bc", "aa"},
                                      {"b", "c", "a", "b", "a", "a"});
  EXPECT_THAT(Encode(data, "abc"), ElementsAre(0, 4));
  EXPECT_THAT(Encode(data, "aaa"), ElementsAre(5, 0));
}

TEST(Bpe, IgnoreMergesTakesWholeWords) {
  TokenizerData data = MakeData({"a", "b", "ab", "abb"}, {"a", "b"});
  EXPECT_THAT(Encode(data, "abb"), ElementsAre(2, 1));
  data.ignore_merges = true;
  EXPECT_THAT(Encode(data, "abb"), ElementsAre(3));
  EXPECT_THAT(Encode(data, "abba"), ElementsAre(2, 1, 0));
}

TEST(Bpe, UnknownCharacters) {
  TokenizerData data = MakeData({"a", "<unk>"}, {});
  EXPECT_THAT(Encode(data, "aéa"),
              ElementsAre(0, 0));  // nothing stands for them
  data.unk_id = 1;
  EXPECT_THAT(Encode(data, "aéüa"), ElementsAre(0, 1, 1, 0));
  data.fuse_unk = true;
  EXPECT_THAT(Encode(data, "aéüaé"), ElementsAre(0, 1, 0, 1));
}

TEST(Bpe, ByteFallbackNeedsAllBytes) {
  TokenizerData data = MakeData({"a", "<unk>", "<0xC3>", "<0xA9>"}, {});
  data.unk_id = 1;
  data.byte_fallback = true;
  EXPECT_THAT(Encode(data, "aé"), ElementsAre(0, 2, 3));
  EXPECT_THAT(Encode(data, "aü"), ElementsAre(0, 1));
}

TEST(Bpe, BytesHaveTheirAlphabet) {
  const TokenizerData data = MakeData({"Ġ", "a", "Ã", "Ġa"}, {"Ġ", "a"});
  EXPECT_THAT(Encode(data, " a\xC3", WordAlphabet::kBytes), ElementsAre(3, 2));
}

// The queue for long words and the scan for short ones must agree: a long word
// of letters, cut where no merge can cross, is the sum of its short parts.
TEST(Bpe, LongWordsAreMergedLikeShortOnes) {
  const TokenizerData data =
      MakeData({"a", "b", "|", "ab", "ba", "aba", "abab", "bb"},
               {"b", "a", "a", "b", "a", "ba", "b", "b", "ab", "ab"});
  TokenizerData copy = data;
  const BpeModel model = BpeModel::Create(copy, WordAlphabet::kText).value();
  std::minstd_rand random(1);
  BpeScratch scratch;
  std::string all;
  std::vector<int32_t> expected;
  for (int part = 0; part < 200; ++part) {
    std::string word;
    for (auto i = random() % 20; i > 0; --i)
      word.push_back(random() % 2 == 0 ? 'a' : 'b');
    word.push_back('|');
    model.Encode(word, scratch, expected);
    all += word;
  }
  std::vector<int32_t> found;
  model.Encode(all, scratch, found);
  EXPECT_EQ(found, expected);
}

TEST(Bpe, RefusesBadIds) {
  TokenizerData data = MakeData({"a"}, {});
  data.merges.push_back({0, 1, 0});
  EXPECT_THAT(MessageOf(BpeModel::Create(data, WordAlphabet::kText)),
              HasSubstr("merge 0"));
  data.merges.clear();
  data.unk_id = 7;
  EXPECT_THAT(MessageOf(BpeModel::Create(data, WordAlphabet::kText)),
              HasSubstr("unknown token id 7"));
}

TEST(ResolveMerges, NamesTheMissingPiece) {
  StringTable pieces;
  for (const char* piece : {"a", "b"}) pieces.Add(piece);
  StringTable halves;
  for (const char* half : {"a", "b"}) halves.Add(half);
  EXPECT_THAT(MessageOf(ResolveMerges(pieces, halves)),
              HasSubstr("no piece 'ab'"));
}

}  // namespace
}  // namespace hexllm
