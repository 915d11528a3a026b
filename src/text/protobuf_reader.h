// Reads the fields of a serialized protocol buffer in order, without a schema.
// Used for SentencePiece models, so that what the library is given has been
// checked. Not for writing.
// Source: https://protobuf.dev/programming-guides/encoding/
#pragma once

#include <cstdint>
#include <string_view>

#include "base/bytes.h"
#include "base/status.h"

namespace hexllm {

// One field; which member holds its value depends on the type on the wire.
struct ProtobufField {
  uint32_t number = 0;
  uint64_t varint = 0;     // wire type 0
  float fixed32 = 0;       // wire type 5, read as a float
  std::string_view bytes;  // wire type 2; a view
  enum class Wire : uint8_t { kVarint, kFixed64, kBytes, kFixed32 } wire{};
};

class ProtobufReader {
 public:
  explicit ProtobufReader(std::string_view message) : in_(AsBytes(message)) {}

  bool AtEnd() const { return in_.remaining() == 0; }
  // The next field. kBadInput for damage and for groups.
  Result<ProtobufField> Next();

 private:
  Result<uint64_t> Varint();
  ByteReader in_;
};

}  // namespace hexllm
