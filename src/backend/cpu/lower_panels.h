// Weights in the panels of the integer kernels (kernels/packed.h), made from
// constants with an encoding. Used by cpu/lower*.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/dtype.h"
#include "base/status.h"
#include "ir/constant.h"

namespace hexllm::cpu {

// Depth up to which sums of products of codes are exact.
inline constexpr int64_t kMaxCodeDepth = 65536;

// The type of the panels of a constant [N,K] with an encoding: q4_1 or q8_0;
// or, for codes along axis 0 or of the whole tensor, the narrower of i8 and i16
// that holds every step: (code - zero point) * block scale. Nothing when there
// is no encoding, or no such type.
std::optional<DType> PanelType(const ir::Constant& constant);

struct Panels {
  std::vector<std::byte> bytes;
  std::vector<int32_t> sums;  // of each row's steps; empty for q4_1 and q8_0
};

// Packs a constant that has a PanelType (checked), panel by panel: beside the
// result, 16 rows are in memory. Blocks of the encoding's type go through as
// they are stored; all else is widened and rounded. kBadInput names the row
// whose numbers are not finite.
Result<Panels> PackPanels(const ir::Constant& constant);

}  // namespace hexllm::cpu
