// Digests of content: keys and checksums of caches. XXH3-128: two different
// contents never meet by accident, but a forger can make them. Not the
// checksums of artifacts (artifact/format.h).
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>

#include "base/bytes.h"

namespace hexllm {

struct Digest {
  std::array<std::byte, 16> bytes = {};
  auto operator<=>(const Digest&) const = default;
};

// 32 hexadecimal digits.
std::string DigestToHex(const Digest& digest);

// Digests a sequence of fields, in memory that does not grow. Each field counts
// with its length: "ab", "c" is not "a", "bc".
class Hasher {
 public:
  Hasher();
  Hasher(Hasher&&) noexcept;
  Hasher& operator=(Hasher&&) = delete;
  ~Hasher();

  void Add(ByteSpan field);
  void Add(std::string_view field) { Add(AsBytes(field)); }
  void Add(const Digest& digest) { Add(ByteSpan(digest.bytes)); }
  // One number, as its bytes.
  template <typename T>
  void AddNumber(T value) {
    static_assert(std::is_arithmetic_v<T> || std::is_enum_v<T>);
    Add(std::as_bytes(std::span(&value, 1)));
  }
  // A list of numbers, as one field.
  template <typename T>
  void AddNumbers(std::span<const T> values) {
    static_assert(std::is_arithmetic_v<T>);
    Add(std::as_bytes(values));
  }
  // Of all fields so far.
  Digest Finish() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Of bytes alone.
Digest DigestOf(ByteSpan bytes);

}  // namespace hexllm
