// The table of architectures: everything that must be known about one stands in
// its file (llama.cc, ...) and is reached through its row. Adding an
// architecture: one file, one row in models.cc.
#pragma once

#include <span>
#include <string_view>

#include "base/json.h"
#include "base/status.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/gguf.h"
#include "models/decoder_config.h"

namespace hexllm::models {

// How a source format stores the rows of q and k of each head.
enum class RopeLayout {
  kHalfSplit,    // pairs (i, i + R/2): what our graphs use
  kInterleaved,  // pairs (2i, 2i + 1): rows are put in order when the weights
                 // are bound
};

// Which rows of the stored tensor a weight is.
enum class FusedPart { kWhole, kQ, kK, kV, kGate, kUp };

// Where a format keeps a tensor. Names are without ".weight" / ".bias"; "{}" is
// the layer number.
struct TensorAlias {
  // What the rest of the program calls it: the name of Hugging Face's Llama.
  std::string_view name;
  std::string_view stored;
  // Parts of one stored tensor lie in it in the order of the rows.
  FusedPart part = FusedPart::kWhole;
};

// How one format names and arranges the tensors of a family.
struct TensorNaming {
  std::span<const TensorAlias> aliases = {};
  // For tensors without a row in `aliases`: what families of the format share.
  // Empty = these are stored under our names.
  std::span<const TensorAlias> common = {};
  RopeLayout rope_layout = RopeLayout::kHalfSplit;
};

struct ModelSpec {
  std::string_view name;  // "llama"
  std::span<const std::string_view>
      hf_architectures;  // entries of config.json's "architectures"
  std::span<const std::string_view> gguf_architectures =
      {};  // values of general.architecture
  std::span<const std::string_view>
      decoder_models;  // names accepted by --decoder-model
  Result<DecoderConfig> (*from_hf)(const Json& config);
  // Null where llama.cpp has no such architecture.
  Result<DecoderConfig> (*from_gguf)(const Checkpoint& checkpoint,
                                     std::string_view architecture) = nullptr;
  TensorNaming hf_naming = {};
  TensorNaming gguf_naming = {};
  // Tensors that checkpoints of this family carry and that mean nothing to
  // inference (suffixes of names).
  std::span<const std::string_view> ignored_suffixes = {};
};

std::span<const ModelSpec* const> AllModels();
// By entry of "architectures", by general.architecture, by --decoder-model;
// null when there is none.
const ModelSpec* FindByHfArchitecture(std::string_view architecture);
const ModelSpec* FindByGgufArchitecture(std::string_view architecture);
const ModelSpec* FindByDecoderModel(std::string_view name);

}  // namespace hexllm::models
