#include "runtime/lookahead.h"

#include <algorithm>

#include "base/check.h"
#include "runtime/sampler.h"

namespace hexllm {
namespace {

TextEnd EndOf(std::span<const int32_t> text) {
  return {.before = text.size() > 1 ? text[text.size() - 2] : -1,
          .last = text.back()};
}

}  // namespace

Lookahead::Lookahead(const artifact::LookaheadShape& shape)
    : shape_(shape),
      pool_(shape.ngram, shape.guesses),
      cells_(size_t{shape.ngram - 1} * shape.window),
      next_(shape.ngram - 1) {
  tree_.reserve(MaxTokens(StepForm::kLookahead, shape.guesses));
}

void Lookahead::Clear() {
  pool_.Clear();
  position_ = 0;
  BeginText();
}

std::span<const NgramGuess> Lookahead::Learn(std::span<const int32_t> text) {
  HX_CHECK(!text.empty());
  const size_t n = shape_.ngram;
  for (; learned_ + n <= text.size(); ++learned_) {
    pool_.Add(EndOf(text.first(learned_ + 1)),
              text.subspan(learned_ + 1, n - 1));
  }
  end_ = EndOf(text);
  guesses_ = pool_.Find(end_);
  return guesses_;
}

uint32_t Lookahead::MaxTokens(StepForm form, size_t guesses) const {
  const uint32_t levels = shape_.ngram - 1;
  const auto most = static_cast<uint32_t>(guesses);
  switch (form) {
    case StepForm::kPlain:
    case StepForm::kBare:
      return 1;
    case StepForm::kOneGuess:
      return 1 + std::min(most, 1U) * levels;
    case StepForm::kGuesses:
      return 1 + most * levels;
    case StepForm::kLookahead:
      return (shape_.window + most) * levels;
  }
  HX_CHECK(false);  // every form has its number above
}

uint32_t Lookahead::MaxGain(StepForm form) const {
  if (form < StepForm::kOneGuess) return 1;
  return form == StepForm::kLookahead ? std::max(shape_.ngram, shape_.window)
                                      : shape_.ngram;
}

std::span<const StepToken> Lookahead::Build(std::span<const int32_t> text,
                                            StepForm form,
                                            uint32_t guess_tokens) {
  tree_.clear();
  tree_.push_back({.id = text.back()});
  if (form == StepForm::kLookahead) AddBranch(text);
  if (form == StepForm::kOneGuess && !guesses_.empty()) {
    const auto next = guesses_.front().next;
    AddGuess(next.first(std::min<size_t>(next.size(), guess_tokens)));
  } else if (form > StepForm::kOneGuess) {
    for (const NgramGuess& guess : guesses_) AddGuess(guess.next);
  }
  return tree_;
}

// Column 0 to the text's last token. What is new, or passed over, gets tokens
// of the text: any would do.
void Lookahead::MoveWindow(std::span<const int32_t> text) {
  const auto position = static_cast<uint32_t>(text.size() - 1);
  const bool usable = position_ > 0 && position_ <= position &&
                      position - position_ < shape_.window;
  const uint32_t kept = usable ? shape_.window - (position - position_) : 0;
  for (uint32_t level = 0; level + 1 < shape_.ngram; ++level) {
    for (uint32_t column = 0; column < shape_.window; ++column) {
      int32_t& cell = Cell(level, column);
      if (column < kept) {
        cell = Cell(level, column + shape_.window - kept);
        continue;
      }
      const double uniform = UniformAt(position + column, level);
      cell =
          text[static_cast<size_t>(uniform * static_cast<double>(text.size()))];
    }
  }
  Cell(0, 0) = text.back();
  position_ = position;
}

void Lookahead::AddBranch(std::span<const int32_t> text) {
  MoveWindow(text);
  for (uint32_t level = 0; level + 1 < shape_.ngram; ++level) {
    for (uint32_t column = 0; column < shape_.window; ++column) {
      const auto at = static_cast<uint32_t>(tree_.size());
      if (level + column == 0) continue;  // the text's last token
      tree_.push_back({.id = Cell(level, column),
                       .parent = level == 0 ? at - 1 : at - shape_.window});
    }
  }
}

void Lookahead::AddGuess(std::span<const int32_t> guess) {
  uint32_t at = 0;
  for (const int32_t id : guess) {
    if (const auto there = Follow(at, id)) {
      at = *there;
      continue;
    }
    tree_.push_back({.id = id, .parent = at});
    at = static_cast<uint32_t>(tree_.size()) - 1;
  }
}

std::optional<uint32_t> Lookahead::Follow(uint32_t token, int32_t id) const {
  for (uint32_t i = token + 1; i < tree_.size(); ++i) {
    if (tree_[i].parent == token && tree_[i].id == id) return i;
  }
  return std::nullopt;
}

uint32_t Lookahead::LastLevel(uint32_t column) const {
  return (shape_.ngram - 2) * shape_.window + column;
}

void Lookahead::Update(std::span<const int32_t> choices) {
  HX_CHECK(choices.size() == shape_.window);
  const uint32_t levels = shape_.ngram - 1;
  for (uint32_t column = 0; column < shape_.window; ++column) {
    for (uint32_t level = 1; level < levels; ++level)
      next_[level - 1] = Cell(level, column);
    next_.back() = choices[column];
    const int32_t before = column == 0 ? end_.before : Cell(0, column - 1);
    pool_.Add({.before = before, .last = Cell(0, column)}, next_);
  }
  std::copy(cells_.begin() + shape_.window, cells_.end(), cells_.begin());
  std::copy(choices.begin(), choices.end(), cells_.end() - shape_.window);
  ++position_;
}

}  // namespace hexllm
