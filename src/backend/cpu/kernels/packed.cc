#include "backend/cpu/kernels/packed.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"

namespace hexllm::cpu {
namespace {

constexpr int64_t kBlock = 32;
constexpr size_t kHalfBytes = 2;
// A stored code 0, for signed codes.
constexpr std::byte kZeroCode{0x80};

const PackedFormat* FindFormat(DType dtype) {
  if (dtype == DType::kQ4_1) return &kPackedQ4_1;
  if (dtype == DType::kQ8_0) return &kPackedQ8_0;
  if (dtype == DType::kI8) return &kPackedI8;
  return nullptr;
}

int64_t Blocks(int64_t k) { return (k + kBlock - 1) / kBlock; }

// Bytes of a row as stored.
size_t RowBytes(DType dtype, int64_t k) {
  const DTypeInfo& info = GetDTypeInfo(dtype);
  HX_CHECK(IsPackable(dtype) && k >= 0 && k % info.block_elems == 0);
  return static_cast<size_t>(k / info.block_elems * info.block_bytes);
}

// The place of the code of element k (inside a block) of a row, in the codes of
// a block of single bytes.
size_t ByteAt(size_t row, size_t k) {
  return k / kPackedGroup * (kPackedRows * kPackedGroup) + row * kPackedGroup +
         k % kPackedGroup;
}

// The same of nibbles: a byte and a shift.
struct NibblePlace {
  size_t byte;
  int shift;
};
NibblePlace NibbleAt(size_t row, size_t k) {
  const size_t group = k / kPackedGroup;
  return {ByteAt(row, group / 2 * kPackedGroup + k % kPackedGroup),
          group % 2 == 0 ? 0 : 4};
}

// GGUF keeps element i < 16 of a q4_1 block in the low nibble of byte i and
// element i + 16 in its high nibble.
NibblePlace StoredNibbleAt(size_t k) { return {k % 16, k < 16 ? 0 : 4}; }

std::byte Nibble(const std::byte* codes, NibblePlace at) {
  return codes[at.byte] >> at.shift & std::byte{15};
}
void SetNibble(std::byte* codes, NibblePlace at, std::byte value) {
  const std::byte others = codes[at.byte] & ~(std::byte{15} << at.shift);
  codes[at.byte] = others | value << at.shift;
}

// One block of 32 elements of one row: where it lies in a panel.
struct PanelBlock {
  std::byte* factors;
  std::byte* codes;
  size_t row;
};

// Calls use(block number, PanelBlock) for all blocks of a row.
template <typename Use>
void ForEachBlock(const PackedFormat& format, std::byte* panel, int64_t blocks,
                  size_t row, Use use) {
  std::byte* codes = panel + PackedCodesOffset(format, blocks);
  for (int64_t b = 0; b < blocks; ++b) {
    use(static_cast<size_t>(b), PanelBlock{panel + b * format.factor_bytes,
                                           codes + b * format.code_bytes, row});
  }
}

std::byte* Factor(const PanelBlock& to, size_t index) {
  return to.factors +
         (index * static_cast<size_t>(kPackedRows) + to.row) * kHalfBytes;
}

// { f16 d, m; u8 qs[16] }.
void PackQ4_1(const std::byte* block, const PanelBlock& to) {
  std::memcpy(Factor(to, 0), block, kHalfBytes);
  std::memcpy(Factor(to, 1), block + kHalfBytes, kHalfBytes);
  for (size_t k = 0; k < kBlock; ++k) {
    SetNibble(to.codes, NibbleAt(to.row, k),
              Nibble(block + 2 * kHalfBytes, StoredNibbleAt(k)));
  }
}
void UnpackQ4_1(const PanelBlock& from, std::byte* block) {
  std::memcpy(block, Factor(from, 0), kHalfBytes);
  std::memcpy(block + kHalfBytes, Factor(from, 1), kHalfBytes);
  for (size_t k = 0; k < kBlock; ++k) {
    SetNibble(block + 2 * kHalfBytes, StoredNibbleAt(k),
              Nibble(from.codes, NibbleAt(from.row, k)));
  }
}

// { f16 d; i8 qs[32] }, or the codes alone: adding 128 flips the top bit.
void PackBytes(const std::byte* codes, size_t count, const PanelBlock& to) {
  for (size_t k = 0; k < count; ++k) {
    to.codes[ByteAt(to.row, k)] = codes[k] ^ kZeroCode;
  }
}
void UnpackBytes(const PanelBlock& from, size_t count, std::byte* codes) {
  for (size_t k = 0; k < count; ++k) {
    codes[k] = from.codes[ByteAt(from.row, k)] ^ kZeroCode;
  }
}

// Elements of an i8 row in block `b`.
size_t Count(int64_t k, size_t b) {
  return std::min<size_t>(kBlock, static_cast<size_t>(k) - b * kBlock);
}

}  // namespace

int64_t PaddedDepth(int64_t k) { return Blocks(k) * kBlock; }

bool IsPackable(DType dtype) { return FindFormat(dtype) != nullptr; }

int64_t PackedPanelBytes(DType dtype, int64_t k) {
  HX_CHECK(IsPackable(dtype) && k % GetDTypeInfo(dtype).block_elems == 0);
  return PackedPanelSize(*FindFormat(dtype), Blocks(k));
}

int64_t PackedBytes(DType dtype, int64_t n, int64_t k) {
  return (n + kPackedRows - 1) / kPackedRows * PackedPanelBytes(dtype, k);
}

void PackPanel(DType dtype, int64_t k, ByteSpan rows,
               std::span<std::byte> panel) {
  const size_t row_bytes = RowBytes(dtype, k);
  HX_CHECK(k > 0 && !rows.empty() && rows.size() % row_bytes == 0 &&
           rows.size() / row_bytes <= static_cast<size_t>(kPackedRows));
  HX_CHECK(panel.size() == static_cast<size_t>(PackedPanelBytes(dtype, k)));
  const PackedFormat& format = *FindFormat(dtype);
  const int64_t blocks = Blocks(k);
  const auto codes = static_cast<size_t>(PackedCodesOffset(format, blocks));
  std::ranges::fill(panel.first(codes), std::byte{0});
  std::ranges::fill(panel.subspan(codes),
                    dtype == DType::kQ4_1 ? std::byte{0} : kZeroCode);
  const size_t block_bytes =
      dtype == DType::kI8 ? kBlock : GetDTypeInfo(dtype).block_bytes;
  for (size_t row = 0; row < rows.size() / row_bytes; ++row) {
    const std::byte* from = rows.data() + row * row_bytes;
    ForEachBlock(format, panel.data(), blocks, row,
                 [&](size_t b, const PanelBlock& to) {
                   const std::byte* block = from + b * block_bytes;
                   if (dtype == DType::kQ4_1) return PackQ4_1(block, to);
                   if (dtype == DType::kI8) {
                     return PackBytes(block, Count(k, b), to);
                   }
                   std::memcpy(Factor(to, 0), block, kHalfBytes);
                   PackBytes(block + kHalfBytes, kBlock, to);
                 });
  }
}

void UnpackRow(DType dtype, int64_t k, ByteSpan panel, int64_t row,
               std::span<std::byte> out) {
  HX_CHECK(out.size() == RowBytes(dtype, k) && row >= 0 && row < kPackedRows);
  HX_CHECK(panel.size() == static_cast<size_t>(PackedPanelBytes(dtype, k)));
  const size_t block_bytes =
      dtype == DType::kI8 ? kBlock : GetDTypeInfo(dtype).block_bytes;
  // Nothing is written through the panel here.
  auto* bytes = const_cast<std::byte*>(panel.data());
  ForEachBlock(*FindFormat(dtype), bytes, Blocks(k), static_cast<size_t>(row),
               [&](size_t b, const PanelBlock& from) {
                 std::byte* block = out.data() + b * block_bytes;
                 if (dtype == DType::kQ4_1) return UnpackQ4_1(from, block);
                 if (dtype == DType::kI8) {
                   return UnpackBytes(from, Count(k, b), block);
                 }
                 std::memcpy(block, Factor(from, 0), kHalfBytes);
                 UnpackBytes(from, kBlock, block + kHalfBytes);
               });
}

}  // namespace hexllm::cpu
