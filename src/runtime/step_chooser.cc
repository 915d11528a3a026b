#include "runtime/step_chooser.h"

#include <algorithm>

#include "base/check.h"

namespace hexllm {
namespace {

constexpr double kMemory = 16;      // steps
constexpr double kTrialShare = 32;  // of the time, per form

}  // namespace

void StepChooser::Mean::Add(double x) {
  ++count;
  value += (x - value) / std::min<double>(count, kMemory);
}

void StepChooser::Line::Add(double tokens, double seconds) {
  for (double* sum : {&n, &x, &y, &xx, &xy}) *sum *= 1 - 1 / kMemory;
  n += 1;
  x += tokens;
  y += seconds;
  xx += tokens * tokens;
  xy += tokens * seconds;
}

bool StepChooser::Line::HasSlope() const {
  return xx * n - x * x > 1e-6 * xx * n;
}

double StepChooser::Line::At(double tokens) const {
  const double slope =
      HasSlope() ? std::max(0.0, (xy * n - x * y) / (xx * n - x * x)) : 0;
  // Not below a part of the mean: noise may tilt the line.
  return std::max(y / n + slope * (tokens - x / n), y / n / 16);
}

double StepChooser::Seconds(const StepOption& option) const {
  return option.form == StepForm::kPlain ? plain_seconds_.value
                                         : wide_seconds_.At(option.tokens);
}

size_t StepChooser::TrialOf(const StepOption& option) {
  return option.form == StepForm::kOneGuess && option.same_before
             ? kStepForms
             : static_cast<size_t>(option.form);
}

double StepChooser::Gain(const StepOption& option) const {
  if (option.max_gain == 1) return 1;
  if (option.form == StepForm::kOneGuess) {
    const std::vector<Mean>& hits = hits_[option.same_before ? 1 : 0];
    double gain = 1;
    double all = 1;  // chance that the guess is right so far
    for (size_t i = 0; i + 1 < option.tokens; ++i) {
      all *= hits[i].count > 0 ? hits[i].value : 1;
      gain += all;
    }
    return gain;
  }
  const Mean& gain = gains_[static_cast<size_t>(option.form)];
  return gain.count > 0 ? gain.value : option.max_gain;
}

std::optional<StepForm> StepChooser::FirstForm() const {
  if (plain_seconds_.count == 0) return StepForm::kPlain;
  if (wide_seconds_.n == 0) return StepForm::kBare;
  if (!wide_seconds_.HasSlope()) return StepForm::kOneGuess;
  return std::nullopt;
}

size_t StepChooser::Choose(std::span<const StepOption> options) const {
  HX_CHECK(!options.empty() && options[0].form == StepForm::kPlain);
  if (const auto first = FirstForm()) {
    for (size_t i = options.size(); i-- > 0;)
      if (options[i].form == *first) return i;
    return 0;  // no guess yet
  }
  size_t best = 0;
  double speed = 0;
  for (size_t i = 0; i < options.size(); ++i) {
    const double at = Gain(options[i]) / Seconds(options[i]);
    if (at <= speed) continue;
    best = i;
    speed = at;
  }
  for (size_t i = options.size(); i-- > 0;) {
    const double seconds = Seconds(options[i]);
    const bool due =
        now_ - last_trial_[TrialOf(options[i])] > kTrialShare * seconds;
    const bool could_win = options[i].max_gain / seconds > speed ||
                           options[i].form == StepForm::kPlain;
    if (i != best && due && could_win) return i;
  }
  return best;
}

void StepChooser::Record(const StepRecord& record) {
  const StepOption& option = record.option;
  now_ += record.seconds;
  last_trial_[TrialOf(option)] = now_;
  if (option.form == StepForm::kPlain) {
    plain_seconds_.Add(record.seconds);
    return;
  }
  wide_seconds_.Add(option.tokens, record.seconds);
  if (option.form == StepForm::kOneGuess) {
    RecordGuess(record);
  } else if (option.max_gain > 1) {
    gains_[static_cast<size_t>(option.form)].Add(record.gain);
  }
}

// Tokens after the first wrong one say nothing.
void StepChooser::RecordGuess(const StepRecord& record) {
  std::vector<Mean>& hits = hits_[record.option.same_before ? 1 : 0];
  for (size_t i = 0; i + 1 < record.option.tokens && i < record.gain; ++i)
    hits[i].Add(i + 1 < record.gain ? 1 : 0);
}

}  // namespace hexllm
