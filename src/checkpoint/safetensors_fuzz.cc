// Any bytes as a safetensors file and as its index. What is accepted must hold
// the promises of checkpoint/safetensors.h.
#include <cstddef>
#include <cstdint>

#include "checkpoint/safetensors.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const hexllm::ByteSpan bytes = std::as_bytes(std::span(data, size));
  if (const auto file = hexllm::ParseSafetensors(bytes); file.ok()) {
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
  }
  (void)hexllm::ParseSafetensorsIndex(hexllm::AsText(bytes)).ok();
  return 0;
}
