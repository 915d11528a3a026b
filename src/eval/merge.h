// The parts of a run that was shared out (--shard i/n) as one result. Used by
// cli/.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "eval/results.h"

namespace hexllm {

struct ShardPart {
  std::string path;  // for messages
  EvalResult result;
};

// What the parts measured as one result, with the figures of all items; equal
// to that of a run without shards. kBadInput naming the part, and the fact in
// which it differs, unless all are of one run and each shard is there once.
Result<EvalResult> MergeShards(std::vector<ShardPart> parts);

}  // namespace hexllm
