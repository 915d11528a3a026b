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

void MaskWriter::Write(MaskStep step) {
  HX_CHECK(step.first_row < step_tokens_);
  HX_CHECK(step.past_tokens <= context_tokens_ - step_tokens_);
  const bool advances =
      step_tokens_ == 1 && last_ && step.past_tokens == last_->past_tokens + 1;
  if (last_ == step) return;
  switch (element_bytes_) {
    case 1:
      advances ? Advance<uint8_t>(step.past_tokens) : WriteAll<uint8_t>(step);
      break;
    case 2:
      advances ? Advance<uint16_t>(step.past_tokens) : WriteAll<uint16_t>(step);
      break;
    case 4:
      advances ? Advance<uint32_t>(step.past_tokens) : WriteAll<uint32_t>(step);
      break;
    default:
      HX_CHECK(element_bytes_ == 8);
      advances ? Advance<uint64_t>(step.past_tokens) : WriteAll<uint64_t>(step);
  }
  last_ = step;
}

template <typename Element>
void MaskWriter::WriteAll(MaskStep step) {
  auto* out = reinterpret_cast<Element*>(out_.data());
  const auto visible = static_cast<Element>(visible_);
  std::fill_n(out, step_tokens_ * context_tokens_,
              static_cast<Element>(hidden_));
  const size_t past_columns = context_tokens_ - step_tokens_;
  for (size_t row = 0; row < step_tokens_; ++row) {
    Element* past = out + row * context_tokens_;
    Element* fresh = past + past_columns;
    if (row < step.first_row) {
      fresh[row] = visible;
      continue;
    }
    const size_t position = step.past_tokens + row - step.first_row;
    const size_t first_key = position + 1 - std::min(window_, position + 1);
    for (size_t k = first_key; k < step.past_tokens; ++k) past[k] = visible;
    const size_t first_new = std::max<size_t>(first_key, step.past_tokens);
    for (size_t k = first_new; k <= position; ++k)
      fresh[step.first_row + k - step.past_tokens] = visible;
  }
}

// From the mask of position p - 1 to that of p: column p - 1 becomes a past
// one, and with a window column p - w drops out.
template <typename Element>
void MaskWriter::Advance(uint32_t past_tokens) {
  auto* out = reinterpret_cast<Element*>(out_.data());
  if (window_ > 1) out[past_tokens - 1] = static_cast<Element>(visible_);
  if (past_tokens >= window_)
    out[past_tokens - window_] = static_cast<Element>(hidden_);
}

}  // namespace hexllm
