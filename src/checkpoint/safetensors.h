// safetensors parser: a span of bytes in, tensor views out; and the index file
// of a sharded checkpoint. Used by Checkpoint. Reads no files itself.
// Source: https://huggingface.co/docs/safetensors, validation rules of its
// reference implementation.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/status.h"
#include "checkpoint/tensor_view.h"

namespace hexllm {

// The longest header that the format allows, in bytes.
inline constexpr uint64_t kMaxSafetensorsHeader = 100'000'000;

// A parsed file. The views borrow from the bytes given to the parser.
struct SafetensorsFile {
  std::vector<TensorView> tensors;              // sorted by name, unique
  std::map<std::string, std::string> metadata;  // "__metadata__"
};

// Parses and validates a whole file: the tensors cover the data section
// exactly, without holes or overlaps. kBadInput for damage, including a zero
// dimension; kUnsupported for element types outside dtype.def (8-bit floats and
// smaller, complex), named with the tensor. Messages do not name the file: the
// caller adds it.
Result<SafetensorsFile> ParseSafetensors(ByteSpan file);

// model.safetensors.index.json.
struct SafetensorsIndex {
  std::map<std::string, std::string> weight_map;  // tensor -> shard file name
  std::vector<std::string> shards;                // sorted, unique
};

// Parses the text of an index. Shard names must be plain file names (kBadInput
// otherwise). `metadata` is ignored: its total_size is wrong in many published
// checkpoints.
Result<SafetensorsIndex> ParseSafetensorsIndex(std::string_view json);

}  // namespace hexllm
