// Which form of step pays, from what steps of each form gave and how long they
// took. Used by runtime/decode_steps.h. What it chooses changes the time that a
// text takes, never the text.
//
// The rule. The speed of a form is the tokens that its steps give over the time
// of a step of so many tokens. Times: for the graph of T = 1 the mean of its
// steps, for the wide graph a line through (tokens, time) of its steps, since
// an engine may leave padding out. Tokens: the mean of the form's steps; for
// one guess, of which the first tokens alone can be run, what follows from how
// often its first, second, ... token came true after the ones before it,
// counted apart for guesses that match the last two tokens of the text or one.
// Means are of the last kMemory values. The fastest form is taken.
//
// A form that is slower now, and would be the fastest if all it guesses came
// true, is tried again when kTrialShare times its duration has passed: trying
// costs at most one part in kTrialShare for each form. So is kPlain, whose time
// may be out of date. The first steps are one for each graph, then one guess:
// what many tokens cost must be known before they are run.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "runtime/lookahead.h"

namespace hexllm {

// A form that the next step can have.
struct StepOption {
  StepForm form = StepForm::kPlain;
  uint32_t tokens = 1;       // that it runs
  uint32_t max_gain = 1;     // tokens of the text that it gives at most
  bool same_before = false;  // of a guess: as NgramGuess
};

// What a step was.
struct StepRecord {
  StepOption option;
  uint32_t gain = 1;  // tokens that it gave
  double seconds = 0;
};

// Not thread-safe. Nothing allocates after construction.
class StepChooser {
 public:
  // Guesses have up to `guess_tokens` tokens.
  explicit StepChooser(uint32_t guess_tokens)
      : hits_{std::vector<Mean>(guess_tokens),
              std::vector<Mean>(guess_tokens)} {}

  // The index of the option to take; `options` begins with kPlain
  // and has kBare.
  size_t Choose(std::span<const StepOption> options) const;
  void Record(const StepRecord& record);

 private:
  // Of the last values, early ones weighted alike.
  struct Mean {
    double value = 0;
    uint32_t count = 0;
    void Add(double x);
  };
  // The least squares line through (tokens, seconds), older steps fading.
  struct Line {
    double n = 0, x = 0, y = 0, xx = 0, xy = 0;
    void Add(double tokens, double seconds);
    // False until there were steps of different sizes.
    bool HasSlope() const;
    double At(double tokens) const;
  };

  std::optional<StepForm> FirstForm() const;
  double Seconds(const StepOption& option) const;
  double Gain(const StepOption& option) const;
  void RecordGuess(const StepRecord& record);
  // Where the last trial of a form is kept; guesses have two places.
  static size_t TrialOf(const StepOption& option);

  Mean plain_seconds_;
  Line wide_seconds_;
  std::array<Mean, kStepForms> gains_;
  // How often token i of a guess came true after those before it; by
  // same_before.
  std::array<std::vector<Mean>, 2> hits_;
  std::array<double, kStepForms + 1> last_trial_{};  // in seconds of decoding
  double now_ = 0;
};

}  // namespace hexllm
