// PreTokenizer: cuts a text into the words that byte-pair encoding works on.
// Used by Tokenizer on normalized text.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "text/text_matcher.h"
#include "text/tokenizer_data.h"

namespace hexllm {

// A text and its words. Words are in order, do not overlap and are not empty;
// bytes between them are dropped.
struct WordList {
  WordList() = default;
  WordList(const WordList&) = delete;  // `text` may point into `storage`
  WordList& operator=(const WordList&) = delete;

  std::string_view
      text;  // the caller's text, or `storage` once a step has rewritten it
  std::string storage;
  std::vector<TextSpan> words;
  // The text stands at the very beginning of what the user gave (for
  // PrependScheme::kFirst).
  bool at_start = false;

  std::string_view Word(size_t i) const {
    return text.substr(words[i].begin, words[i].end - words[i].begin);
  }
};

// Reusable buffers of one thread.
struct PreTokenizerScratch {
  std::vector<MatchedSpan> cut;
  std::vector<TextSpan> words;
  std::string text;
};

// How the words are spelled for the model.
enum class WordAlphabet : uint8_t {
  kText,   // as text: the model looks up characters
  kBytes,  // as bytes: the model looks up bytes, by their character of the
           // byte-level alphabet
};

// Immutable and thread-safe.
class PreTokenizer {
 public:
  static Result<PreTokenizer> Create(std::span<const PreTokenizerStep> steps);

  // A byte map that is the last step is left to the model, which saves writing
  // the text in the alphabet.
  WordAlphabet alphabet() const { return alphabet_; }

  // Cuts `list.text` (valid UTF-8) into words; `list.words` is replaced.
  // kBadInput when a pattern exceeds its step limit, or the text grows beyond
  // MaxRewrittenBytes.
  Status Cut(WordList& list, RegexScratch& regex,
             PreTokenizerScratch& scratch) const;

 private:
  struct Step {
    PreTokenizerStep what;
    std::optional<TextMatcher>
        matcher;  // for kSplit, and for a kMetaspace that splits
  };
  static Status SplitWords(const Step& step, WordList& list,
                           RegexScratch& regex, PreTokenizerScratch& scratch);

  std::vector<Step> steps_;
  WordAlphabet alphabet_ = WordAlphabet::kText;
};

}  // namespace hexllm
