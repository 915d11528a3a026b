// From tensor names to IR constants: looks tensors up under the checkpoint's
// own spelling, checks their shapes, takes fused ones apart, puts RoPE rows in
// order, and at the end tells which tensors nobody asked for. Used by
// models/decoder*.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "ir/constant.h"
#include "models/model_source.h"

namespace hexllm::models {

// Which tensor is wanted, under our name (TensorAlias::name).
struct WeightRequest {
  std::string name;  // "model.layers.3.self_attn.q_proj.weight"
  Shape shape;
  // For q and k (weight, bias, norm): the first `rotary_dim` rows of each head
  // of `head_dim` are put into half-split RoPE order. 0 = leave alone.
  int64_t head_dim = 0;
  int64_t rotary_dim = 0;
};

// Collects the constants of one model. Tensors are bound once; asking again
// gives the same id. Bytes are those of the checkpoint, also of parts of a
// fused tensor; only vectors whose elements change places are copied. The
// checkpoint outlives it.
class WeightBinder {
 public:
  WeightBinder(const ModelSource& source, ir::ConstantStore& constants);

  // kBadInput naming file, tensor, expected and found when it is missing or has
  // another shape or a type that is no weight.
  Result<ir::ConstantId> Bind(const WeightRequest& request);
  // A constant that no checkpoint has: `values` of `shape`, copied; once for
  // each name.
  ir::ConstantId Make(const std::string& name, Shape shape,
                      std::span<const float> values);
  // Takes note of a tensor that may be there and is not needed.
  void Ignore(std::string_view name);
  // The stored tensor behind a name, or null.
  const TensorView* Find(std::string_view name) const;
  // kBadInput naming the first tensor of the checkpoint that was neither bound
  // nor ignorable.
  Status CheckAllUsed() const;

 private:
  // Where a weight lies in the checkpoint.
  struct Place {
    std::string stored;
    FusedPart part = FusedPart::kWhole;
    int64_t first_row = 0;    // of the part, when shards are put together
    int64_t stored_rows = 0;  // of all parts; 0 = as asked for
  };

  // Where `name` is in bound_, or would be.
  std::vector<std::pair<std::string, ir::ConstantId>>::iterator PlaceOf(
      const std::string& name);
  // The place of "model.layers.3.mlp.up_proj.weight"; nothing when the format
  // has no such tensor.
  std::optional<Place> FindPlace(std::string_view name) const;
  Result<const TensorView*> FindTensor(const WeightRequest& request,
                                       const Place& place) const;
  std::vector<int64_t> RowOrder(const WeightRequest& request,
                                const Place& place) const;
  int64_t RowsOf(FusedPart part) const;
  bool IsIgnorable(const std::string& stored_name) const;

  const ModelSource& source_;
  ir::ConstantStore& constants_;
  std::vector<std::pair<std::string, ir::ConstantId>>
      bound_;                       // by our name, sorted
  std::vector<std::string> known_;  // stored names, sorted
};

}  // namespace hexllm::models
