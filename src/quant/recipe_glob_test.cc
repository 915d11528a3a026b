#include "quant/recipe_glob.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace hexllm::quant {
namespace {

using ::testing::HasSubstr;

struct Case {
  std::string_view glob;
  std::string_view name;
  bool matches;
};

TEST(RecipeGlob, Matches) {
  constexpr Case kCases[] = {
      {"lm_head", "lm_head", true},
      {"lm_head", "lm_head2", false},
      {"lm_head", "model.lm_head", false},
      {"*", "", true},
      {"*", "model.layers.0", true},
      {"**", "a", true},
      {"?", "", false},
      {"?", "a", true},
      {"?", "ab", false},
      {"a?c", "a.c", true},
      {"*.v_proj", "model.layers.11.self_attn.v_proj", true},
      {"*.v_proj", "model.layers.11.self_attn.v_proj.input", false},
      {"*a*b", "xaxbxab", true},
      {"*a*b", "xaxbxac", false},
      {"model.layers.[0-3].*", "model.layers.3.mlp", true},
      {"model.layers.[0-3].*", "model.layers.4.mlp", false},
      {"model.layers.[0-3].*", "model.layers.30.mlp", false},
      {"model.layers.2[1-7].mlp", "model.layers.27.mlp", true},
      {"[!a-c]", "d", true},
      {"[!a-c]", "b", false},
      {"[!a-c]", "", false},
      {"[ace]", "c", true},
      {"[ace]", "b", false},
      {"[a-]", "-", true},
      {"[-a]", "-", true},
      {"[-a]", "b", false},
      {"x]", "x]", true},
  };
  for (const Case& c : kCases) {
    ASSERT_TRUE(CheckGlob(c.glob).ok()) << c.glob;
    EXPECT_EQ(GlobMatches(c.glob, c.name), c.matches)
        << c.glob << " on " << c.name;
  }
}

// A matcher that tries all splits at each star would not end.
TEST(RecipeGlob, ManyStarsTakeNoExponentialTime) {
  std::string glob;
  for (int i = 0; i < 100; ++i) glob += "*a";
  glob += "b";
  EXPECT_FALSE(GlobMatches(glob, std::string(10'000, 'a')));
}

TEST(RecipeGlob, DamagedPatternsAreRefused) {
  constexpr std::pair<std::string_view, std::string_view> kCases[] = {
      {"", "found 0"},
      {"a[", "without its ']'"},
      {"a[bc", "without its ']'"},
      {"[]", "an empty set"},
      {"[!]", "an empty set"},
      {"[ad-b]", "runs backwards"},
      {"ok[a]x[z-a]", "runs backwards"},
  };
  for (const auto& [glob, problem] : kCases) {
    const Status status = CheckGlob(glob);
    ASSERT_FALSE(status.ok()) << glob;
    EXPECT_EQ(status.error().code, ErrorCode::kBadInput);
    EXPECT_THAT(status.error().message, HasSubstr(problem)) << glob;
  }
  EXPECT_FALSE(CheckGlob(std::string(kMaxGlobBytes + 1, 'a')).ok());
  EXPECT_TRUE(CheckGlob(std::string(kMaxGlobBytes, 'a')).ok());
}

}  // namespace
}  // namespace hexllm::quant
