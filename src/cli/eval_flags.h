// What `hexllm eval` was asked for. Used by cmd_eval.cc and eval_*.cc.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "backend/engines.h"
#include "base/json.h"
#include "cli/stage_argument.h"
#include "compile/compiler.h"
#include "eval/results.h"

namespace hexllm::cli {

// The files that results go to; "" = none.
struct EvalOutputs {
  std::string json;
  std::string csv;
  std::string report;  // HTML
};

struct EvalFlags {
  std::string model;
  std::string checkpoint;
  std::vector<std::string> tasks;
  std::vector<std::string> stages;  // empty: the one that the model means
  // "kv", "hybrid", "lookahead"; "" = the largest of kv and prefill
  std::string mode;
  std::string data_dir;
  std::optional<uint32_t> window;
  std::optional<uint32_t> stride;
  std::optional<uint64_t> limit;
  uint32_t num_fewshot = 0;
  bool sqnr = false;
  bool bisect = false;
  double tolerance_db = 10;  // of bisect
  std::string prompt;        // of sqnr and bisect; "" = the built-in one
  std::string ids;           // in its place, as typed
  Shard shard;
  bool sharded = false;  // --shard was given, if only 1/1
  std::string resume;
  bool log_samples = false;
  bool no_self_test = false;
  EvalOutputs outputs;
  models::SourceOptions source;
  TargetOptions target;
  QuantFlags quant;
  BackendOptions engine;
  bool quiet = false;
};

}  // namespace hexllm::cli
