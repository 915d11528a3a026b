// Tokenizer and StreamDetokenizer where the golden files are silent: decoder
// orders, ids out of range, streams that end inside a character.
#include "text/tokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "text/detokenizer.h"
#include "text/tokenizer_testing.h"

namespace hexllm {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// A tokenizer with this vocabulary, no merges, and one special token <s> (the
// last id).
TokenizerData Data(const std::vector<std::string>& pieces,
                   const std::vector<DecoderKind>& decoder) {
  TokenizerData data;
  for (const auto& piece : pieces) data.pieces.Add(piece);
  data.added_tokens.push_back({.id = static_cast<int32_t>(pieces.size()),
                               .content = "<s>",
                               .special = true});
  for (const DecoderKind kind : decoder)
    data.decoder.emplace_back().kind = kind;
  return data;
}

Tokenizer Create(TokenizerData data) {
  auto tokenizer = Tokenizer::Create(std::move(data));
  EXPECT_TRUE(tokenizer.ok()) << MessageOf(tokenizer);
  return std::move(tokenizer).value();
}

std::vector<std::string> Stream(const Tokenizer& tokenizer,
                                const std::vector<int32_t>& ids,
                                SpecialTokens special = SpecialTokens::kKeep) {
  StreamDetokenizer stream(tokenizer, special);
  std::vector<std::string> out;
  for (const int32_t id : ids) out.emplace_back(stream.Feed(id));
  out.emplace_back(stream.Finish());
  return out;
}

// Byte-level pieces: a, é's two bytes, €'s three bytes.
TokenizerData ByteLevelData() {
  TokenizerData data =
      Data({"a", "Ã", "©", "â", "Ĥ", "¬"}, {DecoderKind::kByteMap});
  data.pre_tokenizer.emplace_back().kind = PreTokenizerKind::kByteMap;
  return data;
}

TEST(Tokenizer, SkipsIdsThatNoTokenHas) {
  const Tokenizer tokenizer = Create(ByteLevelData());
  EXPECT_EQ(tokenizer.vocab_size(), 7);
  EXPECT_EQ(
      tokenizer.Decode(std::vector<int32_t>{-1, 0, 7, 1'000'000, INT32_MIN},
                       SpecialTokens::kKeep),
      "a");
  EXPECT_EQ(tokenizer.PieceBytes(-1), "");
  EXPECT_EQ(tokenizer.PieceBytes(3), "\xE2");
  EXPECT_FALSE(tokenizer.IsSpecial(-1));
  EXPECT_FALSE(tokenizer.IsSpecial(7));
  EXPECT_TRUE(tokenizer.IsSpecial(6));
}

TEST(Tokenizer, FindsTokensBySpelling) {
  const Tokenizer tokenizer = Create(ByteLevelData());
  EXPECT_EQ(tokenizer.FindToken("<s>"), 6);
  EXPECT_EQ(tokenizer.FindToken("Ã"), 1);
  EXPECT_EQ(tokenizer.FindToken("nosuch"), std::nullopt);
  EXPECT_EQ(tokenizer.FindToken(""), std::nullopt);
}

TEST(Tokenizer, SpecialTokensInTheTextAreAlwaysSeen) {
  TokenizerData data = ByteLevelData();
  data.prefix_ids = {6};
  data.suffix_ids = {0};
  const Tokenizer tokenizer = Create(std::move(data));
  EXPECT_THAT(tokenizer.Encode("a<s>é", AddSpecial::kNo).value(),
              ElementsAre(0, 6, 1, 2));
  EXPECT_THAT(tokenizer.Encode("a<s>", AddSpecial::kYes).value(),
              ElementsAre(6, 0, 6, 0));
  EXPECT_EQ(
      tokenizer.Decode(std::vector<int32_t>{6, 0, 6}, SpecialTokens::kSkip),
      "a");
}

TEST(Tokenizer, IsSafeToShare) {
  const Tokenizer tokenizer = Create(ByteLevelData());
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int n = 0; n < 50; ++n)
        EXPECT_EQ(tokenizer.Encode("aé€<s>a", AddSpecial::kNo)->size(), 8u);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(Tokenizer, RefusesInconsistentData) {
  TokenizerData data = ByteLevelData();
  data.prefix_ids = {9};
  EXPECT_THAT(MessageOf(Tokenizer::Create(data)), HasSubstr("has id 9"));
  data = ByteLevelData();
  data.added_tokens[0].content.clear();
  EXPECT_THAT(MessageOf(Tokenizer::Create(data)),
              HasSubstr("added token 6: its content is empty"));
  data = ByteLevelData();
  data.added_tokens[0].content = "\xFF";
  EXPECT_THAT(MessageOf(Tokenizer::Create(data)), HasSubstr("not valid UTF-8"));
  data = ByteLevelData();
  data.added_tokens[0].id = -5;
  EXPECT_THAT(MessageOf(Tokenizer::Create(data)), HasSubstr("added token -5"));
}

TEST(Tokenizer, RefusesDecodersThatCrossTokens) {
  for (const auto& order :
       {std::vector{DecoderKind::kFuse, DecoderKind::kReplace},
        std::vector{DecoderKind::kByteMap, DecoderKind::kByteFallback},
        std::vector{DecoderKind::kByteFallback, DecoderKind::kReplace}}) {
    const auto tokenizer = Tokenizer::Create(Data({"a"}, order));
    ASSERT_FALSE(tokenizer.ok());
    EXPECT_EQ(tokenizer.error().code, ErrorCode::kUnsupported);
  }
}

TEST(Tokenizer, WithoutDecoderTokensAreSpaced) {
  const Tokenizer tokenizer = Create(Data({"a", "b"}, {}));
  EXPECT_EQ(
      tokenizer.Decode(std::vector<int32_t>{0, 1, 2, 0}, SpecialTokens::kSkip),
      "a b a");
  EXPECT_THAT(Stream(tokenizer, {0, 2, 1}), ElementsAre("a", " <s>", " b", ""));
}

// Llama 2's decoder: Replace, ByteFallback, Fuse, Strip.
TEST(Tokenizer, StripsTheStartOnce) {
  TokenizerData data = Data({"▁a", "▁", "<0xC3>", "<0xA9>"},
                            {DecoderKind::kReplace, DecoderKind::kByteFallback,
                             DecoderKind::kFuse, DecoderKind::kStrip});
  data.decoder[0].pattern.text = "▁";
  data.decoder[0].content = " ";
  data.decoder[3].content = " ";
  data.decoder[3].left = 1;
  const Tokenizer tokenizer = Create(std::move(data));
  EXPECT_EQ(tokenizer.Decode(std::vector<int32_t>{0, 0}, SpecialTokens::kKeep),
            "a a");
  EXPECT_EQ(tokenizer.Decode(std::vector<int32_t>{1, 0}, SpecialTokens::kKeep),
            " a");
  EXPECT_THAT(Stream(tokenizer, {1, 0, 2, 3}),
              ElementsAre("", " a", "", "é", ""));
  EXPECT_EQ(tokenizer.Decode(std::vector<int32_t>{2, 2}, SpecialTokens::kKeep),
            "\uFFFD\uFFFD");
}

TEST(Tokenizer, MetaspaceDropsTheFirst) {
  TokenizerData data = Data({"▁a", "▁b"}, {DecoderKind::kMetaspace});
  data.decoder[0].content = "▁";
  data.decoder[0].drop_first = true;
  const Tokenizer tokenizer = Create(std::move(data));
  EXPECT_EQ(tokenizer.Decode(std::vector<int32_t>{0, 1}, SpecialTokens::kKeep),
            "a b");
  EXPECT_THAT(Stream(tokenizer, {0, 1}), ElementsAre("a", " b", ""));
}

TEST(StreamDetokenizer, NeverSplitsACharacter) {
  const Tokenizer tokenizer = Create(ByteLevelData());
  EXPECT_THAT(Stream(tokenizer, {0, 3, 4, 5, 0}),
              ElementsAre("a", "", "", "€", "a", ""));
  EXPECT_THAT(Stream(tokenizer, {1, 2, 1}), ElementsAre("", "é", "", "\uFFFD"));
  EXPECT_THAT(Stream(tokenizer, {2, 0, 3, 4}),
              ElementsAre("", "\uFFFDa", "", "", "\uFFFD"));
}

TEST(StreamDetokenizer, SkipsSpecialTokensInsideACharacter) {
  const Tokenizer tokenizer = Create(ByteLevelData());
  EXPECT_THAT(Stream(tokenizer, {1, 6, 2}, SpecialTokens::kSkip),
              ElementsAre("", "", "é", ""));
  EXPECT_THAT(Stream(tokenizer, {1, 6, -1, 99}),
              ElementsAre("", "\uFFFD<s>", "", "", ""));
}

TEST(StreamDetokenizer, StartsAfreshAfterFinish) {
  const Tokenizer tokenizer = Create(ByteLevelData());
  StreamDetokenizer stream(tokenizer, SpecialTokens::kKeep);
  EXPECT_EQ(stream.Feed(1), "");
  EXPECT_EQ(stream.Finish(), "\uFFFD");
  EXPECT_EQ(stream.Finish(), "");
  EXPECT_EQ(stream.Feed(0), "a");
  EXPECT_EQ(stream.Finish(), "");
}

}  // namespace
}  // namespace hexllm
