// The blob of an artifact: round trips are in tokenizer_golden_test.cc; here is
// what a damaged one does.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "text/tokenizer.h"
#include "text/tokenizer_testing.h"

namespace hexllm {
namespace {

using ::testing::HasSubstr;

// Something in every list.
TokenizerData FullData() {
  TokenizerData data;
  for (const char* piece : {"a", "b", "ab", "", "ĠĠ"}) data.pieces.Add(piece);
  data.merges = {{0, 1, 2}};
  data.added_tokens.push_back(
      {.id = 300, .content = "<x>", .special = true, .lstrip = true});
  data.normalizer.push_back({.kind = NormalizerKind::kReplace,
                             .pattern = {PatternKind::kRegex, " +"},
                             .content = " ",
                             .left = true});
  data.pre_tokenizer.push_back({.kind = PreTokenizerKind::kMetaspace,
                                .pattern = {},
                                .behavior = SplitBehavior::kContiguous,
                                .invert = true,
                                .content = "▁",
                                .prepend = PrependScheme::kAlways,
                                .split = true});
  data.decoder.push_back(
      {.kind = DecoderKind::kStrip, .pattern = {}, .content = " ", .left = 1});
  data.prefix_ids = {0, 300};
  data.suffix_ids = {1};
  data.unk_id = 2;
  data.fuse_unk = true;
  data.ignore_merges = true;
  return data;
}

TEST(TokenizerBlob, KeepsEverything) {
  TokenizerData data = FullData();
  // Results in any order, and the largest ids.
  data.merges = {{0, 1, 2},
                 {kMaxVocabSize - 1, 200, 0},
                 {1, 1, 1},
                 {0, 0, kMaxVocabSize - 1},
                 {70000, 3, 128}};
  const auto read = ParseTokenizerBlob(AsBytes(SerializeTokenizer(data)));
  ASSERT_TRUE(read.ok()) << MessageOf(read);
  EXPECT_TRUE(*read == data);
}

TEST(TokenizerBlob, RefusesEveryTruncation) {
  const std::string blob = SerializeTokenizer(FullData());
  for (size_t size = 0; size < blob.size(); ++size) {
    const auto read =
        ParseTokenizerBlob(AsBytes(std::string_view(blob).substr(0, size)));
    ASSERT_FALSE(read.ok()) << size;
    EXPECT_EQ(read.error().code, ErrorCode::kBadInput);
  }
  EXPECT_THAT(MessageOf(ParseTokenizerBlob(AsBytes(blob + "x"))),
              HasSubstr("left over"));
}

TEST(TokenizerBlob, NamesAnotherVersion) {
  std::string blob = SerializeTokenizer(FullData());
  blob[4] = 9;
  EXPECT_THAT(MessageOf(ParseTokenizerBlob(AsBytes(blob))),
              HasSubstr("version 9, expected 3"));
  blob[0] = 'x';
  EXPECT_THAT(MessageOf(ParseTokenizerBlob(AsBytes(blob))), HasSubstr("HXTK"));
}

// A damaged byte gives an error or a tokenizer that works, never a crash.
TEST(TokenizerBlob, SurvivesEveryDamagedByte) {
  const std::string blob = SerializeTokenizer(FullData());
  for (size_t at = 0; at < blob.size(); ++at) {
    for (const int change : {0x01, 0x80, 0xFF}) {
      std::string damaged = blob;
      damaged[at] = static_cast<char>(damaged[at] ^ change);
      auto data = ParseTokenizerBlob(AsBytes(damaged));
      if (!data.ok()) continue;
      const auto tokenizer = Tokenizer::Create(std::move(*data));
      if (!tokenizer.ok()) continue;
      const auto ids = tokenizer->Encode("ab  <x> é", AddSpecial::kYes);
      if (ids.ok()) tokenizer->Decode(*ids, SpecialTokens::kKeep);
    }
  }
}

}  // namespace
}  // namespace hexllm
