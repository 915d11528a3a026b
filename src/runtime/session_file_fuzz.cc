// Reads hostile session files, as they are and without their checksum.
#include <cstddef>
#include <cstdint>
#include <span>

#include "runtime/session_file.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto file = std::as_bytes(std::span(data, size));
  (void)hexllm::ParseSession(file);
  const auto session = hexllm::ParseUnverifiedSession(file);
  if (!session.ok()) return 0;
  const auto& head = session->head;
  HX_CHECK(head.cached_tokens <= head.ids.size());
  for (size_t l = 0; l < head.k.size(); ++l) {
    HX_CHECK(session->k[l].size() ==
             hexllm::StorageBytes(head.k[l].dtype, head.k[l].shape));
    HX_CHECK(session->v[l].size() ==
             hexllm::StorageBytes(head.v[l].dtype, head.v[l].shape));
  }
  return 0;
}
