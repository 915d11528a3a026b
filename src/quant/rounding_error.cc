#include "quant/rounding_error.h"

#include <utility>
#include <vector>

#include "base/check.h"
#include "ir/encode.h"
#include "ir/float_constant.h"
#include "quant/weight_encoding.h"

namespace hexllm::quant {
namespace {

// S sums of products, the S numbers of one input channel side by side.
class ChannelSums {
 public:
  // `inputs` [S,K].
  ChannelSums(std::span<const float> inputs, size_t channels)
      : rows_(inputs.size() / channels), by_channel_(inputs.size()) {
    for (size_t s = 0; s < rows_; ++s) {
      for (size_t k = 0; k < channels; ++k)
        by_channel_[k * rows_ + s] = inputs[s * channels + k];
    }
    sums_.resize(rows_);
  }

  // The energy of x w, w [K].
  double EnergyOf(std::span<const float> w) {
    std::fill(sums_.begin(), sums_.end(), 0.0f);
    float* const sums = sums_.data();
    for (size_t k = 0; k < w.size(); ++k) {
      const float factor = w[k];
      const float* const x = by_channel_.data() + k * rows_;
      for (size_t s = 0; s < rows_; ++s) sums[s] += factor * x[s];
    }
    double energy = 0;
    for (const float sum : sums_)
      energy += static_cast<double>(sum) * static_cast<double>(sum);
    return energy;
  }

 private:
  size_t rows_;
  std::vector<float> by_channel_;  // [K,S]
  std::vector<float> sums_;        // [S]
};

}  // namespace

Result<ir::Constant> RoundedWeight(const ir::Constant& weight,
                                   const LayerSettings& settings) {
  LayerSettings simple = settings;
  if (simple.weight_observer == WeightObserverKind::kSeqMse)
    simple.weight_observer = WeightObserverKind::kMse;
  HX_ASSIGN_OR_RETURN(const ir::Encoding encoding,
                      WeightEncoding(weight, simple, nullptr));
  std::vector<float> values = ir::ReadAllRows(weight);
  ir::RoundToEncoding(encoding, weight.type.shape, values);
  return ir::MakeFloatConstant(weight.name, weight.type.shape, values);
}

ir::Constant SampleRows(const ir::Constant& weight, int64_t most) {
  const int64_t count = ir::NumRows(weight);
  if (count <= most) return weight;
  ir::Constant sample = weight;
  sample.rows.clear();
  for (int64_t i = 0; i < most; ++i) {
    const int64_t row = i * count / most;
    sample.rows.push_back(
        weight.rows.empty() ? row : weight.rows[static_cast<size_t>(row)]);
  }
  sample.type.shape.front() = most;
  return sample;
}

OutputError OutputErrorOf(const ir::Constant& weight,
                          const ir::Constant& rounded,
                          std::span<const float> inputs) {
  const auto columns = static_cast<size_t>(ir::RowElems(weight));
  HX_CHECK(inputs.size() % columns == 0 &&
           rounded.type.shape == weight.type.shape);
  ChannelSums sums(inputs, columns);
  std::vector<float> row(columns), error(columns);
  OutputError result;
  for (int64_t i = 0; i < ir::NumRows(weight); ++i) {
    ir::ReadRow(weight, i, row);
    ir::ReadRow(rounded, i, error);
    for (size_t k = 0; k < columns; ++k) error[k] = row[k] - error[k];
    result.signal += sums.EnergyOf(row);
    result.noise += sums.EnergyOf(error);
  }
  return result;
}

}  // namespace hexllm::quant
