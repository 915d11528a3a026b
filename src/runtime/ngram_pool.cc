#include "runtime/ngram_pool.h"

#include <algorithm>
#include <tuple>

#include "base/check.h"

namespace hexllm {
namespace {

constexpr size_t kPoolBytes = size_t{1} << 20;

}  // namespace

NgramPool::NgramPool(uint32_t ngram, uint32_t guesses)
    : next_tokens_(ngram - 1),
      guesses_(guesses),
      ways_(2 * size_t{guesses}),
      buckets_(std::max<size_t>(
          1, kPoolBytes /
                 (ways_ * (sizeof(Place) + next_tokens_ * sizeof(int32_t))))),
      places_(buckets_ * ways_),
      next_(places_.size() * next_tokens_) {
  HX_CHECK(ngram >= 2 && guesses >= 1);
  found_.reserve(ways_);
  guesses_found_.reserve(guesses_);
}

size_t NgramPool::BucketOf(int32_t first) const {
  // Fibonacci hashing: neighbouring ids land far apart.
  const uint32_t hash = static_cast<uint32_t>(first) * 2654435769U;
  return (hash >> 8) % buckets_ * ways_;
}

std::span<int32_t> NgramPool::NextOf(size_t place) {
  return std::span(next_).subspan(place * next_tokens_, next_tokens_);
}

void NgramPool::Add(TextEnd end, std::span<const int32_t> next) {
  HX_CHECK(next.size() == next_tokens_);
  const size_t begin = BucketOf(end.last);
  size_t taken = begin;
  for (size_t i = begin; i < begin + ways_; ++i) {
    const std::span<int32_t> there = NextOf(i);
    if (places_[i].age > 0 && places_[i].first == end.last &&
        std::equal(next.begin(), next.end(), there.begin())) {
      taken = i;
      break;
    }
    if (places_[i].age < places_[taken].age) taken = i;
  }
  places_[taken] = {.before = end.before, .first = end.last, .age = ++adds_};
  std::copy(next.begin(), next.end(), NextOf(taken).begin());
}

std::span<const NgramGuess> NgramPool::Find(TextEnd end) {
  const size_t begin = BucketOf(end.last);
  found_.clear();
  for (size_t i = begin; i < begin + ways_; ++i) {
    if (places_[i].age > 0 && places_[i].first == end.last) found_.push_back(i);
  }
  const auto rank = [&](size_t place) {
    return std::tuple(places_[place].before == end.before, places_[place].age);
  };
  std::sort(found_.begin(), found_.end(),
            [&](size_t a, size_t b) { return rank(a) > rank(b); });
  guesses_found_.clear();
  for (size_t i = 0; i < std::min(guesses_, found_.size()); ++i) {
    const size_t place = found_[i];
    guesses_found_.push_back(
        {NextOf(place), places_[place].before == end.before});
  }
  return guesses_found_;
}

void NgramPool::Clear() {
  std::fill(places_.begin(), places_.end(), Place{});
  adds_ = 0;
}

}  // namespace hexllm
