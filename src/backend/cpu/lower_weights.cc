#include "backend/cpu/lower_weights.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "backend/cpu/lower_panels.h"
#include "base/check.h"
#include "base/half.h"
#include "ir/encode.h"

namespace hexllm::cpu {
namespace {

using ir::Constant;

// The constant in order, widened to f32, and rounded to its encoding as the
// interpreter does.
std::vector<float> Widened(const Constant& constant) {
  const auto row_elems = static_cast<size_t>(RowElems(constant));
  std::vector<float> floats(static_cast<size_t>(NumRows(constant)) * row_elems);
  for (size_t row = 0; row < floats.size() / row_elems; ++row) {
    ReadRow(constant, static_cast<int64_t>(row),
            std::span(floats).subspan(row * row_elems, row_elems));
  }
  const auto& encoding = constant.encoding;
  if (encoding && !IsBlockType(encoding->dtype) &&
      encoding->dtype != DType::kI32) {
    RoundToEncoding(*encoding, constant.type.shape, floats);
  }
  return floats;
}

std::vector<uint16_t> Halves(const Constant& constant) {
  std::vector<float> row(static_cast<size_t>(RowElems(constant)));
  std::vector<uint16_t> halves;
  halves.reserve(static_cast<size_t>(NumRows(constant)) * row.size());
  for (int64_t i = 0; i < NumRows(constant); ++i) {
    ReadRow(constant, i, row);
    for (const float value : row) halves.push_back(F32ToF16(value));
  }
  return halves;
}

// The stored rows of the constant, put in order.
std::string Gathered(const Constant& constant) {
  std::string bytes;
  bytes.reserve(constant.rows.size() * RowBytes(constant, 0).size());
  for (int64_t row = 0; row < NumRows(constant); ++row) {
    bytes.append(AsText(RowBytes(constant, row)));
  }
  return bytes;
}

// The scale of each row of a linear's w.
std::vector<float> RowScales(const Constant& w) {
  std::vector<float> scales = w.encoding->scales;
  if (w.encoding->axis < 0) {
    scales.resize(static_cast<size_t>(NumRows(w)), scales[0]);
  }
  return scales;
}

std::vector<int32_t> BiasCodes(const Constant& bias, const Constant& w,
                               float x_scale) {
  const std::vector<float> scales = RowScales(w);
  const std::vector<float> values = Widened(bias);
  HX_CHECK(values.size() == scales.size());
  std::vector<int32_t> codes;
  for (size_t n = 0; n < values.size(); ++n) {
    codes.push_back(ir::EncodeBias(
        values[n],
        static_cast<double>(x_scale) * static_cast<double>(scales[n])));
  }
  return codes;
}

// Constants may share a name (two row orders of one tensor), segments may not.
std::string UniqueName(const std::string& name, std::set<std::string>& taken) {
  std::string unique = name;
  for (int i = 2; !taken.insert(unique).second; ++i) {
    unique = fmt::format("{}#{}", name, i);
  }
  return unique;
}

std::string_view Suffix(WeightForm form) {
  switch (form) {
    case WeightForm::kScales:
      return ".scales";
    case WeightForm::kSums:
      return ".sums";
    case WeightForm::kBiasCodes:
      return ".codes";
    default:
      return "";
  }
}

PlanWeight Describe(const Constant& constant, WeightForm form) {
  PlanWeight weight{.segment = 0,
                    .dtype = constant.type.dtype,
                    .rows = NumRows(constant),
                    .cols = RowElems(constant)};
  switch (form) {
    case WeightForm::kStored:
      break;
    case WeightForm::kF32:
      weight.dtype = DType::kF32;
      break;
    case WeightForm::kF16:
      weight.dtype = DType::kF16;
      break;
    case WeightForm::kPanels:
      weight.dtype = *PanelType(constant);
      weight.layout = WeightLayout::kPanels;
      break;
    case WeightForm::kScales:
      return {.dtype = DType::kF32, .rows = 1, .cols = weight.rows};
    case WeightForm::kSums:
      return {.dtype = DType::kI32, .rows = 1, .cols = weight.rows};
    case WeightForm::kBiasCodes:
      return {.dtype = DType::kI32, .rows = 1, .cols = weight.cols};
  }
  return weight;
}

template <typename T>
Result<uint32_t> AddCopy(const std::vector<T>& numbers, std::string name,
                         artifact::SegmentSink& sink) {
  return sink.Add({.name = std::move(name),
                   .kind = artifact::SegmentKind::kWeights,
                   .lifetime = artifact::Lifetime::kCall},
                  std::as_bytes(std::span(numbers)));
}

Result<uint32_t> AddStored(const Constant& constant, std::string name,
                           artifact::SegmentSink& sink) {
  artifact::NewSegment segment{.name = std::move(name),
                               .kind = artifact::SegmentKind::kWeights,
                               .lifetime = artifact::Lifetime::kCall};
  if (!constant.rows.empty()) {
    return sink.Add(std::move(segment), AsBytes(Gathered(constant)));
  }
  if (constant.owned == nullptr) {
    segment.lifetime = artifact::Lifetime::kArtifact;
  }
  const auto bytes = StorageBytes(constant.type.dtype, constant.type.shape);
  HX_CHECK(bytes.has_value() && *bytes <= constant.bytes.size());
  return sink.Add(std::move(segment), constant.bytes.first(*bytes));
}

bool SameRows(const Constant& a, const Constant& b) {
  return a.type == b.type && a.bytes.data() == b.bytes.data() &&
         a.bytes.size() == b.bytes.size() && a.rows == b.rows;
}

}  // namespace

size_t WeightTable::Use(const WeightUse& use) {
  const auto found =
      std::find_if(rows_.begin(), rows_.end(),
                   [&](const Row& row) { return row.use == use; });
  if (found != rows_.end()) {
    return static_cast<size_t>(found - rows_.begin());
  }
  rows_.push_back(
      {.use = use, .weight = Describe(constants_[use.id], use.form)});
  return rows_.size() - 1;
}

size_t WeightTable::UseTable(ir::ConstantId id) {
  const Constant& table = constants_[id];
  for (size_t i = 0; i < constants_.size(); ++i) {
    const ir::ConstantId twin{static_cast<int32_t>(i)};
    const auto& encoding = constants_[twin].encoding;
    if (encoding && IsBlockType(encoding->dtype) &&
        encoding->dtype == table.type.dtype &&
        SameRows(constants_[twin], table)) {
      return Use({.id = twin, .form = WeightForm::kPanels});
    }
  }
  return Use({.id = id, .form = WeightForm::kStored});
}

Result<uint32_t> WeightTable::WriteRow(const Row& row, std::string name,
                                       artifact::SegmentSink& sink) {
  const Constant& constant = constants_[row.use.id];
  switch (row.use.form) {
    case WeightForm::kStored:
      return AddStored(constant, std::move(name), sink);
    case WeightForm::kF32:
      return AddCopy(Widened(constant), std::move(name), sink);
    case WeightForm::kF16:
      return AddCopy(Halves(constant), std::move(name), sink);
    case WeightForm::kScales:
      return AddCopy(RowScales(constant), std::move(name), sink);
    case WeightForm::kSums:
      // Panels come first in the table.
      return AddCopy(sums_.at(row.use.id), std::move(name), sink);
    case WeightForm::kBiasCodes:
      return AddCopy(
          BiasCodes(constant, constants_[row.use.linear], row.use.x_scale),
          std::move(name), sink);
    case WeightForm::kPanels:
      break;
  }
  HX_ASSIGN_OR_RETURN(Panels panels, PackPanels(constant));
  sums_[row.use.id] = std::move(panels.sums);
  return AddCopy(panels.bytes, std::move(name), sink);
}

Status WeightTable::Write(artifact::SegmentSink& sink, ProgressSink& progress) {
  progress.Begin("weights", "tensors", static_cast<int64_t>(rows_.size()));
  std::set<std::string> taken;
  for (size_t i = 0; i < rows_.size(); ++i) {
    Row& row = rows_[i];
    const std::string name =
        UniqueName(fmt::format("weights/{}{}", constants_[row.use.id].name,
                               Suffix(row.use.form)),
                   taken);
    auto segment = WriteRow(row, name, sink);
    if (!segment.ok()) return std::move(segment).error().With(name);
    row.weight.segment = *segment;
    progress.Update(static_cast<int64_t>(i) + 1);
  }
  return OkStatus();
}

}  // namespace hexllm::cpu
