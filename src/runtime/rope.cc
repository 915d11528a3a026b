#include "runtime/rope.h"

#include <cstring>

#include "base/check.h"
#include "runtime/io_codec.h"

namespace hexllm {

namespace {

// Row `position` of a table of rows like `row`.
void CopyRow(ByteSpan table, uint32_t position, std::span<float> row) {
  HX_CHECK((position + size_t{1}) * row.size_bytes() <= table.size());
  std::memcpy(row.data(), table.data() + position * row.size_bytes(),
              row.size_bytes());
}

}  // namespace

RopeRows RopeRowsOf(const artifact::Artifact& artifact, const Role& role) {
  const auto& table =
      artifact.manifest().rope_tables[static_cast<size_t>(role.index)];
  const bool cos = role.kind == RoleKind::kRopeCos;
  RopeRows rows{
      .table = artifact.Segment(cos ? table.cos_segment : table.sin_segment)};
  if (const auto& others = table.long_prompts) {
    rows.above_tokens = others->above_tokens;
    rows.long_table =
        artifact.Segment(cos ? others->cos_segment : others->sin_segment);
  }
  return rows;
}

RopeFiller::RopeFiller(const artifact::IoSpec& spec, const RopeRows& rows,
                       std::span<std::byte> out)
    : spec_(spec),
      rows_(rows),
      table_(rows.table),
      out_(out),
      row_(static_cast<size_t>(spec.shape.at(1))) {}

void RopeFiller::Fill(std::span<const uint32_t> positions) {
  const size_t row_out = row_.size() * ElementBytes(spec_.dtype);
  HX_CHECK(positions.size() * row_out == out_.size());
  for (size_t t = 0; t < positions.size(); ++t) {
    CopyRow(table_, positions[t], row_);
    EncodeFloats(row_, spec_, out_.subspan(t * row_out, row_out));
  }
}

ShiftFiller::ShiftFiller(const artifact::Artifact& artifact,
                         const artifact::IoSpec& spec, std::span<std::byte> out)
    : spec_(spec),
      rows_(RopeRowsOf(artifact, spec.role)),
      cosines_(RopeRowsOf(artifact, {RoleKind::kRopeCos, spec.role.index})),
      out_(out),
      row_(static_cast<size_t>(spec.shape.at(1))),
      factors_(row_.size()) {}

void ShiftFiller::Fill(std::span<const uint32_t> shifts,
                       uint32_t prompt_tokens) {
  const size_t row_out = row_.size() * ElementBytes(spec_.dtype);
  HX_CHECK(shifts.size() * row_out == out_.size());
  const float sign = spec_.role.kind == RoleKind::kRopeSin ? -1.0f : 1.0f;
  CopyRow(cosines_.For(prompt_tokens), 0, factors_);
  for (size_t r = 0; r < shifts.size(); ++r) {
    CopyRow(rows_.For(prompt_tokens), shifts[r], row_);
    for (size_t i = 0; i < row_.size(); ++i) row_[i] *= sign / factors_[i];
    EncodeFloats(row_, spec_, out_.subspan(r * row_out, row_out));
  }
}

}  // namespace hexllm
