// StreamDetokenizer: the text of ids that arrive one at a time, in pieces that
// can be printed at once. Used by the token generator. Not for whole sequences:
// see Tokenizer::Decode.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "text/tokenizer.h"

namespace hexllm {

// One stream. Keeps a reference to the tokenizer, which must outlive it. Not
// thread-safe; does not allocate once its buffers have reached their size.
//
// Text is held back while it ends in U+FFFD, that is, inside a character or in
// bytes that are none, and comes with the next token that ends well: never half
// a character, never a U+FFFD that the next token would have completed.
//   ids: "Hi" "\xE2\x82" "\xAC" "!"  ->  "Hi", "", "€", "!"
class StreamDetokenizer {
 public:
  StreamDetokenizer(const Tokenizer& tokenizer, SpecialTokens special);
  StreamDetokenizer(Tokenizer&&, SpecialTokens) = delete;

  // Takes the next id; returns the text that is now complete (valid UTF-8, may
  // be empty). The view is valid until the next call. Ids that no token has
  // count as nothing.
  std::string_view Feed(int32_t id);

  // Ends the stream: returns what was held back, with U+FFFD for what is not a
  // character, and starts afresh.
  std::string_view Finish();

 private:
  void Append(int32_t id);
  void AppendText(std::string_view text);
  void FlushUnfinished();

  const Tokenizer* tokenizer_;
  SpecialTokens special_;
  bool first_ = true;
  bool emitted_ = false;    // held_ was given out; the next call clears it
  int32_t to_strip_ = 0;    // characters still to be stripped from the start
  std::string held_;        // valid text
  std::string unfinished_;  // bytes that are not text yet: part of a character,
                            // or a run of byte tokens
};

}  // namespace hexllm
