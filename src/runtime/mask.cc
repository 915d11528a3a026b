#include "runtime/mask.h"

#include <algorithm>

#include "base/check.h"
#include "runtime/io_codec.h"

namespace hexllm {

MaskWriter::MaskWriter(const artifact::IoSpec& spec, uint32_t window,
                       std::span<std::byte> out)
    : out_(out),
      step_tokens_(static_cast<size_t>(spec.shape.at(0))),
      context_tokens_(static_cast<size_t>(spec.shape.at(1))),
      window_(window == 0 ? context_tokens_ : window),
      element_bytes_(ElementBytes(spec.dtype)),
      visible_(spec.mask_visible),
      hidden_(spec.mask_hidden) {
  HX_CHECK(out.size() == step_tokens_ * context_tokens_ * element_bytes_);
}

bool MaskWriter::Advances(const MaskStep& step) const {
  return last_ && step.past_tokens == last_->past_tokens + 1 &&
         (step.first_column == last_->first_column ||
          step.first_column + 1 == last_->first_column);
}

void MaskWriter::Write(const MaskStep& step) {
  HX_CHECK(step.first_row < step_tokens_);
  HX_CHECK(size_t{step.first_column} + step.past_tokens <=
           context_tokens_ - step_tokens_);
  HX_CHECK(step.parents.empty() || step.parents.size() == step_tokens_);
  const auto write = [&]<typename Element>(Element) {
    Advances(step) ? Advance<Element>(step) : WriteAll<Element>(step);
  };
  switch (element_bytes_) {
    case 1:
      write(uint8_t{});
      break;
    case 2:
      write(uint16_t{});
      break;
    case 4:
      write(uint32_t{});
      break;
    default:
      HX_CHECK(element_bytes_ == 8);
      write(uint64_t{});
  }
  if (step_tokens_ == 1)
    last_ = {.past_tokens = step.past_tokens,
             .first_column = step.first_column};
}

template <typename Element>
void MaskWriter::WriteAll(const MaskStep& step) {
  std::fill_n(reinterpret_cast<Element*>(out_.data()),
              step_tokens_ * context_tokens_, static_cast<Element>(hidden_));
  for (size_t row = 0; row < step_tokens_; ++row) WriteRow<Element>(step, row);
}

// Into a row that is all hidden.
template <typename Element>
void MaskWriter::WriteRow(const MaskStep& step, size_t row) {
  auto* past = reinterpret_cast<Element*>(out_.data()) + row * context_tokens_;
  auto* fresh = past + context_tokens_ - step_tokens_;
  const auto visible = static_cast<Element>(visible_);
  if (row < step.first_row) {
    fresh[row] = visible;
    return;
  }
  size_t distance = 0;  // in positions, of a row that this one follows
  for (size_t at = row; at != kNoParent; ++distance) {
    if (distance < window_) fresh[at] = visible;
    const size_t before = at == step.first_row ? kNoParent : at - 1;
    const size_t parent = step.parents.empty() ? before : step.parents[at];
    HX_CHECK(parent == kNoParent || (parent >= step.first_row && parent < at));
    at = parent;
  }
  // The past has distances from `distance` on.
  const size_t seen = window_ - std::min(window_, distance);
  const size_t keys = std::min<size_t>(seen, step.past_tokens);
  std::fill_n(past + step.first_column + step.past_tokens - keys, keys,
              visible);
}

// From the mask of position p - 1 to that of p. Either the last token's column
// becomes visible, behind the others, and with a window column p - w drops out;
// or all columns have moved by one, and the first one appears.
template <typename Element>
void MaskWriter::Advance(const MaskStep& step) {
  auto* columns = reinterpret_cast<Element*>(out_.data()) + step.first_column;
  const size_t past = step.past_tokens;
  if (step.first_column != last_->first_column) {
    if (past < window_) *columns = static_cast<Element>(visible_);
    return;
  }
  if (window_ > 1) columns[past - 1] = static_cast<Element>(visible_);
  if (past >= window_) columns[past - window_] = static_cast<Element>(hidden_);
}

}  // namespace hexllm
