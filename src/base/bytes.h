// Checked sizes and bounds-checked little-endian reading. Every size, offset or
// count that comes from a file or the network goes through these before it is
// used. Used by all parsers. Not for data we made ourselves.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

#include "base/status.h"

namespace hexllm {

using ByteSpan = std::span<const std::byte>;

// a * b and a + b, or nothing when the result does not fit.
inline std::optional<uint64_t> CheckedMul(uint64_t a, uint64_t b) {
  uint64_t r = 0;
  if (__builtin_mul_overflow(a, b, &r)) return std::nullopt;
  return r;
}
inline std::optional<uint64_t> CheckedAdd(uint64_t a, uint64_t b) {
  uint64_t r = 0;
  if (__builtin_add_overflow(a, b, &r)) return std::nullopt;
  return r;
}

// Rounds `n` up to a multiple of `align` (a power of two), or nothing on
// overflow.
inline std::optional<uint64_t> CheckedAlignUp(uint64_t n, uint64_t align) {
  auto sum = CheckedAdd(n, align - 1);
  if (!sum) return std::nullopt;
  return *sum & ~(align - 1);
}

// The part [offset, offset + bytes) of `data`, or nothing when it does not lie
// inside.
inline std::optional<ByteSpan> Slice(ByteSpan data, uint64_t offset,
                                     uint64_t bytes) {
  if (offset > data.size() || bytes > data.size() - offset) return std::nullopt;
  return data.subspan(static_cast<size_t>(offset), static_cast<size_t>(bytes));
}

inline ByteSpan AsBytes(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}
inline std::string_view AsText(ByteSpan bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// Reads a byte span front to back. Every read that would pass the end fails
// with kBadInput and the offset; the reader then stays where it was. A view:
// the bytes must outlive it. Hosts are little-endian (checked at build time).
class ByteReader {
 public:
  explicit ByteReader(ByteSpan data) : data_(data) {}

  size_t offset() const { return offset_; }
  size_t remaining() const { return data_.size() - offset_; }

  // Reads one little-endian number. Not for bool: a byte may hold more than 0
  // and 1.
  template <typename T>
  Result<T> Read() {
    static_assert(std::is_arithmetic_v<T> && !std::is_same_v<T, bool>);
    if (remaining() < sizeof(T)) return Truncated(sizeof(T));
    T value;
    std::memcpy(&value, data_.data() + offset_, sizeof(T));
    offset_ += sizeof(T);
    return value;
  }

  // Reads `bytes` bytes as a view.
  Result<ByteSpan> ReadBytes(uint64_t bytes) {
    if (bytes > remaining()) return Truncated(bytes);
    ByteSpan out = data_.subspan(offset_, static_cast<size_t>(bytes));
    offset_ += static_cast<size_t>(bytes);
    return out;
  }

  // Reads a string stored as a u64 length and its bytes (the form GGUF and our
  // own blobs use).
  Result<std::string_view> ReadString() {
    const size_t start = offset_;
    HX_ASSIGN_OR_RETURN(const uint64_t length, Read<uint64_t>());
    auto bytes = ReadBytes(length);
    if (!bytes.ok()) {
      offset_ = start;
      return std::move(bytes).error();
    }
    return AsText(*bytes);
  }

 private:
  Error Truncated(uint64_t wanted) const;

  ByteSpan data_;
  size_t offset_ = 0;
};

// Appends little-endian numbers and strings to a byte string: the writing half
// of ByteReader.
class ByteWriter {
 public:
  template <typename T>
  void Write(T value) {
    static_assert(std::is_arithmetic_v<T>);
    char raw[sizeof(T)];
    std::memcpy(raw, &value, sizeof(T));
    out_.append(raw, sizeof(T));
  }
  void WriteBytes(ByteSpan bytes) { out_.append(AsText(bytes)); }
  void WriteString(std::string_view text) {
    Write<uint64_t>(text.size());
    out_.append(text);
  }
  std::string Take() && { return std::move(out_); }

 private:
  std::string out_;
};

}  // namespace hexllm
