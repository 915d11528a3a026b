#include "runtime/rope.h"

#include <cstring>

#include "base/check.h"
#include "runtime/io_codec.h"

namespace hexllm {

RopeFiller::RopeFiller(const artifact::IoSpec& spec, const RopeRows& rows,
                       std::span<std::byte> out)
    : spec_(spec),
      rows_(rows),
      table_(rows.table),
      out_(out),
      row_(static_cast<size_t>(spec.shape.at(1))) {}

void RopeFiller::Fill(std::span<const uint32_t> positions) {
  const size_t row_out = row_.size() * ElementBytes(spec_.dtype);
  const size_t row_in = row_.size() * sizeof(float);
  HX_CHECK(positions.size() * row_out == out_.size());
  for (size_t t = 0; t < positions.size(); ++t) {
    HX_CHECK((positions[t] + size_t{1}) * row_in <= table_.size());
    std::memcpy(row_.data(), table_.data() + positions[t] * row_in, row_in);
    EncodeFloats(row_, spec_, out_.subspan(t * row_out, row_out));
  }
}

}  // namespace hexllm
