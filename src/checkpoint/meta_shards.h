// The shards of a checkpoint in Meta's layout, consolidated.00.pth,
// consolidated.01.pth, ...: each holds a slice of every large tensor. Used by
// Checkpoint, which sees one model. Llama checkpoints of up to 8B have one
// shard, and nothing here touches them.
// Source: meta-llama/llama, llama/model.py (ColumnParallelLinear,
// RowParallelLinear, ParallelEmbedding of fairscale).
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/mapped_file.h"
#include "base/status.h"
#include "checkpoint/tensor_view.h"

namespace hexllm {

// True for "consolidated.NN.pth", NN two digits.
bool IsMetaShardName(const std::string& name);

// All shards beside `path`, one of them, in order. kBadInput naming a number
// that is missing.
Result<std::vector<std::string>> MetaShardPaths(const std::string& path);

struct MetaShard {
  std::string path;
  std::vector<TensorView> tensors;  // sorted by name
};

// A whole model. Views lie in `joined` or, for what every shard holds alike
// (norms), in the first shard's mapping.
struct MetaModel {
  MappedFile joined;
  std::vector<TensorView> tensors;  // sorted by name
};

// Joins two or more shards: rows of wq, wk, wv, w1, w3 and output, columns of
// wo and w2, and of tok_embeddings what makes it as wide as output. No mapping
// can show slices of several files as one tensor, so the joined tensors are
// written to a temporary file, which has no name and goes with the mapping.
// kBadInput when the shards do not fit together; kUnsupported naming a tensor
// with no rule; kEnvironment when there is no room for the file.
Result<MetaModel> JoinMetaShards(std::span<const MetaShard> shards);

}  // namespace hexllm
