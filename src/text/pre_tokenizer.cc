#include "text/pre_tokenizer.h"

#include "text/byte_level.h"

namespace hexllm {
namespace {

// Joins neighbours of equal kind.
void Contiguous(std::vector<MatchedSpan>& cut) {
  size_t kept = 0;
  for (size_t i = 0; i < cut.size(); ++i) {
    if (kept > 0 && cut[kept - 1].is_match == cut[i].is_match) {
      cut[kept - 1].span.end = cut[i].span.end;
    } else {
      cut[kept++] = cut[i];
    }
  }
  cut.resize(kept);
}

// A match joins what is before it, unless that ends in a match of its own.
void MergeWithPrevious(std::vector<MatchedSpan>& cut) {
  size_t kept = 0;
  bool previous_match = false;
  for (size_t i = 0; i < cut.size(); ++i) {
    const bool is_match = cut[i].is_match;
    if (is_match && !previous_match && kept > 0) {
      cut[kept - 1].span.end = cut[i].span.end;
    } else {
      cut[kept++] = cut[i];
    }
    previous_match = is_match;
  }
  cut.resize(kept);
}

// The mirror image of MergeWithPrevious.
void MergeWithNext(std::vector<MatchedSpan>& cut) {
  size_t kept = cut.size();  // the result is built at the back
  bool next_match = false;
  for (size_t i = cut.size(); i-- > 0;) {
    const bool is_match = cut[i].is_match;
    if (is_match && !next_match && kept < cut.size()) {
      cut[kept].span.begin = cut[i].span.begin;
    } else {
      cut[--kept] = cut[i];
    }
    next_match = is_match;
  }
  cut.erase(cut.begin(), cut.begin() + static_cast<std::ptrdiff_t>(kept));
}

// Appends the words that `behavior` makes of a cut, `offset` bytes into the
// text.
void AppendWords(SplitBehavior behavior, uint32_t offset,
                 std::vector<MatchedSpan>& cut, std::vector<TextSpan>& words) {
  switch (behavior) {
    case SplitBehavior::kRemoved:
    case SplitBehavior::kIsolated:
      break;
    case SplitBehavior::kMergedWithPrevious:
      MergeWithPrevious(cut);
      break;
    case SplitBehavior::kMergedWithNext:
      MergeWithNext(cut);
      break;
    case SplitBehavior::kContiguous:
      Contiguous(cut);
      break;
  }
  for (const auto& [span, is_match] : cut) {
    if (span.begin == span.end ||
        (is_match && behavior == SplitBehavior::kRemoved))
      continue;
    words.push_back({span.begin + offset, span.end + offset});
  }
}

// Rewrites every word by `rewrite(word, index, out)`, which appends the new
// spelling.
template <typename Rewrite>
Status RewriteWords(WordList& list, PreTokenizerScratch& scratch,
                    Rewrite rewrite) {
  const size_t max_bytes = MaxRewrittenBytes(list.text.size());
  scratch.text.clear();
  scratch.words.clear();
  for (size_t i = 0; i < list.words.size(); ++i) {
    const size_t begin = scratch.text.size();
    rewrite(list.Word(i), i, scratch.text);
    const size_t end = scratch.text.size();
    if (end > max_bytes) return TextGrewTooLong(max_bytes);
    if (end > begin)
      scratch.words.push_back(
          {static_cast<uint32_t>(begin), static_cast<uint32_t>(end)});
  }
  list.storage.swap(scratch.text);
  list.text = list.storage;
  list.words.swap(scratch.words);
  return OkStatus();
}

void AppendMetaspace(const PreTokenizerStep& step, std::string_view word,
                     bool first, std::string& out) {
  const bool prepend = step.prepend == PrependScheme::kAlways ||
                       (step.prepend == PrependScheme::kFirst && first);
  if (prepend && !word.starts_with(' ') && !word.starts_with(step.content))
    out.append(step.content);
  for (const char c : word) {
    if (c == ' ') {
      out.append(step.content);
    } else {
      out.push_back(c);
    }
  }
}

}  // namespace

Result<PreTokenizer> PreTokenizer::Create(
    std::span<const PreTokenizerStep> steps) {
  PreTokenizer pre_tokenizer;
  if (!steps.empty() && steps.back().kind == PreTokenizerKind::kByteMap) {
    pre_tokenizer.alphabet_ = WordAlphabet::kBytes;
    steps = steps.first(steps.size() - 1);
  }
  for (const PreTokenizerStep& step : steps) {
    Step& compiled = pre_tokenizer.steps_.emplace_back();
    compiled.what = step;
    if (step.kind == PreTokenizerKind::kSplit) {
      HX_ASSIGN_OR_RETURN(compiled.matcher, TextMatcher::Create(step.pattern));
    } else if (step.kind == PreTokenizerKind::kMetaspace && step.split) {
      HX_ASSIGN_OR_RETURN(
          compiled.matcher,
          TextMatcher::Create({PatternKind::kString, step.content}));
      compiled.what.behavior = SplitBehavior::kMergedWithNext;
    }
  }
  return pre_tokenizer;
}

Status PreTokenizer::Cut(WordList& list, RegexScratch& regex,
                         PreTokenizerScratch& scratch) const {
  list.words.clear();
  if (!list.text.empty())
    list.words.push_back({0, static_cast<uint32_t>(list.text.size())});
  for (const Step& step : steps_) {
    switch (step.what.kind) {
      case PreTokenizerKind::kSplit:
        HX_RETURN_IF_ERROR(SplitWords(step, list, regex, scratch));
        break;
      case PreTokenizerKind::kPrefixSpace:
        HX_RETURN_IF_ERROR(RewriteWords(
            list, scratch, [](std::string_view word, size_t, std::string& out) {
              if (!word.starts_with(' ')) out.push_back(' ');
              out.append(word);
            }));
        break;
      case PreTokenizerKind::kByteMap:
        HX_RETURN_IF_ERROR(RewriteWords(
            list, scratch, [](std::string_view word, size_t, std::string& out) {
              AppendByteLevel(word, out);
            }));
        break;
      case PreTokenizerKind::kMetaspace: {
        const bool at_start =
            list.at_start && !list.words.empty() && list.words[0].begin == 0;
        HX_RETURN_IF_ERROR(RewriteWords(
            list, scratch,
            [&](std::string_view word, size_t i, std::string& out) {
              AppendMetaspace(step.what, word, at_start && i == 0, out);
            }));
        if (step.matcher)
          HX_RETURN_IF_ERROR(SplitWords(step, list, regex, scratch));
        break;
      }
    }
  }
  return OkStatus();
}

Status PreTokenizer::SplitWords(const Step& step, WordList& list,
                                RegexScratch& regex,
                                PreTokenizerScratch& scratch) {
  scratch.words.clear();
  for (size_t i = 0; i < list.words.size(); ++i) {
    HX_RETURN_IF_ERROR(step.matcher->Cut(list.Word(i), regex, scratch.cut));
    if (step.what.invert) {
      for (MatchedSpan& span : scratch.cut) span.is_match = !span.is_match;
    }
    AppendWords(step.what.behavior, list.words[i].begin, scratch.cut,
                scratch.words);
  }
  list.words.swap(scratch.words);
  return OkStatus();
}

}  // namespace hexllm
