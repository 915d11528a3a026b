// What a lookahead step runs beside the text's last token, and what it learns
// (Fu et al. 2024, "Break the Sequential Dependency of LLM Inference Using
// Lookahead Decoding"). Used by runtime/decode_steps.h, which runs the steps;
// this file decides nothing about the text.
//
// Two branches in one tree of tokens. With N = 4, W = 3, G = 2, the text ending
// in t at position p:
//
//   lookahead branch, W columns         verification branch, up to G guesses
//   of N - 1 levels                     of N - 1 tokens
//
//   level 0   t  -> a1 -> a2            t -> x -> y -> z
//             |     |     |               \-> x'-> y'-> z'
//   level 1   b0    b1    b2
//   level 2   c0    c1    c2
//
// Each token follows the one that the line comes from, so column i of level j
// stands at position p + i + j. What the model says after the last level (d0,
// d1, d2) makes n-grams "t b0 c0 d0", "a1 b1 c1 d1", ... for the pool; then
// each level takes the place of the one above. Guesses are n-grams of the pool
// that begin with t: those of such columns, and of the text itself. Tokens that
// begin alike share a place in the tree, and any path of it that the text takes
// is good, whatever branch it is of.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "artifact/manifest.h"
#include "runtime/decoder_runner.h"
#include "runtime/ngram_pool.h"

namespace hexllm {

// What a step has beside the text's last token.
enum class StepForm : uint8_t {
  kPlain,      // nothing, and the graph of T = 1 runs it
  kBare,       // nothing, but the lookahead graph runs it
  kOneGuess,   // the best guess, or its first tokens
  kGuesses,    // all guesses
  kLookahead,  // all guesses and the lookahead branch
};
inline constexpr size_t kStepForms = 5;

// Not thread-safe. Nothing allocates after construction.
class Lookahead {
 public:
  // `shape` of a valid manifest.
  explicit Lookahead(const artifact::LookaheadShape& shape);

  // Forgets all n-grams.
  void Clear();
  // A text follows that may have nothing to do with the last one.
  void BeginText() { learned_ = 0; }

  // Takes the n-grams of the text since BeginText or the last Learn; `text` is
  // not empty. Returns the guesses for what follows it, the best first.
  std::span<const NgramGuess> Learn(std::span<const int32_t> text);

  // The most tokens of the text that a step of kLookahead can give, of
  // kGuesses, or of kOneGuess with all its tokens.
  uint32_t MaxGain(StepForm form) const;

  // The tree of a step at the end of the text that Learn saw; token 0 is its
  // last one. At most T tokens, of kOneGuess 1 + `guess_tokens`. Valid until
  // the next call.
  std::span<const StepToken> Build(std::span<const int32_t> text, StepForm form,
                                   uint32_t guess_tokens = 0);
  // The most tokens that Build makes of so many guesses.
  uint32_t MaxTokens(StepForm form, size_t guesses) const;
  // The token of the last Build that follows `token` and is `id`.
  std::optional<uint32_t> Follow(uint32_t token, int32_t id) const;

  // After a step of kLookahead: the model's choice after token
  // `LastLevel(column)` for each of W columns.
  uint32_t columns() const { return shape_.window; }
  uint32_t LastLevel(uint32_t column) const;
  void Update(std::span<const int32_t> choices);

 private:
  int32_t& Cell(uint32_t level, uint32_t column) {
    return cells_[level * shape_.window + column];
  }
  void MoveWindow(std::span<const int32_t> text);
  void AddBranch(std::span<const int32_t> text);
  void AddGuess(std::span<const int32_t> guess);

  artifact::LookaheadShape shape_;
  NgramPool pool_;
  std::span<const NgramGuess> guesses_;
  size_t learned_ = 0;  // tokens of the text whose n-grams were taken
  TextEnd end_;
  std::vector<int32_t> cells_;  // [N - 1, W]
  uint32_t position_ = 0;       // of column 0; 0 = no window yet
  std::vector<int32_t> next_;   // [N - 1]
  std::vector<StepToken> tree_;
};

}  // namespace hexllm
