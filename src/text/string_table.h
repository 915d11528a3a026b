// A list of byte strings in one allocation, addressed by index. Holds
// vocabularies: a quarter of a million small strings that are loaded at process
// start. Append-only; views are stable until the next Add.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/check.h"

namespace hexllm {

class StringTable {
 public:
  // All bytes must stay below 4 GiB; callers bound their input
  // (kMaxVocabBytes).
  void Add(std::string_view text) {
    bytes_.append(text);
    ends_.push_back(static_cast<uint32_t>(bytes_.size()));
  }
  void Reserve(size_t count, size_t bytes) {
    ends_.reserve(count);
    bytes_.reserve(bytes);
  }

  size_t size() const { return ends_.size(); }
  bool empty() const { return ends_.empty(); }
  size_t total_bytes() const { return bytes_.size(); }

  // The string `index` (< size()). The view lives as long as the table is not
  // changed or destroyed.
  std::string_view operator[](size_t index) const& {
    HX_DCHECK(index < ends_.size());
    const size_t begin = index == 0 ? 0 : ends_[index - 1];
    return std::string_view(bytes_).substr(begin, ends_[index] - begin);
  }
  std::string_view operator[](size_t index) && = delete;

  bool operator==(const StringTable&) const = default;

 private:
  std::string bytes_;
  std::vector<uint32_t> ends_;  // ends_[i] = first byte after string i
};

}  // namespace hexllm
