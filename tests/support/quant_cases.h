// Random arguments for the kernels of rounded numbers (packed weights, 8-bit
// codes), for their tests, fuzz target and benchmarks. Everything is a function
// of the generator passed. See kernel_cases.h.
#pragma once

#include <cstdint>
#include <cstring>
#include <numeric>
#include <random>
#include <span>
#include <vector>

#include "backend/cpu/kernels/packed.h"
#include "tests/support/kernel_cases.h"

namespace hexllm::cpu::testing {

// 64-byte aligned bytes; exactly `bytes` of them end the allocation.
class AlignedBytes {
 public:
  explicit AlignedBytes(int64_t bytes)
      : storage_((bytes + 3) / 4), size_(static_cast<size_t>(bytes)) {}
  std::span<std::byte> bytes() {
    return {reinterpret_cast<std::byte*>(storage_.data()), size_};
  }

 private:
  Scratch storage_;
  size_t size_;
};

// N stored rows of K elements, packed. `stored` must have exactly their size.
inline void PackRows(DType dtype, int64_t n, int64_t k, ByteSpan stored,
                     std::span<std::byte> packed) {
  const size_t row_bytes = stored.size() / static_cast<size_t>(n);
  const auto panel_bytes = static_cast<size_t>(PackedPanelBytes(dtype, k));
  for (int64_t first = 0; first < n; first += kPackedRows) {
    const int64_t count = std::min(kPackedRows, n - first);
    PackPanel(dtype, k,
              stored.subspan(static_cast<size_t>(first) * row_bytes,
                             static_cast<size_t>(count) * row_bytes),
              packed.first(panel_bytes));
    packed = packed.subspan(panel_bytes);
  }
}

// Rows of floats rounded by one table's quantize_rows.
struct RoundedRows {
  RoundedRows(const KernelTable& table, std::span<const float> x, int64_t rows,
              int64_t k)
      : codes(static_cast<size_t>(rows * k)),
        scales(static_cast<size_t>(rows * k / kQuantBlock)),
        sums(scales.size()) {
    table.quantize_rows(
        {.x = x.data(), .x_stride = k, .rows = rows, .k = k, .out = View()});
  }
  QuantizedRows View() { return {codes.data(), scales.data(), sums.data()}; }

  std::vector<int8_t> codes;
  std::vector<float> scales;
  std::vector<int32_t> sums;
};

// One matmul_q with all that its arguments point to. `shape` without gaps in x
// and w; k a multiple of 32; n_begin a multiple of 16 and n_end one, or n.
class MatMulQCase {
 public:
  MatMulQCase(std::mt19937& rng, DType dtype, const MatMulShape& shape)
      : dtype_(dtype),
        shape_(shape),
        x_(RandomFloats(rng, shape.rows * shape.k)),
        bias_(RandomFloats(rng, shape.n)),
        residual_(RandomFloats(rng, shape.rows * (shape.n + shape.out_gap))),
        stored_(static_cast<size_t>(shape.n * WeightRowBytes(dtype, shape.k))),
        packed_(PackedBytes(dtype, shape.n, shape.k)) {
    for (int64_t i = 0; i < shape.n; ++i) {
      FillWeightRow(rng, dtype, shape.k,
                    stored_.data() + i * WeightRowBytes(dtype, shape.k));
    }
    Pack();
  }

  // To be changed before Pack() and Run().
  std::vector<float>& x() { return x_; }
  std::vector<std::byte>& stored() { return stored_; }
  void Pack() {
    PackRows(dtype_, shape_.n, shape_.k, stored_, packed_.bytes());
  }

  MatMulQArgs Args(RoundedRows& rows, float* out) {
    return {.x = rows.View(),
            .w = packed_.bytes().data(),
            .bias = shape_.bias ? bias_.data() : nullptr,
            .residual = shape_.residual ? out : nullptr,
            .out = out,
            .out_stride = shape_.n + shape_.out_gap,
            .rows = shape_.rows,
            .k = shape_.k,
            .n_begin = shape_.n_begin,
            .n_end = shape_.n_end};
  }

  // The whole output [rows, n + out_gap]; what the kernel must not write stays
  // as in the residual. Rows are rounded by the same table.
  std::vector<float> Run(const KernelTable& table) {
    RoundedRows rows(table, x_, shape_.rows, shape_.k);
    std::vector<float> out = residual_;
    table.matmul_q[static_cast<size_t>(dtype_)](Args(rows, out.data()));
    return out;
  }

 private:
  DType dtype_;
  MatMulShape shape_;
  std::vector<float> x_, bias_, residual_;
  std::vector<std::byte> stored_;
  AlignedBytes packed_;
};

// A shape for MatMulQCase.
inline MatMulShape RandomPackedShape(std::mt19937& rng, int64_t max_k) {
  MatMulShape shape = {};
  shape.rows =
      RandomInt(rng, 0, 1) == 0 ? RandomInt(rng, 1, 4) : RandomInt(rng, 1, 70);
  shape.n = RandomInt(rng, 1, 100);
  shape.k = kQuantBlock * RandomInt(rng, 1, max_k / kQuantBlock);
  const int64_t panels = (shape.n + kPackedRows - 1) / kPackedRows;
  const int64_t first = RandomInt(rng, 0, panels - 1);
  const int64_t last = RandomInt(rng, first + 1, panels);
  shape.n_begin = first * kPackedRows;
  shape.n_end = std::min(last * kPackedRows, shape.n);
  shape.out_gap = RandomInt(rng, 0, 1) * RandomInt(rng, 0, 20);
  shape.bias = RandomInt(rng, 0, 1) == 1;
  shape.residual = RandomInt(rng, 0, 1) == 1;
  return shape;
}

// One code_matmul with all that its arguments point to.
struct CodeMatMulShape {
  int64_t rows = 1, k = 1, outputs = 1;
  int64_t x_gap = 0, out_gap = 0;
  bool wide = false;     // weights of 16 bits
  int dropped_bits = 0;  // at most, of an output
};

class CodeMatMulCase {
 public:
  CodeMatMulCase(std::mt19937& rng, const CodeMatMulShape& shape)
      : shape_(shape),
        x_stride_(PaddedDepth(shape.k) + shape.x_gap),
        x_(static_cast<size_t>(shape.rows * x_stride_)),
        stored_(static_cast<size_t>((shape.wide ? 2 : 1) * shape.outputs *
                                    shape.k)),
        packed_(2 * PackedPanelBytes(DType::kI8, shape.k)) {
    for (int16_t& code : x_) code = static_cast<int16_t>(rng());
    for (std::byte& code : stored_) code = static_cast<std::byte>(rng());
    for (size_t j = 0; j < kPackedRows; ++j) {
      terms_.offsets[j] = static_cast<double>(RandomInt(rng, -1000000, 999999));
      terms_.per_place[j] = std::ldexp(
          1.0, -static_cast<int>(RandomInt(rng, 0, shape.dropped_bits)));
      terms_.rest[j] = static_cast<double>(RandomInt(rng, -999, 999));
      terms_.factors[j] = static_cast<double>(RandomFloats(rng, 1)[0]);
    }
    Pack();
  }

  // [rows, stride]; Pack() clears what lies beyond K.
  std::vector<int16_t>& x() { return x_; }
  // i8 [outputs, K], of 16-bit weights the high bytes, then the low ones.
  std::vector<std::byte>& stored() { return stored_; }
  PanelTerms& terms() { return terms_; }
  void Pack() {
    const auto panel =
        static_cast<size_t>(PackedPanelBytes(DType::kI8, shape_.k));
    const auto plane = static_cast<size_t>(shape_.outputs * shape_.k);
    for (size_t at = 0; at * plane < stored_.size(); ++at) {
      PackPanel(DType::kI8, shape_.k,
                ByteSpan(stored_).subspan(at * plane, plane),
                packed_.bytes().subspan(at * panel, panel));
    }
    sums_.clear();
    for (int64_t r = 0; r < shape_.rows; ++r) {
      const auto row = x_.begin() + r * x_stride_;
      std::fill(row + shape_.k, row + PaddedDepth(shape_.k), int16_t{0});
      sums_.push_back(std::accumulate(row, row + shape_.k, int64_t{0}));
    }
  }

  CodeMatMulArgs Args(float* out) {
    const std::byte* const w = packed_.bytes().data();
    return {.x = x_.data(),
            .x_stride = x_stride_,
            .x_sums = sums_.data(),
            .w = w,
            .low = shape_.wide ? w + PackedPanelBytes(DType::kI8, shape_.k)
                               : nullptr,
            .terms = &terms_,
            .drops = shape_.dropped_bits > 0,
            .out = out,
            .out_stride = shape_.outputs + shape_.out_gap,
            .rows = shape_.rows,
            .k = shape_.k,
            .outputs = shape_.outputs};
  }
  // The output [rows, outputs + out_gap]; -1 where nothing was written.
  std::vector<float> Run(const KernelTable& table) {
    std::vector<float> out(
        static_cast<size_t>(shape_.rows * (shape_.outputs + shape_.out_gap)),
        -1.0f);
    table.code_matmul(Args(out.data()));
    return out;
  }

 private:
  CodeMatMulShape shape_;
  int64_t x_stride_;
  std::vector<int16_t> x_;
  std::vector<std::byte> stored_;
  AlignedBytes packed_;
  std::vector<int64_t> sums_;
  PanelTerms terms_ = {};
};

// One batch_matmul with all that its arguments point to: rows lie apart by more
// than their width.
struct BatchMatMulShape {
  int64_t m, k, n;
  float a_step = 0.0f, b_step = 0.0f;  // both 0, or numbers on these grids
  int dropped_bits = 0;
};

class BatchMatMulCase {
 public:
  BatchMatMulCase(std::mt19937& rng, const BatchMatMulShape& shape)
      : shape_(shape),
        a_(RandomFloats(rng, shape.m * AStride())),
        b_(RandomFloats(rng, shape.k * BStride())),
        scratch_(2 * kBatchMatMulScratch) {
    for (int64_t n = 0; n < shape.n; ++n)
      zeros_.push_back(static_cast<double>(
          RandomInt(rng, 0, (1 << shape.dropped_bits) - 1)));
    if (shape.a_step == 0.0f) return;
    for (float& x : a_) x = std::nearbyint(x * 65535.0f) * shape.a_step;
    for (float& x : b_) x = std::nearbyint(x * 65535.0f) * shape.b_step;
  }

  std::vector<float>& a() { return a_; }
  std::vector<float>& b() { return b_; }
  int64_t AStride() const { return shape_.k + 3; }
  int64_t BStride() const { return shape_.n + 5; }

  BatchMatMulArgs Args(float* out) {
    return {.a = a_.data(),
            .a_stride = AStride(),
            .b = b_.data(),
            .b_stride = BStride(),
            .out = out,
            .out_stride = shape_.n + 1,
            .m = shape_.m,
            .k = shape_.k,
            .n = shape_.n,
            .scale = 0.125f,
            .a_step = shape_.a_step,
            .b_step = shape_.b_step,
            .zeros = shape_.dropped_bits > 0 ? zeros_.data() : nullptr,
            .place = std::ldexp(1.0, shape_.dropped_bits),
            .scratch = reinterpret_cast<double*>(scratch_.data())};
  }
  // The output [m, n + 1]; the last column stays -1.
  std::vector<float> Run(const KernelTable& table) {
    std::vector<float> out(static_cast<size_t>(shape_.m * (shape_.n + 1)),
                           -1.0f);
    table.batch_matmul(Args(out.data()));
    return out;
  }

 private:
  BatchMatMulShape shape_;
  std::vector<float> a_, b_;
  std::vector<double> zeros_;
  Scratch scratch_;
};

}  // namespace hexllm::cpu::testing
