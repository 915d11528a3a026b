// WikiText as lm-evaluation-harness reads it. Used by eval/task.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace hexllm {

// The documents of a file in WikiText's tokenized form: each begins with a
// level-1 heading (" = Title = ", after an empty line) and reaches to the next
// one. What stands before the first heading is a document unless it is only
// white space. CR LF and CR count as LF.
std::vector<std::string> WikitextDocuments(std::string_view text);

// Takes the spaces of WikiText's tokenization out: " @-@ " becomes "-", " , "
// becomes ", ", brackets and quotes close up.
// Source: lm-evaluation-harness, wikitext_detokenizer (without its second rule,
// which matches the literal text "/' 5/" alone).
std::string WikitextDetokenized(std::string_view document);

// len(re.split(r"\s+", text)) of Python: the harness's count of words.
uint64_t CountWords(std::string_view text);

// True for what Python's \s matches.
bool IsPythonSpace(uint32_t code_point);

}  // namespace hexllm
