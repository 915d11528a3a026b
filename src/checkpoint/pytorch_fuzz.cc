// Any bytes as a PyTorch checkpoint, as a zip archive and as a pickle. What is
// accepted must hold the promises of checkpoint/pytorch.h.
#include <cstddef>
#include <cstdint>

#include "checkpoint/pickle.h"
#include "checkpoint/pytorch.h"
#include "checkpoint/zip.h"

namespace {

bool Inside(hexllm::ByteSpan part, hexllm::ByteSpan whole) {
  return part.data() >= whole.data() &&
         part.data() + part.size() <= whole.data() + whole.size();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const hexllm::ByteSpan bytes = std::as_bytes(std::span(data, size));
  if (const auto members = hexllm::ParseZip(bytes); members.ok()) {
    uint64_t total = 0;
    for (const hexllm::ZipMember& member : *members) {
      HX_CHECK(Inside(member.data, bytes));
      total += member.data.size();
    }
    HX_CHECK(total <= size);  // nothing expands
  }
  if (const auto pickle = hexllm::ParsePickle(bytes); pickle.ok()) {
    HX_CHECK(pickle->root < pickle->values.size());
    for (const hexllm::PickleValue& value : pickle->values) {
      for (const uint32_t item : value.items)
        HX_CHECK(item < pickle->values.size());
    }
  }
  if (const auto file = hexllm::ParsePytorch(bytes); file.ok()) {
    for (const hexllm::TensorView& tensor : file->tensors) {
      HX_CHECK(hexllm::StorageBytes(tensor.dtype, tensor.shape) ==
               tensor.data.size());
      HX_CHECK(Inside(tensor.data, bytes));
    }
  }
  return 0;
}
