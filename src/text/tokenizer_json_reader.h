// Reads the text of a tokenizer.json: the vocabulary and the merges, which make
// up nearly all of the file, into tables, and the rest into a small JSON tree.
// Used by ParseTokenizerJson (text/tokenizer_json.cc), which gives it meaning.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/status.h"
#include "text/string_table.h"

namespace hexllm {

struct RawTokenizerJson {
  Json tree;  // everything but model.vocab and model.merges
  // model.vocab as an object: spelling -> id, in the file's order.
  StringTable spellings;
  std::vector<int64_t> ids;
  bool vocab_is_list = false;  // model.vocab is a list, as Unigram models have
                               // it; it is not kept
  // model.merges in both published forms, two strings a merge.
  StringTable merge_halves;
};

// kBadInput for malformed JSON (also: depth, duplicate keys, more than
// kMaxTokenizerJsonMembers members in an object other than the vocabulary), and
// for a vocabulary or merges of the wrong shape.
Result<RawTokenizerJson> ReadTokenizerJson(std::string_view json);

inline constexpr size_t kMaxTokenizerJsonMembers = 1024;

}  // namespace hexllm
