#include "text/unicode.h"

#include <gtest/gtest.h>

namespace hexllm {
namespace {

// The examples of Unicode Standard Annex 15, figures 3 to 6.
TEST(Unicode, NormalizationForms) {
  const struct {
    const char* source;
    const char* nfc;
    const char* nfd;
    const char* nfkc;
    const char* nfkd;
  } cases[] = {
      {"plain", "plain", "plain", "plain", "plain"},
      {"\u212B", "\u00C5", "A\u030A", "\u00C5", "A\u030A"},
      {"\uFB01", "\uFB01", "\uFB01", "fi", "fi"},
      {"2\u2075", "2\u2075", "2\u2075", "25", "25"},
      {"\u1E9B\u0323", "\u1E9B\u0323", "\u017F\u0323\u0307", "\u1E69",
       "s\u0323\u0307"},
      {"d\u0323\u0307", "\u1E0D\u0307", "d\u0323\u0307", "\u1E0D\u0307",
       "d\u0323\u0307"},
      {"d\u0307\u0323", "\u1E0D\u0307", "d\u0323\u0307", "\u1E0D\u0307",
       "d\u0323\u0307"},
      {"\uD55C", "\uD55C", "\u1112\u1161\u11AB", "\uD55C",
       "\u1112\u1161\u11AB"},
      {"\u1112\u1161\u11AB", "\uD55C", "\u1112\u1161\u11AB", "\uD55C",
       "\u1112\u1161\u11AB"},
      {"\u0958", "\u0915\u093C", "\u0915\u093C", "\u0915\u093C",
       "\u0915\u093C"},  // excluded from composition
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(c.source);
    EXPECT_EQ(NormalizeUnicode(c.source, NormalizationForm::kNfc), c.nfc);
    EXPECT_EQ(NormalizeUnicode(c.source, NormalizationForm::kNfd), c.nfd);
    EXPECT_EQ(NormalizeUnicode(c.source, NormalizationForm::kNfkc), c.nfkc);
    EXPECT_EQ(NormalizeUnicode(c.source, NormalizationForm::kNfkd), c.nfkd);
  }
}

// A run of marks in the worst order would take a quadratic sort minutes.
TEST(Unicode, LongRunsOfMarksAreFast) {
  std::string text = "a";
  for (int i = 0; i < 200'000; ++i) text += "\u0301\u0323";
  const std::string normal = NormalizeUnicode(text, NormalizationForm::kNfd);
  EXPECT_EQ(normal.size(), text.size());
  EXPECT_EQ(normal.substr(0, 5), "a\u0323\u0323");
}

TEST(Unicode, LowerCaseIsFullAndWithoutContext) {
  EXPECT_EQ(ToLower("ÀB\u03A3\u0130"), "àb\u03C3i\u0307");
}

TEST(Unicode, Properties) {
  for (const uint32_t c : {0x09u, 0x20u, 0x85u, 0xA0u, 0x2003u, 0x3000u})
    EXPECT_TRUE(IsWhiteSpace(c)) << c;
  for (const uint32_t c : {0x41u, 0x180Eu, 0x200Bu, 0xFEFFu})
    EXPECT_FALSE(IsWhiteSpace(c)) << c;
  for (const uint32_t c : {0x30u, 0x660u, 0xBDu, 0x2163u})
    EXPECT_TRUE(IsNumeric(c)) << c;
  EXPECT_FALSE(IsNumeric(0x4E00));  // the numeral one is a letter
  for (const uint32_t c : {0x24u, 0x2Bu, 0x5Fu, 0x60u, 0x3001u})
    EXPECT_TRUE(IsPunctuation(c)) << c;
  for (const uint32_t c : {0x20u, 0x41u, 0x20ACu})
    EXPECT_FALSE(IsPunctuation(c)) << c;
  EXPECT_TRUE(IsMark(0x301));
  EXPECT_FALSE(IsMark(0xE9));
  for (const uint32_t c : {0x5Fu, 0x61u, 0x39u, 0x301u, 0x24B6u, 0x200Du})
    EXPECT_TRUE(IsWordChar(c)) << c;
  for (const uint32_t c : {0x2Du, 0x20u, 0xBDu})
    EXPECT_FALSE(IsWordChar(c)) << c;
}

}  // namespace
}  // namespace hexllm
