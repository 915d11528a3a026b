#include "runtime/lookahead.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "runtime/step_chooser.h"

namespace hexllm {
namespace {

using ::testing::ElementsAre;
using Ids = std::vector<int32_t>;

std::vector<Ids> FindAll(NgramPool& pool, TextEnd end) {
  std::vector<Ids> out;
  for (const NgramGuess& guess : pool.Find(end))
    out.emplace_back(guess.next.begin(), guess.next.end());
  return out;
}

TEST(NgramPool, GivesTheBestContinuationsFirst) {
  NgramPool pool(3, 2);
  EXPECT_TRUE(pool.Find({.before = 1, .last = 7}).empty());
  pool.Add({.before = 1, .last = 7}, Ids{8, 9});
  pool.Add({.before = 2, .last = 7}, Ids{5, 5});
  pool.Add({.before = 3, .last = 7}, Ids{6, 6});
  // The one that came after 1, then the newest; two at most.
  EXPECT_THAT(FindAll(pool, {.before = 1, .last = 7}),
              ElementsAre(Ids{8, 9}, Ids{6, 6}));
  EXPECT_THAT(FindAll(pool, {.before = 4, .last = 7}),
              ElementsAre(Ids{6, 6}, Ids{5, 5}));
  // Seen again it is new, and not there twice.
  pool.Add({.before = 4, .last = 7}, Ids{8, 9});
  EXPECT_THAT(FindAll(pool, {.before = 9, .last = 7}),
              ElementsAre(Ids{8, 9}, Ids{6, 6}));
  EXPECT_TRUE(pool.Find({.before = 1, .last = 8}).empty());
  pool.Clear();
  EXPECT_TRUE(pool.Find({.before = 1, .last = 7}).empty());
}

TEST(NgramPool, KeepsTheNewest) {
  NgramPool pool(2, 2);
  for (int32_t i = 0; i < 50; ++i) pool.Add({.last = 7}, Ids{i});
  EXPECT_THAT(FindAll(pool, {.before = 0, .last = 7}),
              ElementsAre(Ids{49}, Ids{48}));
}

// "id<parent's number" for each token.
std::string Draw(std::span<const StepToken> tree) {
  std::string out;
  for (const StepToken& token : tree) {
    out += std::to_string(token.id) + "<";
    out += token.parent == kNoParent ? "-" : std::to_string(token.parent);
    out += ' ';
  }
  return out;
}

TEST(Lookahead, GuessesOfTheText) {
  Lookahead lookahead({.ngram = 3, .window = 2, .guesses = 2});
  const Ids text = {1, 2, 3, 4, 1, 2, 5, 6, 1};
  EXPECT_EQ(lookahead.Learn(text).size(), 2U);  // 2 3 and 2 5 came after 1
  EXPECT_EQ(Draw(lookahead.Build(text, StepForm::kPlain)), "1<- ");
  EXPECT_EQ(Draw(lookahead.Build(text, StepForm::kOneGuess, 2)),
            "1<- 2<0 5<1 ");
  // Both begin with 2: they share it.
  EXPECT_EQ(Draw(lookahead.Build(text, StepForm::kGuesses)),
            "1<- 2<0 5<1 3<1 ");
  EXPECT_EQ(lookahead.Follow(0, 2), 1U);
  EXPECT_EQ(lookahead.Follow(1, 3), 3U);
  EXPECT_EQ(lookahead.Follow(0, 3), std::nullopt);
}

// The header's drawing: N = 4, W = 3.
TEST(Lookahead, TheBranchMovesUpALevel) {
  Lookahead lookahead({.ngram = 4, .window = 3, .guesses = 2});
  const Ids text = {50};
  lookahead.Learn(text);
  const auto tree = lookahead.Build(text, StepForm::kLookahead);
  // The only token of the text fills the window.
  EXPECT_EQ(Draw(tree), "50<- 50<0 50<1 50<0 50<1 50<2 50<3 50<4 50<5 ");
  EXPECT_EQ(lookahead.LastLevel(1), 7U);
  lookahead.Update(Ids{61, 62, 63});
  Ids next = {50, 51};
  lookahead.Learn(next);
  EXPECT_EQ(Draw(lookahead.Build(next, StepForm::kLookahead)),
            "51<- 50<0 50<1 50<0 50<1 50<2 61<3 62<4 63<5 ");
  lookahead.Update(Ids{71, 72, 73});
  // A token passed over: the columns move to the left.
  next = {50, 51, 52, 50};
  EXPECT_EQ(lookahead.Learn(next).size(), 2U);  // of those that came after 50
  const std::string drawn = Draw(lookahead.Build(next, StepForm::kLookahead));
  EXPECT_EQ(drawn.substr(0, 10), "50<- 50<0 ");
  EXPECT_NE(drawn.find(" 62<0 "), std::string::npos) << drawn;
  EXPECT_NE(drawn.find(" 73<4 "), std::string::npos) << drawn;
}

TEST(Lookahead, TreesFitTheGraph) {
  for (const artifact::LookaheadShape shape :
       {artifact::LookaheadShape{2, 1, 1}, {3, 2, 2}, {5, 8, 8}, {2, 9, 3}}) {
    Lookahead lookahead(shape);
    Ids text = {3};
    uint32_t most = 0;
    for (int32_t i = 0; i < 200; ++i) {
      lookahead.Learn(text);
      const auto tree = lookahead.Build(text, StepForm::kLookahead);
      most = std::max(most, static_cast<uint32_t>(tree.size()));
      Ids choices;
      for (uint32_t c = 0; c < shape.window; ++c)
        choices.push_back((i * 5 + static_cast<int32_t>(c)) % 7);
      lookahead.Update(choices);
      text.push_back(i * i % 5);
    }
    const uint32_t tokens = (shape.window + shape.guesses) * (shape.ngram - 1);
    EXPECT_LE(most, tokens);
    EXPECT_EQ(lookahead.MaxTokens(StepForm::kLookahead, shape.guesses), tokens);
  }
}

// A machine where a step of n tokens takes `seconds(form, n)` and gives what
// `gain` says; counts what is chosen.
struct FakeMachine {
  double plain_seconds;
  double wide_seconds;
  double token_seconds;
  std::map<StepForm, uint32_t> gains;

  std::map<StepForm, int> Run(int steps) const {
    const std::vector<StepOption> options = {
        {.form = StepForm::kPlain},
        {.form = StepForm::kBare},
        {.form = StepForm::kOneGuess, .tokens = 2, .max_gain = 2},
        {.form = StepForm::kOneGuess, .tokens = 3, .max_gain = 3},
        {.form = StepForm::kOneGuess, .tokens = 5, .max_gain = 5},
        {.form = StepForm::kGuesses, .tokens = 20, .max_gain = 5},
        {.form = StepForm::kLookahead, .tokens = 64, .max_gain = 8}};
    StepChooser chooser(4);
    std::map<StepForm, int> counts;
    for (int i = 0; i < steps; ++i) {
      const StepOption& option = options[chooser.Choose(options)];
      const bool plain = option.form == StepForm::kPlain;
      ++counts[option.form];
      chooser.Record(
          {.option = option,
           .gain = option.max_gain == 1
                       ? 1
                       : std::min(option.max_gain, gains.at(option.form)),
           .seconds = plain ? plain_seconds
                            : wide_seconds + token_seconds * option.tokens});
    }
    return counts;
  }
};

TEST(StepChooser, TakesWhatPays) {
  const std::map<StepForm, uint32_t> gains = {{StepForm::kOneGuess, 2},
                                              {StepForm::kGuesses, 3},
                                              {StepForm::kLookahead, 4}};
  // Padding costs as much as tokens: all that fits.
  auto counts = FakeMachine{1, 1.5, 0, gains}.Run(400);
  EXPECT_GT(counts[StepForm::kLookahead], 330);
  // Each token costs: one guess.
  counts = FakeMachine{1, 0.9, 0.1, gains}.Run(400);
  EXPECT_GT(counts[StepForm::kOneGuess], 350);
  // 64 tokens can never pay: not tried.
  EXPECT_EQ(counts[StepForm::kLookahead], 0);
  // Guesses that never come true.
  counts = FakeMachine{
      1,
      1,
      0.1,
      {{StepForm::kOneGuess, 1},
       {StepForm::kGuesses, 1},
       {StepForm::kLookahead,
        1}}}.Run(400);
  EXPECT_GT(counts[StepForm::kPlain] + counts[StepForm::kBare], 360);
  EXPECT_GT(counts[StepForm::kOneGuess], 4);  // they might yet
}

}  // namespace
}  // namespace hexllm
