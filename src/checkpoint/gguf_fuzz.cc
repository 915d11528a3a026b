// Any bytes as a GGUF file. What is accepted must hold the promises of
// checkpoint/gguf.h; every getter is called on every key.
#include <cstddef>
#include <cstdint>

#include "checkpoint/gguf.h"

namespace {

void ReadAll(const hexllm::GgufMetadata& metadata) {
  for (const hexllm::GgufEntry& entry : metadata.entries()) {
    (void)metadata.GetUint(entry.key).ok();
    (void)metadata.GetFloat(entry.key).ok();
    (void)metadata.GetBool(entry.key).ok();
    (void)metadata.GetString(entry.key).ok();
    (void)metadata.GetIntArray(entry.key).ok();
    (void)metadata.GetFloatArray(entry.key).ok();
    (void)metadata.GetStringArray(entry.key).ok();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const hexllm::ByteSpan bytes = std::as_bytes(std::span(data, size));
  const auto file = hexllm::ParseGguf(bytes);
  if (!file.ok()) return 0;
  ReadAll(file->metadata);
  uint64_t total = 0;
  for (const hexllm::TensorView& tensor : file->tensors) {
    HX_CHECK(hexllm::StorageBytes(tensor.dtype, tensor.shape) ==
             tensor.data.size());
    HX_CHECK(tensor.data.data() >= bytes.data() &&
             tensor.data.data() + tensor.data.size() <=
                 bytes.data() + bytes.size());
    total += tensor.data.size();
  }
  HX_CHECK(total <= size);
  return 0;
}
