#include "base/bytes.h"

#include <fmt/format.h>

#include <bit>

namespace hexllm {

static_assert(std::endian::native == std::endian::little,
              "hexllm reads little-endian files on little-endian hosts");

Error ByteReader::Truncated(uint64_t wanted) const {
  return Error{
      ErrorCode::kBadInput,
      fmt::format(
          "data ends early: expected {} more bytes at offset {}, found {}",
          wanted, offset_, remaining())};
}

}  // namespace hexllm
