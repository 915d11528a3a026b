#include "base/quote.h"

#include <gtest/gtest.h>

namespace hexllm {
namespace {

TEST(Printable, KeepsPrintableText) {
  EXPECT_EQ(Printable("model.layers.0.q_proj"), "model.layers.0.q_proj");
  EXPECT_EQ(Printable("h\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80"),
            "h\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80");
  EXPECT_EQ(Printable(""), "");
  EXPECT_EQ(Quoted("a b"), "'a b'");
}

TEST(Printable, EscapesControlCharactersAndBackslashes) {
  EXPECT_EQ(Printable("a\nb\r\t\x1b[0m\x7f"), "a\\x0ab\\x0d\\x09\\x1b[0m\\x7f");
  EXPECT_EQ(Printable(std::string_view("\0", 1)), "\\x00");
  EXPECT_EQ(Printable("\\x0a"), "\\\\x0a");
  EXPECT_EQ(Printable("\xc2\x85"), "\\xc2\\x85");  // next line, a C1 control
}

TEST(Printable, EscapesInvalidUtf8) {
  EXPECT_EQ(Printable("\xff"), "\\xff");
  EXPECT_EQ(Printable("\x80z"), "\\x80z");
  EXPECT_EQ(Printable("\xc0\xaf"), "\\xc0\\xaf");           // overlong
  EXPECT_EQ(Printable("\xe0\x80\xaf"), "\\xe0\\x80\\xaf");  // overlong
  EXPECT_EQ(Printable("\xed\xa0\x80"), "\\xed\\xa0\\x80");  // surrogate
  EXPECT_EQ(Printable("\xf4\x90\x80\x80"), "\\xf4\\x90\\x80\\x80");
  EXPECT_EQ(Printable("\xe2\x82"), "\\xe2\\x82");  // cut off
}

TEST(Printable, CutsLongText) {
  EXPECT_EQ(Printable("12345", 5), "12345");
  EXPECT_EQ(Printable("123456", 5), "12345...");
  // A character that begins before the cut is shown whole.
  EXPECT_EQ(Printable("1\xc3\xa9z", 2), "1\xc3\xa9...");
  EXPECT_EQ(Quoted(std::string(1000, 'x')).size(), kMaxShownBytes + 5);
}

}  // namespace
}  // namespace hexllm
