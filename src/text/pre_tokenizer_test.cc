#include "text/pre_tokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "text/normalizer.h"
#include "text/tokenizer_json_steps.h"
#include "text/tokenizer_testing.h"

namespace hexllm {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// The words that a "pre_tokenizer" of a tokenizer.json makes of a text.
std::vector<std::string> Words(std::string_view json, std::string_view text) {
  TokenizerData data;
  const Status read = ReadPreTokenizer(ParseJson(json).value(), data);
  EXPECT_TRUE(read.ok()) << read.error().message;
  auto pre_tokenizer = PreTokenizer::Create(data.pre_tokenizer);
  EXPECT_TRUE(pre_tokenizer.ok()) << MessageOf(pre_tokenizer);
  RegexScratch regex;
  PreTokenizerScratch scratch;
  WordList list;
  list.text = text;
  list.at_start = true;
  EXPECT_TRUE(pre_tokenizer->Cut(list, regex, scratch).ok());
  std::vector<std::string> words;
  for (size_t i = 0; i < list.words.size(); ++i)
    words.emplace_back(list.Word(i));
  return words;
}

std::vector<std::string> SplitWords(const char* behavior, const char* invert,
                                    const char* text) {
  return Words(
      std::string(R"({"type":"Split","pattern":{"String":"-"},"behavior":")") +
          behavior + R"(","invert":)" + invert + "}",
      text);
}

// The example of tokenizers' own documentation: "the-final--countdown".
TEST(PreTokenizer, SplitBehaviors) {
  constexpr const char* kText = "the-final--countdown";
  EXPECT_THAT(SplitWords("Removed", "false", kText),
              ElementsAre("the", "final", "countdown"));
  EXPECT_THAT(SplitWords("Isolated", "false", kText),
              ElementsAre("the", "-", "final", "-", "-", "countdown"));
  EXPECT_THAT(SplitWords("MergedWithPrevious", "false", kText),
              ElementsAre("the-", "final-", "-", "countdown"));
  EXPECT_THAT(SplitWords("MergedWithNext", "false", kText),
              ElementsAre("the", "-final", "-", "-countdown"));
  EXPECT_THAT(SplitWords("Contiguous", "false", kText),
              ElementsAre("the", "-", "final", "--", "countdown"));
}

TEST(PreTokenizer, InvertedSplits) {
  EXPECT_THAT(SplitWords("Removed", "true", "a-b--c"),
              ElementsAre("-", "-", "-"));
  EXPECT_THAT(SplitWords("Isolated", "true", "a-b"),
              ElementsAre("a", "-", "b"));
  EXPECT_THAT(SplitWords("MergedWithPrevious", "true", "a-b-"),
              ElementsAre("a", "-b", "-"));
}

TEST(PreTokenizer, SplitsAtTheEnds) {
  EXPECT_THAT(SplitWords("MergedWithPrevious", "false", "-a-"),
              ElementsAre("-", "a-"));
  EXPECT_THAT(SplitWords("MergedWithNext", "false", "-a-"),
              ElementsAre("-a", "-"));
  EXPECT_THAT(SplitWords("Removed", "false", "---"), IsEmpty());
  EXPECT_THAT(SplitWords("Removed", "false", ""), IsEmpty());
}

TEST(PreTokenizer, SplitByRegex) {
  EXPECT_THAT(
      Words(
          R"({"type":"Split","pattern":{"Regex":"\\p{N}{1,3}"},"behavior":"Isolated","invert":false})",
          "a12345b"),
      ElementsAre("a", "123", "45", "b"));
}

TEST(PreTokenizer, Digits) {
  EXPECT_THAT(Words(R"({"type":"Digits","individual_digits":true})", "a12½"),
              ElementsAre("a", "1", "2", "½"));
  EXPECT_THAT(Words(R"({"type":"Digits","individual_digits":false})", "a12b"),
              ElementsAre("a", "12", "b"));
}

TEST(PreTokenizer, Punctuation) {
  EXPECT_THAT(Words(R"({"type":"Punctuation"})", "Hi!? $é"),
              ElementsAre("Hi", "!", "?", " ", "$", "é"));
  EXPECT_THAT(
      Words(R"({"type":"Punctuation","behavior":"Contiguous"})", "Hi!?"),
      ElementsAre("Hi", "!?"));
}

TEST(PreTokenizer, Whitespace) {
  EXPECT_THAT(Words(R"({"type":"Whitespace"})", "Hey man!  né\u0301e"),
              ElementsAre("Hey", "man", "!", "né\u0301e"));
  EXPECT_THAT(Words(R"({"type":"WhitespaceSplit"})", " Hey\tman!\u3000x"),
              ElementsAre("Hey", "man!", "x"));
  EXPECT_THAT(Words(R"({"type":"CharDelimiterSplit","delimiter":"€"})", "a€b"),
              ElementsAre("a", "b"));
}

TEST(PreTokenizer, ByteLevelMapsOnlyWhenMoreFollows) {
  constexpr const char* kAlone =
      R"({"type":"ByteLevel","add_prefix_space":true,"trim_offsets":true})";
  EXPECT_THAT(Words(kAlone, "Hi you're"),
              ElementsAre(" Hi", " you", "'re"));  // mapped by the model
  constexpr const char* kFirst = R"({"type":"Sequence","pretokenizers":[
      {"type":"ByteLevel","add_prefix_space":false,"trim_offsets":true,"use_regex":true},
      {"type":"Split","pattern":{"Regex":"[0-9]"},"behavior":"Isolated","invert":false}]})";
  EXPECT_THAT(Words(kFirst, "é 12"), ElementsAre("Ã©", "Ġ", "1", "2"));
}

TEST(PreTokenizer, Metaspace) {
  constexpr const char* kAlways =
      R"({"type":"Metaspace","replacement":"▁","prepend_scheme":"always"})";
  EXPECT_THAT(Words(kAlways, "Hey  you"), ElementsAre("▁Hey", "▁", "▁you"));
  EXPECT_THAT(Words(kAlways, " Hey"), ElementsAre("▁Hey"));
  constexpr const char* kOld =
      R"({"type":"Metaspace","replacement":"_","add_prefix_space":false})";
  EXPECT_THAT(Words(kOld, "a b"), ElementsAre("a", "_b"));
  constexpr const char* kFirst =
      R"({"type":"Sequence","pretokenizers":[{"type":"Digits","individual_digits":true},
      {"type":"Metaspace","replacement":"▁","prepend_scheme":"first","split":false}]})";
  EXPECT_THAT(Words(kFirst, "a1 b"), ElementsAre("▁a", "1", "▁b"));
}

std::string Normalized(std::string_view json, std::string_view text) {
  TokenizerData data;
  const Status read = ReadNormalizer(ParseJson(json).value(), data);
  EXPECT_TRUE(read.ok()) << read.error().message;
  const auto normalizer = Normalizer::Create(data.normalizer);
  EXPECT_TRUE(normalizer.ok()) << MessageOf(normalizer);
  RegexScratch scratch;
  const auto out = normalizer->Apply(text, scratch);
  return out.ok() ? *out : out.error().message;
}

TEST(Normalizer, EachStep) {
  EXPECT_EQ(Normalized(R"({"type":"Lowercase"})", "ÀB"), "àb");
  EXPECT_EQ(
      Normalized(R"({"type":"Strip","strip_left":true,"strip_right":false})",
                 " \u3000a "),
      "a ");
  EXPECT_EQ(
      Normalized(R"({"type":"Strip","strip_left":true,"strip_right":true})",
                 " \t "),
      "");
  EXPECT_EQ(Normalized(R"({"type":"StripAccents"})", "e\u0301é"), "eé");
  EXPECT_EQ(
      Normalized(R"({"type":"Replace","pattern":{"String":" "},"content":"▁"})",
                 "a b  c"),
      "a▁b▁▁c");
  EXPECT_EQ(
      Normalized(
          R"({"type":"Replace","pattern":{"Regex":" {2,}"},"content":" "})",
          "a   b c"),
      "a b c");
  EXPECT_EQ(Normalized(R"({"type":"Prepend","prepend":"▁"})", "a"), "▁a");
  EXPECT_EQ(Normalized(R"({"type":"Prepend","prepend":"▁"})", ""), "");
  EXPECT_EQ(Normalized(R"({"type":"Nmt"})", "a\u0007\u200Bb"), "a b");
  EXPECT_EQ(Normalized(R"({"type":"ByteLevel"})", "é x"), "Ã©Ġx");
  EXPECT_EQ(
      Normalized(
          R"({"type":"Sequence","normalizers":[{"type":"NFD"},{"type":"StripAccents"},{"type":"Lowercase"}]})",
          "É"),
      "e");
}

TEST(Normalizer, RefusesRunawayGrowth) {
  const std::string grow =
      R"({"type":"Replace","pattern":{"String":"a"},"content":")" +
      std::string(4096, 'a') + R"("})";
  const std::string twice =
      R"({"type":"Sequence","normalizers":[)" + grow + "," + grow + "]}";
  EXPECT_THAT(Normalized(twice, "a"),
              ::testing::HasSubstr("longer than 1048576 bytes"));
}

}  // namespace
}  // namespace hexllm
