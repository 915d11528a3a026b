#include "text/protobuf_reader.h"

#include <fmt/format.h>

namespace hexllm {

Result<uint64_t> ProtobufReader::Varint() {
  uint64_t value = 0;
  for (int shift = 0; shift < 64; shift += 7) {
    HX_ASSIGN_OR_RETURN(const auto byte, in_.Read<uint8_t>());
    value |= static_cast<uint64_t>(byte & 0x7F) << shift;
    if ((byte & 0x80) == 0) return value;
  }
  return Error{ErrorCode::kBadInput,
               "protocol buffer: expected a number of at most 64 bits, found "
               "more"};
}

Result<ProtobufField> ProtobufReader::Next() {
  HX_ASSIGN_OR_RETURN(const uint64_t key, Varint());
  ProtobufField field;
  field.number = static_cast<uint32_t>(key >> 3);
  switch (key & 7) {
    case 0: {
      field.wire = ProtobufField::Wire::kVarint;
      HX_ASSIGN_OR_RETURN(field.varint, Varint());
      return field;
    }
    case 1: {
      field.wire = ProtobufField::Wire::kFixed64;
      HX_RETURN_IF_ERROR(in_.ReadBytes(8).status());
      return field;
    }
    case 2: {
      field.wire = ProtobufField::Wire::kBytes;
      HX_ASSIGN_OR_RETURN(const uint64_t size, Varint());
      HX_ASSIGN_OR_RETURN(const ByteSpan bytes, in_.ReadBytes(size));
      field.bytes = AsText(bytes);
      return field;
    }
    case 5: {
      field.wire = ProtobufField::Wire::kFixed32;
      HX_ASSIGN_OR_RETURN(field.fixed32, in_.Read<float>());
      return field;
    }
    default:
      return Error{ErrorCode::kBadInput,
                   fmt::format("protocol buffer: expected a field of wire type "
                               "0, 1, 2 or 5, found {}",
                               key & 7)};
  }
}

}  // namespace hexllm
