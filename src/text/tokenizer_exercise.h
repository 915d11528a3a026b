// What the tokenizer fuzz targets do with data that a parser accepted.
#pragma once

#include <string>
#include <utility>

#include "base/check.h"
#include "text/detokenizer.h"
#include "text/tokenizer.h"
#include "text/utf8.h"

namespace hexllm {

// Creates the tokenizer and runs it on a few texts. Errors are fine; what it
// gives must hold together: the blob keeps the data, ids are in range, decoded
// text is UTF-8.
inline void ExerciseTokenizer(TokenizerData data) {
  const std::string blob = SerializeTokenizer(data);
  const auto read = ParseTokenizerBlob(AsBytes(blob));
  HX_CHECK(read.ok() && *read == data);
  const auto tokenizer = Tokenizer::Create(std::move(data));
  if (!tokenizer.ok()) return;
  for (const char* text :
       {"", " ", "Hello  world 123\n\n",
        "it's \xE6\xBC\xA2 e\xCC\x81 \xF0\x9F\x98\x80", "<|im_end|> a\xFF\x80",
        "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
        "aaaaaaaaaa"}) {
    const auto ids = tokenizer->Encode(text, AddSpecial::kYes);
    if (!ids.ok()) continue;
    StreamDetokenizer stream(*tokenizer, SpecialTokens::kSkip);
    for (const int32_t id : *ids) {
      HX_CHECK(id >= 0 && id < tokenizer->vocab_size());
      HX_CHECK(IsValidUtf8(stream.Feed(id)));
    }
    HX_CHECK(IsValidUtf8(stream.Finish()));
    HX_CHECK(IsValidUtf8(tokenizer->Decode(*ids, SpecialTokens::kKeep)));
  }
}

}  // namespace hexllm
