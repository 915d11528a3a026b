// PyTorch checkpoints (torch.save since 1.6): a span of bytes in, tensor views
// out. Used by Checkpoint. The file is a zip archive of a pickle, which is read
// as data (checkpoint/pickle.h), and of the tensors' storages, which stay where
// they are. Knows no architecture.
// Source: torch/serialization.py, torch/csrc/inline_container.h.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/status.h"
#include "checkpoint/tensor_view.h"

namespace hexllm {

// A parsed file. The views borrow from the bytes given to the parser; tensors
// that share a storage have the same bytes.
struct PytorchFile {
  std::vector<TensorView> tensors;  // sorted by name, unique
  // "model_args" as JSON, where the file has it: the configuration that
  // llama2.c's training keeps beside the weights.
  std::map<std::string, std::string> metadata;
};

// True when `file` begins as a zip archive does.
bool LooksLikePytorch(ByteSpan file);

// Parses and validates a whole file. The pickle must be a state dict, or a dict
// with one under "model"; names lose the prefix "_orig_mod." that torch.compile
// gives them. kBadInput for damage; kUnsupported for what else a pickle may
// hold, big-endian files and tensors that are not contiguous. Messages do not
// name the file.
Result<PytorchFile> ParsePytorch(ByteSpan file);

}  // namespace hexllm
