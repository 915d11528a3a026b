#include "text/utf8.h"

#include <gtest/gtest.h>

#include "text/byte_level.h"

namespace hexllm {
namespace {

std::string Repaired(std::string_view text) {
  std::string out;
  AppendValidUtf8(text, out);
  return out;
}

TEST(Utf8, DecodesEachLength) {
  for (const uint32_t c :
       {0x24u, 0xA2u, 0x20ACu, 0xD7FFu, 0xE000u, 0x10348u, 0x10FFFFu}) {
    std::string text;
    AppendUtf8(c, text);
    const Utf8Char found = DecodeUtf8(text, 0);
    EXPECT_EQ(found.code_point, c);
    EXPECT_EQ(found.bytes, text.size());
    EXPECT_TRUE(IsValidUtf8(text));
  }
}

TEST(Utf8, RefusesWhatIsNotACharacter) {
  for (const char* bad :
       {"\x80", "\xC0\xAF", "\xC1\xBF", "\xE0\x80\x80", "\xED\xA0\x80",
        "\xF4\x90\x80\x80", "\xF5\x80\x80\x80", "\xFF", "\xE2\x82", "a\xC3"}) {
    EXPECT_FALSE(IsValidUtf8(bad));
    EXPECT_TRUE(IsValidUtf8(Repaired(bad)));
  }
}

// One U+FFFD for each maximal invalid part, as Unicode table 3-8 has it.
TEST(Utf8, RepairsMaximalParts) {
  EXPECT_EQ(Repaired("\x61\xF1\x80\x80\xE1\x80\xC2\x62\x80\x63\x80\xBF\x64"),
            "a\uFFFD\uFFFD\uFFFDb\uFFFDc\uFFFD\uFFFDd");
  EXPECT_EQ(Repaired("\xE2\x82\xAC\xE2\x82"), "€\uFFFD");
  EXPECT_EQ(Repaired("\xED\xA0\x80"), "\uFFFD\uFFFD\uFFFD");
}

TEST(Utf8, MeasuresTheIncompleteEnd) {
  EXPECT_EQ(IncompleteUtf8Suffix("abc"), 0u);
  EXPECT_EQ(IncompleteUtf8Suffix("a\xC3"), 1u);
  EXPECT_EQ(IncompleteUtf8Suffix("a\xF0\x9F\x98"), 3u);
  EXPECT_EQ(IncompleteUtf8Suffix("a\xF0\x9F\x98\x80"), 0u);
  EXPECT_EQ(IncompleteUtf8Suffix("a\x80"), 0u);
  EXPECT_EQ(IncompleteUtf8Suffix("\xED\xA0"),
            0u);  // a surrogate: no byte can finish it
}

TEST(ByteLevel, IsOneToOne) {
  std::string all;
  for (int byte = 0; byte < 256; ++byte) all.push_back(static_cast<char>(byte));
  std::string spelled;
  AppendByteLevel(all, spelled);
  std::string back;
  ASSERT_TRUE(AppendBytesOfByteLevel(spelled, back));
  EXPECT_EQ(back, all);
}

TEST(ByteLevel, SpellsSpaceAndLineFeed) {
  std::string spelled;
  AppendByteLevel(" \n!", spelled);
  EXPECT_EQ(spelled, "ĠĊ!");
}

TEST(ByteLevel, RefusesOtherCharacters) {
  std::string out = "kept";
  for (const char* text : {"a b", "▁the", "\xC4", "Ġ\u0144"}) {
    EXPECT_FALSE(AppendBytesOfByteLevel(text, out)) << text;
    EXPECT_EQ(out, "kept");
  }
}

}  // namespace
}  // namespace hexllm
