// Encodes the constants of a module, each once however many graphs read it.
// Part of quant/assign.h.
#pragma once

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/progress.h"
#include "base/status.h"
#include "ir/graph.h"
#include "quant/recipe.h"
#include "quant/weight_search.h"

namespace hexllm::quant {

// What a linear adds to its products.
struct BiasOf {
  ir::ConstantId id = {};  // not valid: nothing, or nothing in codes
  double x_scale = 1;      // of the products' other factor
};

// Methods return the constant that a reader is to use from now on: the one it
// read, or one with the same bytes where another reader wants other numbers.
class ConstantEncoder {
 public:
  // Borrows; all must outlive this. `search` may be null where no layer wants
  // it (WantsSearch; checked).
  ConstantEncoder(ir::ConstantStore& constants, ProgressSink& progress,
                  std::vector<std::string>& warnings, WeightSearch* search)
      : constants_(constants),
        progress_(progress),
        warnings_(warnings),
        search_(search) {}

  // Adds a warning, unless it was given before (by another graph).
  void WarnOnce(std::string warning);

  // Some reader wants this constant as it is stored.
  void KeepPlain(ir::ConstantId id) { plain_.insert(id); }

  // The weight of a linear; see WeightEncoding and WeightSearch. Where codes of
  // a bias are added to its products, the scales leave room for them. Reports
  // progress.
  Result<ir::ConstantId> Weight(ir::ConstantId id, const std::string& layer,
                                const LayerSettings& settings,
                                const BiasOf& bias = {});
  // The bias of a linear, i32 with the scales of its accumulators: one for each
  // of `scales`, or one for all.
  ir::ConstantId Bias(ir::ConstantId id, const std::string& layer,
                      std::vector<float> scales);
  // Any other constant: see TensorEncoding, or HalfEncoding when `half`, as the
  // reader's output is.
  Result<ir::ConstantId> Tensor(ir::ConstantId id, const std::string& reader,
                                bool half);
  // What is `offset` more than the stored numbers, in f32.
  ir::ConstantId Sum(ir::ConstantId id, float offset);

  // NaN or infinity in a constant that stays as stored: kBadInput. Each is read
  // once.
  Status CheckStored(ir::ConstantId id);

 private:
  Status AddBiasRoom(ir::ConstantId id, const std::string& layer,
                     const BiasOf& bias, ir::Encoding& encoding);
  // Without the codes that another reader may have been given.
  ir::Constant Stored(ir::ConstantId id) const;
  ir::ConstantId Place(ir::ConstantId id, ir::Encoding encoding,
                       const std::string& name, ChosenCodes codes = {});

  ir::ConstantStore& constants_;
  ProgressSink& progress_;
  std::vector<std::string>& warnings_;
  WeightSearch* search_;
  std::set<ir::ConstantId> plain_;
  std::set<ir::ConstantId> checked_;
  // What a reader was given for a constant.
  std::map<std::pair<ir::ConstantId, std::string>, ir::ConstantId> given_;
  std::map<ir::ConstantId, std::vector<ir::ConstantId>> copies_;
  std::map<std::pair<ir::ConstantId, float>, ir::ConstantId> sums_;
  int64_t weights_done_ = 0;
};

}  // namespace hexllm::quant
