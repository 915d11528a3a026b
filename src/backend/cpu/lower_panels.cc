#include "backend/cpu/lower_panels.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <span>

#include "backend/cpu/kernels/packed.h"
#include "base/bytes.h"
#include "base/check.h"
#include "base/quantize.h"
#include "ir/encode.h"

namespace hexllm::cpu {
namespace {

using ir::Constant;
using ir::Encoding;

// The largest |(code - zero point) * block scale|.
int64_t LargestStep(const Encoding& encoding) {
  const ir::CodeRange range = CodesOf(encoding);
  const auto [least, most] = std::minmax_element(encoding.zero_points.begin(),
                                                 encoding.zero_points.end());
  const bool zero = encoding.zero_points.empty();
  const int64_t above = int64_t{range.most} - (zero ? 0 : *least);
  const int64_t below = (zero ? 0 : *most) - int64_t{range.least};
  const int64_t factor = encoding.block_scales.empty()
                             ? 1
                             : *std::max_element(encoding.block_scales.begin(),
                                                 encoding.block_scales.end());
  return factor * std::max(above, below);
}

// Reads `row`, widened. kBadInput when a number is not finite.
Status ReadFinite(const Constant& constant, int64_t row,
                  std::span<float> values) {
  ReadRow(constant, row, values);
  const auto finite = [](float value) { return std::isfinite(value); };
  if (std::all_of(values.begin(), values.end(), finite)) return OkStatus();
  return Error{ErrorCode::kBadInput,
               fmt::format("row {}: a weight is not a finite number; the "
                           "checkpoint cannot be quantized",
                           row)};
}

// --- Block types ---

// One row as blocks of the encoding's type.
Status ReadBlocks(const Constant& constant, int64_t row,
                  std::span<std::byte> out) {
  const DType dtype = constant.encoding->dtype;
  if (constant.type.dtype == dtype) {
    const ByteSpan stored = RowBytes(constant, row);
    std::copy(stored.begin(), stored.end(), out.begin());
    return OkStatus();
  }
  std::vector<float> values(static_cast<size_t>(RowElems(constant)));
  HX_RETURN_IF_ERROR(ReadFinite(constant, row, values));
  QuantizeRow(dtype, values, out);
  return OkStatus();
}

Result<Panels> PackBlocks(const Constant& constant) {
  const DType dtype = constant.encoding->dtype;
  const int64_t n = NumRows(constant);
  const int64_t k = RowElems(constant);
  const auto row_bytes = static_cast<size_t>(StorageBytes(dtype, {k}).value());
  const auto panel_bytes = static_cast<size_t>(PackedPanelBytes(dtype, k));
  Panels panels;
  panels.bytes.resize(static_cast<size_t>(PackedBytes(dtype, n, k)));
  std::vector<std::byte> rows(kPackedRows * row_bytes);
  std::span<std::byte> rest = panels.bytes;
  for (int64_t first = 0; first < n; first += kPackedRows) {
    const auto count = static_cast<size_t>(std::min(kPackedRows, n - first));
    for (size_t i = 0; i < count; ++i) {
      HX_RETURN_IF_ERROR(
          ReadBlocks(constant, first + static_cast<int64_t>(i),
                     std::span(rows).subspan(i * row_bytes, row_bytes)));
    }
    PackPanel(dtype, k, std::span(rows).first(count * row_bytes),
              rest.first(panel_bytes));
    rest = rest.subspan(panel_bytes);
  }
  return panels;
}

// --- Steps of a grid ---

// Writes the steps of row `row`.
Status ReadSteps(const Constant& constant, int64_t row,
                 std::span<int32_t> steps) {
  const Encoding& encoding = *constant.encoding;
  std::vector<float> values(steps.size());
  HX_RETURN_IF_ERROR(ReadFinite(constant, row, values));
  EncodeRow(encoding, row, values, steps);
  const auto index = static_cast<size_t>(encoding.axis < 0 ? 0 : row);
  if (!encoding.zero_points.empty()) {
    for (int32_t& step : steps) step -= encoding.zero_points[index];
  }
  if (encoding.block == 0) return OkStatus();
  const auto block = static_cast<size_t>(encoding.block);
  const size_t blocks = steps.size() / block;
  for (size_t i = 0; i < steps.size(); ++i) {
    steps[i] *= encoding.block_scales[index * blocks + i / block];
  }
  return OkStatus();
}

// One panel's rows as signed bytes, by plane.
class StepPanel {
 public:
  StepPanel(int64_t k, size_t planes)
      : k_(static_cast<size_t>(k)),
        planes_(planes, std::vector<std::byte>(kPackedRows * k_)) {}

  // A step is 256 * high + low + 128, or low alone.
  void SetRow(size_t row, std::span<const int32_t> steps) {
    const bool two = planes_.size() == 2;
    for (size_t i = 0; i < k_; ++i) {
      const size_t at = row * k_ + i;
      const int32_t low = two ? (steps[i] & 255) - 128 : steps[i];
      planes_.back()[at] = static_cast<std::byte>(low & 255);
      if (two) {
        planes_.front()[at] = static_cast<std::byte>((steps[i] >> 8) & 255);
      }
    }
  }
  ByteSpan Rows(size_t plane, size_t count) const {
    return std::span(planes_[plane]).first(count * k_);
  }

 private:
  size_t k_;
  std::vector<std::vector<std::byte>> planes_;
};

Result<Panels> PackSteps(const Constant& constant, size_t planes) {
  const int64_t n = NumRows(constant);
  const int64_t k = RowElems(constant);
  const auto panel_bytes = static_cast<size_t>(PackedPanelBytes(DType::kI8, k));
  const auto plane_bytes = static_cast<size_t>(PackedBytes(DType::kI8, n, k));
  Panels panels;
  panels.bytes.resize(planes * plane_bytes);
  StepPanel panel(k, planes);
  std::vector<int32_t> steps(static_cast<size_t>(k));
  for (int64_t first = 0; first < n; first += kPackedRows) {
    const auto count = static_cast<size_t>(std::min(kPackedRows, n - first));
    for (size_t i = 0; i < count; ++i) {
      HX_RETURN_IF_ERROR(
          ReadSteps(constant, first + static_cast<int64_t>(i), steps));
      panel.SetRow(i, steps);
      panels.sums.push_back(std::accumulate(steps.begin(), steps.end(), 0));
    }
    const size_t at = static_cast<size_t>(first / kPackedRows) * panel_bytes;
    for (size_t p = 0; p < planes; ++p) {
      PackPanel(
          DType::kI8, k, panel.Rows(p, count),
          std::span(panels.bytes).subspan(p * plane_bytes + at, panel_bytes));
    }
  }
  return panels;
}

}  // namespace

std::optional<DType> PanelType(const Constant& constant) {
  if (!constant.encoding) return std::nullopt;
  const Encoding& encoding = *constant.encoding;
  if (IsBlockType(encoding.dtype)) {
    if (!IsQuantizable(encoding.dtype)) return std::nullopt;
    return encoding.dtype;
  }
  if (!HasCodes(encoding) || encoding.axis > 0 ||
      RowElems(constant) > kMaxCodeDepth) {
    return std::nullopt;
  }
  const int64_t largest = LargestStep(encoding);
  if (largest <= 127) return DType::kI8;
  if (largest <= 32767) return DType::kI16;
  return std::nullopt;
}

Result<Panels> PackPanels(const Constant& constant) {
  const auto type = PanelType(constant);
  HX_CHECK(type.has_value());
  if (IsBlockType(*type)) return PackBlocks(constant);
  return PackSteps(constant, type == DType::kI16 ? 2 : 1);
}

}  // namespace hexllm::cpu
