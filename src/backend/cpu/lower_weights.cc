#include "backend/cpu/lower_weights.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/check.h"

namespace hexllm::cpu {
namespace {

using ir::Constant;

// The constant in order, widened to f32.
std::vector<float> Widened(const Constant& constant) {
  const auto row_elems = static_cast<size_t>(RowElems(constant));
  std::vector<float> floats(static_cast<size_t>(NumRows(constant)) * row_elems);
  for (size_t row = 0; row < floats.size() / row_elems; ++row) {
    ReadRow(constant, static_cast<int64_t>(row),
            std::span(floats).subspan(row * row_elems, row_elems));
  }
  return floats;
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

// Constants may share a name (two row orders of one tensor), segments may not.
std::string UniqueName(const std::string& name, std::set<std::string>& taken) {
  std::string unique = name;
  for (int i = 2; !taken.insert(unique).second; ++i) {
    unique = fmt::format("{}#{}", name, i);
  }
  return unique;
}

Result<uint32_t> WriteSegment(const Constant& constant, WeightForm form,
                              std::string name, artifact::SegmentSink& sink) {
  artifact::NewSegment segment{.name = std::move(name),
                               .kind = artifact::SegmentKind::kWeights,
                               .lifetime = artifact::Lifetime::kCall};
  if (form == WeightForm::kF32) {
    const std::vector<float> floats = Widened(constant);
    return sink.Add(std::move(segment), std::as_bytes(std::span(floats)));
  }
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

}  // namespace

size_t WeightTable::Use(ir::ConstantId id, WeightForm form) {
  const auto found = std::find_if(
      rows_.begin(), rows_.end(),
      [&](const Row& row) { return row.id == id && row.form == form; });
  if (found != rows_.end()) {
    return static_cast<size_t>(found - rows_.begin());
  }
  const Constant& constant = constants_[id];
  const bool f32 = form == WeightForm::kF32;
  rows_.push_back({.id = id,
                   .form = form,
                   .weight = {.segment = 0,
                              .dtype = f32 ? DType::kF32 : constant.type.dtype,
                              .rows = NumRows(constant),
                              .cols = RowElems(constant)}});
  return rows_.size() - 1;
}

Status WeightTable::Write(artifact::SegmentSink& sink, ProgressSink& progress) {
  progress.Begin("weights", "tensors", static_cast<int64_t>(rows_.size()));
  std::set<std::string> taken;
  for (size_t i = 0; i < rows_.size(); ++i) {
    Row& row = rows_[i];
    const Constant& constant = constants_[row.id];
    const std::string name = UniqueName("weights/" + constant.name, taken);
    auto segment = WriteSegment(constant, row.form, name, sink);
    if (!segment.ok()) return std::move(segment).error().With(name);
    row.weight.segment = *segment;
    progress.Update(static_cast<int64_t>(i) + 1);
  }
  return OkStatus();
}

}  // namespace hexllm::cpu
