// What `hexllm inspect` says about a checkpoint. Not for machines that load
// it: they use Checkpoint.
#pragma once

#include <string>

#include "base/json.h"
#include "checkpoint/checkpoint.h"

namespace hexllm {

// Several lines of text: format, files, metadata (long values and arrays
// shortened), one line per tensor (name, dtype, shape, bytes), totals. Control
// characters from the file are escaped.
std::string DescribeCheckpoint(const Checkpoint& checkpoint);

// The same facts as an object with the members "format", "files", "metadata"
// (an array of {"key", "type", "value"}, or of {"key", "type", "count",
// "first"} for arrays, which are shortened), "tensors" and "total". Strings are
// kept whole: print it with DumpJson.
Json CheckpointToJson(const Checkpoint& checkpoint);

}  // namespace hexllm
