// A checkpoint together with its configuration as read by one architecture:
// what models/ turns into graphs.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/status.h"
#include "checkpoint/checkpoint.h"
#include "models/decoder_config.h"
#include "models/model.h"

namespace hexllm::models {

// What the user may say beside the path.
struct SourceOptions {
  std::string config_path = {};  // replaces config.json when not empty
  // "KEY=VALUE" on top of config.json or params.json: VALUE is JSON, or a bare
  // string; a KEY "a.b" is the member b of the object a. kUsage for a key that
  // the model is not read from.
  std::vector<std::string> overrides = {};
  std::string params_path = {};     // replaces params.json (Meta's layout)
  std::string tokenizer_path = {};  // replaces the tokenizer beside the weights
  std::string decoder_model = {};   // names the model where the files cannot;
                                    // empty = by the files
};

// Owns the checkpoint; constants made from it point into it. Immutable.
struct ModelSource {
  std::shared_ptr<const Checkpoint> checkpoint;
  const ModelSpec* spec = nullptr;
  DecoderConfig config;
  std::string name;     // for people: GGUF's general.name, or the folder's name
  TensorNaming naming;  // of the checkpoint's format
  std::string tokenizer_path;  // as in SourceOptions
  // Of a rewritten checkpoint: which model it is, from the id of the one before
  // and what was done to it. Unset: told by the checkpoint.
  std::optional<uint64_t> id = {};
};

// Opens `path` and reads its configuration. kUnsupported names an architecture
// that has no row in models.cc.
Result<ModelSource> OpenModel(const std::string& path,
                              const SourceOptions& options);

}  // namespace hexllm::models
