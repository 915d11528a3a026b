#include "text/regex.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "text/onig_syntax.h"

namespace hexllm {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<std::string> Matches(std::string_view pattern,
                                 std::string_view text) {
  auto regex = Regex::Compile(pattern);
  EXPECT_TRUE(regex.ok()) << regex.status().error().message;
  RegexScratch scratch;
  std::vector<std::string> out;
  const Status status =
      regex->ForEachMatch(text, scratch, [&](size_t begin, size_t end) {
        out.emplace_back(text.substr(begin, end - begin));
      });
  EXPECT_TRUE(status.ok());
  return out;
}

TEST(OnigSyntax, Translates) {
  const struct {
    const char* onig;
    const char* pcre2;
  } cases[] = {
      {R"(\s+(?!\S)|\s)",
       R"(\p{White_Space}+(?!\P{White_Space})|\p{White_Space})"},
      {R"([^\s\p{L}\p{N}]++)", R"([^\p{White_Space}\p{L}\p{N}]++)"},
      {R"((?i:'s|'t)?)", R"((?i:'s|'t)?)"},
      {R"((?m:.))", R"((?s:.))"},
      {R"(\p{Han}\p{^Lu}\P{Alpha})", R"(\p{sc:Han}\P{Lu}\P{Alphabetic})"},
      {R"(\p{Lowercase_Letter})", R"(\p{Ll})"},
      {R"(\h\H)", R"([0-9A-Fa-f][^0-9A-Fa-f])"},
      {R"([\w-])", R"([\p{Alphabetic}\p{M}\p{Nd}\p{Pc}-])"},
      {R"(\u00e9\x41\x{1F600})", R"(\x{00e9}\x{41}\x{1F600})"},
      {R"(a{,3}b{2}c{1,}{x)", R"(a{0,3}b{2}c{1,}\{x)"},
      {R"([[:alpha:]])", R"([\p{Alphabetic}])"},
      {R"(\-\[\/\r\n)", R"(\-\[\/\r\n)"},
      {"一", "一"},
  };
  for (const auto& c : cases) {
    const auto found = OnigToPcre2(c.onig);
    ASSERT_TRUE(found.ok()) << c.onig;
    EXPECT_EQ(*found, c.pcre2);
    EXPECT_TRUE(Regex::Compile(c.onig).ok()) << c.onig;
  }
}

TEST(OnigSyntax, NamesWhatIsNotSupported) {
  for (const char* pattern :
       {"[a&&b]", "[a[b]]", "(?#x)", "(*UTF)a", R"(\K)", R"(\R)", R"(\X)",
        R"(\Qa\E)", "a{1,2}+", R"([\W])", R"([\b])", "(?P<n>a)", "(?R)",
        R"(\xE9)", "[[:punct:]]", R"(\C)", R"(\g<1>)"}) {
    const auto found = Regex::Compile(pattern);
    ASSERT_FALSE(found.ok()) << pattern;
    EXPECT_EQ(found.error().code, ErrorCode::kUnsupported) << pattern;
    EXPECT_THAT(found.error().message, HasSubstr("not supported"));
  }
}

TEST(Regex, RefusesMalformedPatterns) {
  for (const char* pattern :
       {"(", "[a", "a\\", R"(\p{L)", "(?i", R"(\p{Nosuchscript})", "(?<=a*)b",
        "\xFF", "[z-a]"}) {
    const auto found = Regex::Compile(pattern);
    ASSERT_FALSE(found.ok()) << pattern;
    EXPECT_EQ(found.error().code, ErrorCode::kBadInput) << pattern;
  }
}

TEST(Regex, SpaceIsWhiteSpace) {
  EXPECT_THAT(Matches(R"(\s)", "a\u0085\u180E\u3000"),
              ElementsAre("\u0085", "\u3000"));
}

TEST(Regex, ScriptIsNotItsExtensions) {
  // U+3001 is used with Han but belongs to no script.
  EXPECT_THAT(Matches(R"(\p{Han}+)", "漢字\u3001字"),
              ElementsAre("漢字", "字"));
}

TEST(Regex, WordBoundaryCountsMarks) {
  EXPECT_THAT(Matches(R"(\b\w+\b)", "e\u0301a ½ b_2"),
              ElementsAre("e\u0301a", "b_2"));
}

TEST(Regex, AnchorsAreOfLines) {
  EXPECT_THAT(Matches("^.|.$", "ab\ncd"), ElementsAre("a", "b", "c", "d"));
}

// Rust's onig: an empty match that touches the match before it is passed over.
TEST(Regex, EmptyMatches) {
  EXPECT_THAT(Matches("x*", "axxb"), ElementsAre("", "xx", ""));
  EXPECT_THAT(Matches("(?=b)", "abab"), ElementsAre("", ""));
}

TEST(Regex, GivesUpOnRunawayBacktracking) {
  auto regex = Regex::Compile("(a|aa|a+)+$");
  ASSERT_TRUE(regex.ok());
  RegexScratch scratch;
  const std::string text = std::string(2000, 'a') + "b";
  const auto found = regex->Find(text, 0, scratch);
  ASSERT_FALSE(found.ok());
  EXPECT_EQ(found.error().code, ErrorCode::kBadInput);
}

TEST(Regex, LongRunsAreNoRunaway) {
  const std::string spaces(1 << 20, ' ');
  EXPECT_EQ(Matches(R"(\s*[\r\n]+|\s+(?!\S)|\s+)", spaces).size(), 1u);
}

}  // namespace
}  // namespace hexllm
