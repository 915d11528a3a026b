#include "runtime/decode_steps.h"

#include <algorithm>

#include "base/check.h"

namespace hexllm {
namespace {

int32_t Best(std::span<const float> logits) {
  size_t best = 0;
  for (size_t i = 1; i < logits.size(); ++i)
    if (logits[i] > logits[best]) best = i;
  return static_cast<int32_t>(best);
}

}  // namespace

DecodeSteps::DecodeSteps(const DecodeConfig& config)
    : config_(config), chooser_(config.shape.ngram) {
  if (config.mode == LookaheadMode::kOff) return;
  HX_CHECK(config.wide != nullptr);
  lookahead_.emplace(config.shape);
  HX_CHECK(lookahead_->MaxTokens(StepForm::kLookahead, config.shape.guesses) <=
           config.wide->step_tokens());
  choices_.resize(config.shape.window);
  options_.reserve(kStepForms + config.shape.ngram);
}

void DecodeSteps::Begin() {
  EndStep();
  if (lookahead_) lookahead_->BeginText();
}

void DecodeSteps::Clear() {
  EndStep();
  if (lookahead_) lookahead_->Clear();
}

uint32_t DecodeSteps::MaxTokens() const {
  if (config_.sequence->sink) return UINT32_MAX;
  return config_.single->past_columns() + config_.single->step_tokens();
}

bool DecodeSteps::HasRoom() const {
  const uint32_t tokens = config_.sequence->kv.tokens();
  return config_.sequence->sink || config_.sequence->ids.size() == tokens ||
         tokens <= config_.single->past_columns();
}

Status DecodeSteps::Run() {
  const size_t pending =
      config_.sequence->ids.size() - config_.sequence->kv.tokens();
  if (pending == 0) return OkStatus();
  if (NeedsRoom(*config_.sequence, 1)) {
    HX_RETURN_IF_ERROR(MakeRoom(*config_.sequence, 1));
    Begin();
  }
  if (AcceptPending()) return OkStatus();
  HX_CHECK(HasRoom());
  EndStep();
  if (pending > 1 || !lookahead_) return RunPlain();
  const Clock::time_point start = Clock::now();
  StepOption option = ChooseOption();
  HX_RETURN_IF_ERROR(option.form == StepForm::kPlain ? RunPlain()
                                                     : RunWide(option));
  open_ = StepRecord{
      .option = option,
      .seconds = std::chrono::duration<double>(Clock::now() - start).count()};
  at_ = 0;
  return OkStatus();
}

Status DecodeSteps::RunPlain() {
  Sequence& sequence = *config_.sequence;
  DecoderRunner& runner = *config_.single;
  const auto pending = std::span(sequence.ids).subspan(sequence.kv.tokens());
  HX_RETURN_IF_ERROR(runner.Step(pending));
  runner.Commit();
  sequence.logits = runner.Logits(static_cast<uint32_t>(pending.size()) - 1);
  ++counts_.plain;
  return OkStatus();
}

Status DecodeSteps::RunWide(StepOption& option) {
  Sequence& sequence = *config_.sequence;
  DecoderRunner& runner = *config_.wide;
  const auto tree =
      lookahead_->Build(sequence.ids, option.form, option.tokens - 1);
  option.tokens = static_cast<uint32_t>(tree.size());
  HX_RETURN_IF_ERROR(runner.StepTree(tree));
  if (option.form == StepForm::kLookahead) LearnFromBranch();
  runner.Commit(0);
  sequence.logits = runner.Logits(0);
  ++(option.form == StepForm::kLookahead ? counts_.lookahead
     : option.form == StepForm::kBare    ? counts_.plain
                                         : counts_.guesses);
  return OkStatus();
}

void DecodeSteps::LearnFromBranch() {
  for (uint32_t i = 0; i < choices_.size(); ++i)
    choices_[i] = Best(config_.wide->Logits(lookahead_->LastLevel(i)));
  lookahead_->Update(choices_);
}

// True when the last step has run the pending token.
bool DecodeSteps::AcceptPending() {
  if (!open_ || open_->option.form == StepForm::kPlain) return false;
  Sequence& sequence = *config_.sequence;
  const auto token = lookahead_->Follow(at_, sequence.ids.back());
  if (!token) return false;
  at_ = *token;
  ++open_->gain;
  ++counts_.accepted;
  config_.wide->Commit(at_);
  sequence.logits = config_.wide->Logits(at_);
  return true;
}

StepOption DecodeSteps::ChooseOption() {
  const Sequence& sequence = *config_.sequence;
  const auto guesses = lookahead_->Learn(sequence.ids);
  if (sequence.kv.tokens() > config_.wide->past_columns()) return {};
  const auto whole = [&](StepForm form) {
    return StepOption{.form = form,
                      .tokens = lookahead_->MaxTokens(form, guesses.size()),
                      .max_gain = lookahead_->MaxGain(form)};
  };
  if (config_.mode == LookaheadMode::kOn) return whole(StepForm::kLookahead);
  options_.clear();
  options_.push_back(whole(StepForm::kPlain));
  options_.push_back(whole(StepForm::kBare));
  for (uint32_t n = 2; !guesses.empty() && n <= config_.shape.ngram; ++n) {
    options_.push_back({.form = StepForm::kOneGuess,
                        .tokens = n,
                        .max_gain = n,
                        .same_before = guesses.front().same_before});
  }
  if (guesses.size() > 1) options_.push_back(whole(StepForm::kGuesses));
  options_.push_back(whole(StepForm::kLookahead));
  return options_[chooser_.Choose(options_)];
}

void DecodeSteps::EndStep() {
  if (open_) chooser_.Record(*open_);
  open_.reset();
}

}  // namespace hexllm
