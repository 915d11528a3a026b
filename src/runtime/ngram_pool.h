// Remembers which tokens followed a token: guesses for the next ones. Used by
// runtime/lookahead.h. A cache, not an index: of fixed size, old n-grams give
// way to new ones, and nothing depends on what it has but speed.
//
// N-grams of one first token share a bucket with those of others; a bucket has
// a fixed number of places, and a new n-gram takes the oldest one's:
//
//   bucket = hash(first token)   | before | first | next N - 1 | age |
//                                | before | first | next N - 1 | age | ...
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace hexllm {

// The end of a text: its last token and the one before it (-1 = none).
struct TextEnd {
  int32_t before = -1;
  int32_t last = 0;
};

// What may follow a text.
struct NgramGuess {
  std::span<const int32_t> next;  // [N - 1]
  bool same_before = false;       // it came after both tokens of the text's end
};

// Not thread-safe. Nothing allocates after construction.
class NgramPool {
 public:
  // N = `ngram` >= 2 tokens each; Find gives up to `guesses` >= 1.
  NgramPool(uint32_t ngram, uint32_t guesses);

  // `end.last` was followed by `next` [N - 1].
  void Add(TextEnd end, std::span<const int32_t> next);

  // What followed end.last: up to `guesses` n-grams, those that came after
  // end.before first, then the newest. Valid until the next call.
  std::span<const NgramGuess> Find(TextEnd end);

  void Clear();

 private:
  struct Place {
    int32_t before = -1;
    int32_t first = -1;
    uint64_t age = 0;  // the count of Adds when it was last seen; 0 = empty
  };
  size_t BucketOf(int32_t first) const;
  std::span<int32_t> NextOf(size_t place);

  size_t next_tokens_;  // N - 1
  size_t guesses_;
  size_t ways_;  // places of a bucket
  size_t buckets_;
  uint64_t adds_ = 0;
  std::vector<Place> places_;  // [buckets, ways]
  std::vector<int32_t> next_;  // [buckets, ways, N - 1]
  std::vector<size_t> found_;  // [ways]
  std::vector<NgramGuess> guesses_found_;
};

}  // namespace hexllm
