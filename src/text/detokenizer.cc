#include "text/detokenizer.h"

#include "text/piece_decoder.h"
#include "text/utf8.h"

namespace hexllm {

StreamDetokenizer::StreamDetokenizer(const Tokenizer& tokenizer,
                                     SpecialTokens special)
    : tokenizer_(&tokenizer),
      special_(special),
      to_strip_(tokenizer.decoder().strip_count()) {}

std::string_view StreamDetokenizer::Feed(int32_t id) {
  if (emitted_) held_.clear();
  emitted_ = false;
  if (id < 0 || id >= tokenizer_->vocab_size()) return {};
  if (special_ == SpecialTokens::kSkip && tokenizer_->IsSpecial(id)) return {};
  Append(id);
  if (!unfinished_.empty() || held_.ends_with(kReplacementUtf8)) return {};
  emitted_ = true;
  return held_;
}

std::string_view StreamDetokenizer::Finish() {
  if (emitted_) held_.clear();
  FlushUnfinished();
  first_ = true;
  to_strip_ = tokenizer_->decoder().strip_count();
  emitted_ = true;
  return held_;
}

// Adds the share of `id` to held_, and what is not text yet to unfinished_.
void StreamDetokenizer::Append(int32_t id) {
  const PieceDecoder& decoder = tokenizer_->decoder();
  const auto index = static_cast<size_t>(id);
  const bool first = first_;
  first_ = false;
  if (decoder.IsByteToken(index)) {
    unfinished_.append(decoder.Share(index));
    if (IsValidUtf8(unfinished_)) FlushUnfinished();
    return;
  }
  if (decoder.join() != PieceJoin::kBytes) {
    FlushUnfinished();
    if (!first && decoder.join() == PieceJoin::kTextSpaced)
      held_.push_back(' ');
    AppendText(first ? decoder.FirstShare(index) : decoder.Share(index));
    return;
  }
  unfinished_.append(decoder.Share(index));
  const size_t incomplete = IncompleteUtf8Suffix(unfinished_);
  AppendText(
      std::string_view(unfinished_).substr(0, unfinished_.size() - incomplete));
  unfinished_.erase(0, unfinished_.size() - incomplete);
}

// Adds text to held_, less what is stripped from the start.
void StreamDetokenizer::AppendText(std::string_view text) {
  const std::string_view strip = tokenizer_->decoder().strip_char();
  while (to_strip_ > 0 && !text.empty()) {
    if (!text.starts_with(strip)) {
      to_strip_ = 0;
      break;
    }
    text.remove_prefix(strip.size());
    --to_strip_;
  }
  AppendValidUtf8(text, held_);
}

// Turns the bytes of unfinished_ into text, come what may.
void StreamDetokenizer::FlushUnfinished() {
  if (unfinished_.empty()) return;
  const PieceDecoder& decoder = tokenizer_->decoder();
  if (decoder.join() == PieceJoin::kByteFallback && to_strip_ == 0) {
    decoder.AppendByteRun(unfinished_, held_);
  } else if (decoder.join() == PieceJoin::kByteFallback) {
    // At the start of a text; it may allocate.
    std::string text;
    decoder.AppendByteRun(unfinished_, text);
    AppendText(text);
  } else {
    AppendText(unfinished_);
  }
  unfinished_.clear();
}

}  // namespace hexllm
