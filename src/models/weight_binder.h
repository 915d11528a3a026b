// From tensor names to IR constants: looks tensors up under the checkpoint's
// own spelling, checks their shapes, puts RoPE rows in order, and at the end
// tells which tensors nobody asked for. Used by models/decoder.cc.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "ir/constant.h"
#include "models/model_source.h"

namespace hexllm::models {

// Which tensor is wanted; names are Hugging Face's.
struct WeightRequest {
  std::string name;  // "model.layers.3.self_attn.q_proj.weight"
  Shape shape;
  // For q and k (weight and bias): rows of each head of this size are put into
  // half-split RoPE order. 0 = leave alone.
  int64_t rope_head_dim = 0;
};

// Collects the constants of one model. Tensors are bound once; asking again
// gives the same id. The checkpoint outlives it.
class WeightBinder {
 public:
  WeightBinder(const ModelSource& source, ir::ConstantStore& constants);

  // kBadInput naming file, tensor, expected and found when it is missing or has
  // another shape or a type that is no weight.
  Result<ir::ConstantId> Bind(const WeightRequest& request);
  // Takes note of a tensor that may be there and is not needed.
  void Ignore(std::string_view hf_name);
  bool Has(std::string_view hf_name) const;
  // The stored tensor behind a name, or null.
  const TensorView* Find(std::string_view hf_name) const;
  // kBadInput naming the first tensor of the checkpoint that was neither bound
  // nor ignorable.
  Status CheckAllUsed() const;

 private:
  // "model.layers.3.mlp.up_proj.weight" -> "blk.3.ffn_up.weight" where the
  // checkpoint is GGUF; nothing if it has no name in the format.
  std::optional<std::string> StoredName(std::string_view hf_name) const;
  bool IsIgnorable(const std::string& stored_name) const;

  const ModelSource& source_;
  ir::ConstantStore& constants_;
  std::vector<std::pair<std::string, ir::ConstantId>>
      bound_;                       // by HF name, sorted
  std::vector<std::string> known_;  // stored names, sorted
};

}  // namespace hexllm::models
