#include "ir/check_encoding.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/bytes.h"
#include "ir/axes.h"
#include "ir/encode.h"

namespace hexllm::ir {
namespace {

constexpr DType kCodeTypes[] = {DType::kU8, DType::kU16, DType::kI8,
                                DType::kI16, DType::kI32};
constexpr uint8_t kMostBlockScale = 16;  // as in ExecuTorch's LPBQ: 4 bits

Error Bad(std::string message) {
  return Error{ErrorCode::kBadInput, "encoding: " + std::move(message)};
}

// Encodings that are a type alone: nothing else may be said.
Status CheckPlain(const Encoding& encoding) {
  const Encoding plain{.dtype = encoding.dtype};
  if (encoding == plain) return OkStatus();
  return Bad(fmt::format(
      "{} has no bits, axis, block, scales or zero points of its own",
      DTypeName(encoding.dtype)));
}

Status CheckBlockType(const Encoding& encoding, const TensorType& type) {
  const bool known =
      encoding.dtype == DType::kQ4_1 || encoding.dtype == DType::kQ8_0;
  if (!known)
    return Bad(fmt::format("no codes of type {}", DTypeName(encoding.dtype)));
  if (type.shape.size() != 2 || !StorageBytes(encoding.dtype, type.shape)) {
    return Bad(fmt::format("{} expected rows of whole blocks, found {}",
                           DTypeName(encoding.dtype), TypeToString(type)));
  }
  return CheckPlain(encoding);
}

Status CheckCodes(const Encoding& encoding) {
  const DType dtype = encoding.dtype;
  if (std::find(std::begin(kCodeTypes), std::end(kCodeTypes), dtype) ==
      std::end(kCodeTypes)) {
    return Bad(fmt::format("no codes of type {}", DTypeName(dtype)));
  }
  const auto all = static_cast<int32_t>(8 * GetDTypeInfo(dtype).block_bytes);
  if (encoding.bits == 0) return OkStatus();
  if (encoding.bits >= 2 && encoding.bits <= all) return OkStatus();
  return Bad(fmt::format("expected 0 or 2 to {} bits of {}, found {}", all,
                         DTypeName(dtype), encoding.bits));
}

// Scales are per index of the axis, or one.
Status CheckScales(const Encoding& encoding, const TensorType& type) {
  const auto rank = static_cast<int32_t>(type.shape.size());
  if (encoding.axis < -1 || encoding.axis >= rank)
    return Bad(fmt::format("no axis {}", encoding.axis));
  const size_t wanted =
      encoding.axis < 0
          ? 1
          : static_cast<size_t>(type.shape[static_cast<size_t>(encoding.axis)]);
  if (encoding.scales.size() != wanted) {
    return Bad(fmt::format("expected {} scales, found {}", wanted,
                           encoding.scales.size()));
  }
  const auto is_good = [](float scale) {
    return std::isfinite(scale) && scale > 0;
  };
  if (std::all_of(encoding.scales.begin(), encoding.scales.end(), is_good))
    return OkStatus();
  return Bad("a scale is not a positive finite number");
}

Status CheckZeroPoints(const Encoding& encoding) {
  if (encoding.zero_points.empty()) return OkStatus();
  if (encoding.block > 0) return Bad("blocks have no zero points");
  if (encoding.zero_points.size() != encoding.scales.size()) {
    return Bad(fmt::format("expected {} zero points, found {}",
                           encoding.scales.size(),
                           encoding.zero_points.size()));
  }
  const CodeRange range = CodesOf(encoding);
  for (const int32_t zero_point : encoding.zero_points) {
    if (zero_point >= range.least && zero_point <= range.most) continue;
    return Bad(fmt::format("expected zero points within {} .. {}, found {}",
                           range.least, range.most, zero_point));
  }
  return OkStatus();
}

Status CheckBlocks(const Encoding& encoding, const TensorType& type) {
  if (encoding.block == 0) {
    if (encoding.block_scales.empty()) return OkStatus();
    return Bad("block scales without blocks");
  }
  const auto rank = static_cast<int32_t>(type.shape.size());
  if (encoding.block < 0)
    return Bad(fmt::format("negative block {}", encoding.block));
  if (encoding.axis < 0 || encoding.axis == rank - 1 ||
      type.shape.back() % encoding.block != 0) {
    return Bad(fmt::format(
        "blocks of {} do not divide the last axis of {} along axis {}",
        encoding.block, TypeToString(type), encoding.axis));
  }
  const auto blocks = static_cast<uint64_t>(type.shape.back() / encoding.block);
  const auto wanted = CheckedMul(encoding.scales.size(), blocks);
  if (!wanted || encoding.block_scales.size() != *wanted) {
    return Bad(fmt::format("expected {} x {} block scales, found {}",
                           encoding.scales.size(), blocks,
                           encoding.block_scales.size()));
  }
  const auto is_good = [](uint8_t factor) {
    return factor >= 1 && factor <= kMostBlockScale;
  };
  if (std::all_of(encoding.block_scales.begin(), encoding.block_scales.end(),
                  is_good)) {
    return OkStatus();
  }
  return Bad(
      fmt::format("a block scale is not within 1 .. {}", kMostBlockScale));
}

}  // namespace

Status CheckEncoding(const Encoding& encoding, const TensorType& type) {
  if (encoding.dtype == DType::kF16) return CheckPlain(encoding);
  if (IsBlockType(encoding.dtype)) return CheckBlockType(encoding, type);
  HX_RETURN_IF_ERROR(CheckCodes(encoding));
  HX_RETURN_IF_ERROR(CheckScales(encoding, type));
  HX_RETURN_IF_ERROR(CheckBlocks(encoding, type));
  return CheckZeroPoints(encoding);
}

}  // namespace hexllm::ir
