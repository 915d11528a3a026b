#include "text/added_tokens.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace hexllm {
namespace {

using ::testing::ElementsAre;

// "[3:  <m> ]" for a token, the text itself for text.
std::vector<std::string> Parts(const std::vector<AddedToken>& tokens,
                               std::string_view text) {
  const Normalizer identity = Normalizer::Create({}).value();
  const AddedTokens added = AddedTokens::Create(tokens, identity).value();
  std::vector<AddedTokens::Part> parts;
  added.Cut(AddedTokenStage::kGivenText, text, parts);
  std::vector<std::string> out;
  for (const auto& part : parts) {
    const std::string covered(text.substr(part.begin, part.end - part.begin));
    out.push_back(part.id == kNoToken
                      ? covered
                      : "[" + std::to_string(part.id) + ":" + covered + "]");
  }
  return out;
}

AddedToken Token(int32_t id, std::string content) {
  AddedToken token;
  token.id = id;
  token.content = std::move(content);
  return token;
}

TEST(AddedTokens, LeftmostThenLongest) {
  const std::vector<AddedToken> tokens = {Token(1, "<a>"), Token(2, "<a>b"),
                                          Token(3, "b<a>b")};
  EXPECT_THAT(Parts(tokens, "x<a>bc<a>"),
              ElementsAre("x", "[2:<a>b]", "c", "[1:<a>]"));
  EXPECT_THAT(Parts(tokens, "b<a>b"), ElementsAre("[3:b<a>b]"));
  EXPECT_THAT(Parts(tokens, "b<a>"), ElementsAre("b", "[1:<a>]"));
}

TEST(AddedTokens, TakesWhiteSpaceAlong) {
  AddedToken token = Token(1, "<m>");
  token.lstrip = true;
  token.rstrip = true;
  EXPECT_THAT(Parts({token}, "a \u3000<m>\n b"),
              ElementsAre("a", "[1: \u3000<m>\n ]", "b"));
  // The space between two belongs to the first.
  EXPECT_THAT(Parts({token}, "<m> <m>"), ElementsAre("[1:<m> ]", "[1:<m>]"));
}

TEST(AddedTokens, SingleWord) {
  AddedToken token = Token(1, "new");
  token.single_word = true;
  EXPECT_THAT(Parts({token}, "new renew newé new-"),
              ElementsAre("[1:new]", " renew newé ", "[1:new]", "-"));
}

TEST(AddedTokens, LaterTokensWin) {
  EXPECT_THAT(Parts({Token(1, "x"), Token(2, "x")}, "x"), ElementsAre("[2:x]"));
}

TEST(AddedTokens, StagesAreApart) {
  NormalizerStep lower;
  lower.kind = NormalizerKind::kLowercase;
  const Normalizer normalizer =
      Normalizer::Create(std::vector<NormalizerStep>{lower}).value();
  AddedToken normalized = Token(1, "ABC");
  normalized.normalized = true;
  const AddedTokens added =
      AddedTokens::Create(std::vector<AddedToken>{normalized, Token(2, "DEF")},
                          normalizer)
          .value();
  std::vector<AddedTokens::Part> parts;
  added.Cut(AddedTokenStage::kGivenText, "ABCDEF", parts);
  ASSERT_EQ(parts.size(), 2u);
  EXPECT_EQ(parts[1].id, 2);
  added.Cut(AddedTokenStage::kNormalizedText, "xabc", parts);
  ASSERT_EQ(parts.size(), 2u);
  EXPECT_EQ(parts[1].id, 1);
}

}  // namespace
}  // namespace hexllm
