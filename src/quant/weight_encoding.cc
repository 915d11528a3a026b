#include "quant/weight_encoding.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/check.h"
#include "base/quote.h"
#include "quant/block_scales.h"
#include "quant/range.h"
#include "quant/weight_rows.h"

namespace hexllm::quant {
namespace {

constexpr float kMostFloat = std::numeric_limits<float>::max();
// The greatest number that rounds to a finite half.
constexpr float kRoundsToHalf = 65519.996f;
// What blocks with f16 scales hold: d of q8_0 times 127; m of q4_1.
constexpr float kMostQ8_0 = 65504.0f * 127;
constexpr float kMostQ4_1 = 65504.0f;
constexpr int kDynamicBlock = 32;  // of q4_1 and q8_0

int64_t Columns(const ir::Constant& weight) {
  return weight.type.shape.empty() ? 1 : weight.type.shape.back();
}

Status CheckBlocks(const ir::Constant& weight, int block) {
  if (Columns(weight) % block == 0) return OkStatus();
  return Error{
      ErrorCode::kUnsupported,
      fmt::format("tensor {}: expected blocks that divide its {} input "
                  "channels, found blocks of {}; give the layer another block "
                  "or a scheme without blocks",
                  Quoted(weight.name), Columns(weight), block)};
}

void Count(const WeightRow& row, WeightReport* report) {
  if (report == nullptr) return;
  ++report->channels;
  if (row.magnitude == 0) ++report->zero_channels;
}

// Scales from min-max's down to a fifth of it, evenly.
class ScaleCandidates {
 public:
  ScaleCandidates(float magnitude, float most, int count)
      : widest_(std::max(magnitude / most, LeastScale(16))), count_(count) {}
  int size() const { return count_; }
  float operator[](int i) const {
    const float shrink =
        1 - 0.8f * static_cast<float>(i) / static_cast<float>(count_);
    return std::max(widest_ * shrink, LeastScale(16));
  }

 private:
  float widest_;
  int count_;
};

int CandidateCount(const LayerSettings& settings) {
  return settings.weight_observer == WeightObserverKind::kMse
             ? std::max(settings.mse_candidates, 1)
             : 1;
}

float SearchRowScale(const WeightRow& row, const ScaleCandidates& scales,
                     float most) {
  float best = scales[0];
  double least = std::numeric_limits<double>::infinity();
  for (int i = 0; scales.size() > 1 && i < scales.size(); ++i) {
    const double error = RoundingError(row.values, {scales[i], most}, least);
    if (error >= least) continue;
    least = error;
    best = scales[i];
  }
  return best;
}

// What one symmetric scheme asks for.
struct Symmetric {
  ir::Encoding encoding;  // without scales
  float most;             // code
};

Symmetric SymmetricOf(int bits) {
  switch (bits) {
    case 4:
      return {{.dtype = DType::kI8, .bits = 4}, 7.0f};
    case 8:
      return {{.dtype = DType::kI8}, 127.0f};
    default:
      HX_CHECK(bits == 16);
      return {{.dtype = DType::kI16}, 32767.0f};
  }
}

// Of schemes without blocks.
bool IsPerChannel(const LayerSettings& settings) {
  return settings.granularity == WeightGranularity::kPerChannel &&
         settings.scheme->weight_bits < 16;
}

Result<ir::Encoding> PerChannel(const ir::Constant& weight,
                                const LayerSettings& settings,
                                WeightReport* report) {
  Symmetric symmetric = SymmetricOf(settings.scheme->weight_bits);
  ir::Encoding& encoding = symmetric.encoding;
  const float most = symmetric.most;
  encoding.axis = 0;
  encoding.scales.reserve(static_cast<size_t>(ir::NumRows(weight)));
  HX_RETURN_IF_ERROR(VisitRows(weight, kMostFloat, [&](const WeightRow& row) {
    Count(row, report);
    const ScaleCandidates scales(row.magnitude, most, CandidateCount(settings));
    encoding.scales.push_back(SearchRowScale(row, scales, most));
  }));
  return std::move(encoding);
}

// Reads the weight twice when it searches: the candidates follow from all of
// it.
Result<ir::Encoding> PerTensor(const ir::Constant& weight,
                               const LayerSettings& settings,
                               WeightReport* report) {
  Symmetric symmetric = SymmetricOf(settings.scheme->weight_bits);
  ir::Encoding& encoding = symmetric.encoding;
  const float most = symmetric.most;
  float magnitude = 0;
  HX_RETURN_IF_ERROR(VisitRows(weight, kMostFloat, [&](const WeightRow& row) {
    Count(row, report);
    magnitude = std::max(magnitude, row.magnitude);
  }));
  const ScaleCandidates scales(magnitude, most, CandidateCount(settings));
  std::vector<double> errors(static_cast<size_t>(scales.size()));
  if (scales.size() > 1) {
    HX_RETURN_IF_ERROR(VisitRows(weight, kMostFloat, [&](const WeightRow& row) {
      for (int i = 0; i < scales.size(); ++i) {
        errors[static_cast<size_t>(i)] +=
            RoundingError(row.values, {scales[i], most},
                          std::numeric_limits<double>::infinity());
      }
    }));
  }
  const auto best = std::min_element(errors.begin(), errors.end());
  encoding.scales = {scales[static_cast<int>(best - errors.begin())]};
  return std::move(encoding);
}

Result<ir::Encoding> PerBlock(const ir::Constant& weight,
                              const LayerSettings& settings,
                              WeightReport* report) {
  HX_RETURN_IF_ERROR(CheckBlocks(weight, settings.block));
  const BlockSearch search = {settings.block, CandidateCount(settings)};
  const auto blocks = static_cast<size_t>(Columns(weight) / settings.block);
  ir::Encoding encoding = WeightFormat(weight, settings);
  HX_RETURN_IF_ERROR(VisitRows(weight, kMostFloat, [&](const WeightRow& row) {
    Count(row, report);
    const auto i = static_cast<size_t>(row.index);
    encoding.scales[i] = ChooseBlockScales(
        row.values, search,
        std::span(encoding.block_scales).subspan(i * blocks, blocks));
  }));
  return encoding;
}

Result<ir::Encoding> Dynamic(const ir::Constant& weight, const Scheme& scheme,
                             WeightReport* report) {
  HX_RETURN_IF_ERROR(CheckBlocks(weight, kDynamicBlock));
  const bool narrow = scheme.weight_bits == 4;
  HX_RETURN_IF_ERROR(
      VisitRows(weight, narrow ? kMostQ4_1 : kMostQ8_0,
                [&](const WeightRow& row) { Count(row, report); }));
  return ir::Encoding{.dtype = narrow ? DType::kQ4_1 : DType::kQ8_0};
}

}  // namespace

Error UnfitNumber(const ir::Constant& weight, const WeightRow& row,
                  float most) {
  size_t column = 0;
  while (column + 1 < row.values.size() && std::abs(row.values[column]) <= most)
    ++column;
  const std::string limit = most == kMostFloat
                                ? "a finite number"
                                : fmt::format("a magnitude up to {:g}", most);
  return {ErrorCode::kBadInput,
          fmt::format("tensor {}: row {}, column {}: expected {}, found {}",
                      Quoted(weight.name), row.index, column, limit,
                      row.values[column])};
}

Result<ir::Encoding> WeightEncoding(const ir::Constant& weight,
                                    const LayerSettings& settings,
                                    WeightReport* report) {
  const Scheme& scheme = *settings.scheme;
  HX_CHECK(IsQuantized(scheme));
  if (scheme.activations == ActivationKind::kFloat16)
    return HalfEncoding(weight);
  if (scheme.activations == ActivationKind::kDynamic)
    return Dynamic(weight, scheme, report);
  if (scheme.block) return PerBlock(weight, settings, report);
  return IsPerChannel(settings) ? PerChannel(weight, settings, report)
                                : PerTensor(weight, settings, report);
}

ir::Encoding WeightFormat(const ir::Constant& weight,
                          const LayerSettings& settings) {
  const Scheme& scheme = *settings.scheme;
  HX_CHECK(IsQuantized(scheme));
  if (scheme.activations == ActivationKind::kFloat16)
    return {.dtype = DType::kF16};
  if (scheme.activations == ActivationKind::kDynamic) {
    return {.dtype = scheme.weight_bits == 4 ? DType::kQ4_1 : DType::kQ8_0};
  }
  ir::Encoding encoding = SymmetricOf(scheme.weight_bits).encoding;
  const auto rows = static_cast<size_t>(ir::NumRows(weight));
  const bool per_row = scheme.block || IsPerChannel(settings);
  if (per_row) encoding.axis = 0;
  encoding.scales.assign(per_row ? rows : 1, 1.0f);
  if (!scheme.block) return encoding;
  encoding.block = settings.block;
  encoding.block_scales.assign(
      rows * static_cast<size_t>(Columns(weight) / settings.block), 1);
  return encoding;
}

Result<ir::Encoding> TensorEncoding(const ir::Constant& tensor) {
  Range range;
  HX_RETURN_IF_ERROR(VisitRows(tensor, kMostFloat, [&](const WeightRow& row) {
    const Range extremes = StatsOf(row.values).extremes;
    range = {std::min(range.min, extremes.min),
             std::max(range.max, extremes.max)};
  }));
  return ActivationEncoding(range, ActivationFormat{.bits = 16});
}

Result<ir::Encoding> HalfEncoding(const ir::Constant& tensor) {
  HX_RETURN_IF_ERROR(VisitRows(tensor, kRoundsToHalf, [](const WeightRow&) {}));
  return ir::Encoding{.dtype = DType::kF16};
}

Status CheckFinite(const ir::Constant& tensor) {
  return VisitRows(tensor, kMostFloat, [](const WeightRow&) {});
}

bool HasWholeBlocks(const ir::Constant& weight) {
  return ir::RowElems(weight) % GetDTypeInfo(DType::kQ8_0).block_elems == 0;
}

bool TakesEncoding(const ir::Constant& weight, const LayerSettings& settings) {
  const bool dynamic = settings.scheme->activations == ActivationKind::kDynamic;
  return IsQuantized(*settings.scheme) && (!dynamic || HasWholeBlocks(weight));
}

bool TakesCodes(const ir::Constant& weight, const LayerSettings& settings) {
  return TakesEncoding(weight, settings) && settings.scheme->weight_bits != 0;
}

}  // namespace hexllm::quant
