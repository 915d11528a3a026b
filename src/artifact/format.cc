#include "artifact/format.h"

#include <xxhash.h>

namespace hexllm::artifact {

uint64_t Checksum(ByteSpan bytes) {
  return XXH3_64bits(bytes.data(), bytes.size());
}

uint64_t HeaderChecksum(const FileHeader& header) {
  return Checksum(std::as_bytes(std::span(&header, 1))
                      .first(offsetof(FileHeader, header_checksum)));
}

}  // namespace hexllm::artifact
