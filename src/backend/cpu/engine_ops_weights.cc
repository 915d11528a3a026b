// Ops that read a weight: embedding, and the float and dynamic matmuls.
#include "backend/cpu/engine_split.h"
#include "backend/cpu/kernels/packed.h"
#include "backend/cpu/row_codes.h"
#include "base/dequantize.h"

namespace hexllm::cpu {
namespace {

// The stored bytes of one row of a table: where they lie, or unpacked into
// `scratch`.
ByteSpan TableRow(const WeightView& table, int64_t row, float* scratch) {
  const auto bytes = static_cast<size_t>(table.row_bytes);
  if (table.layout == WeightLayout::kRows) {
    return {table.data + row * table.row_bytes, bytes};
  }
  const int64_t panel_bytes = PackedPanelBytes(table.dtype, table.cols);
  const std::span<std::byte> out(reinterpret_cast<std::byte*>(scratch), bytes);
  UnpackRow(table.dtype, table.cols,
            {table.data + row / kPackedRows * panel_bytes,
             static_cast<size_t>(panel_bytes)},
            row % kPackedRows, out);
  return out;
}

// Calls f(part, n_begin, n_end) for parts of the output columns in whole lines
// (as many floats as a panel has rows).
template <typename F>
void SplitColumns(const Step& step, const RunContext& context, int64_t work,
                  F&& f) {
  const int64_t lines = CeilDiv(step.width, kLineFloats);
  const int64_t parts = NumParts(context, lines, kLineFloats * work);
  RunParts(context, parts, [&](int64_t part) {
    f(part, lines * part / parts * kLineFloats,
      std::min(lines * (part + 1) / parts * kLineFloats, step.width));
  });
}

static_assert(kLineFloats == kPackedRows);

}  // namespace

void RunEmbed(const Step& step, const RunContext& context) {
  const auto* ids = reinterpret_cast<const int32_t*>(step.at[0]);
  const WeightView& table = step.weight;
  const ActiveRows rows = Active(step, context);
  const int64_t parts = NumParts(context, rows.count(), step.width);
  RunParts(context, parts, [&](int64_t part) {
    float* const scratch = context.scratch + part * context.scratch_stride;
    const int64_t end = rows.begin + rows.count() * (part + 1) / parts;
    for (int64_t r = rows.begin + rows.count() * part / parts; r < end; ++r) {
      DequantizeRow(
          table.dtype, TableRow(table, ids[r], scratch),
          {step.Out() + r * step.width, static_cast<size_t>(step.width)});
    }
  });
}

// Split over output columns, so that each weight row is decoded once.
void RunMatMul(const Step& step, const RunContext& context) {
  const ActiveRows rows = Active(step, context);
  if (rows.count() == 0) return;
  const int64_t k = step.weight.cols;
  const int64_t skipped = rows.begin * step.width;
  const auto run = [&](int64_t part, int64_t n_begin, int64_t n_end) {
    step.matmul(
        {.x = step.In(0) + rows.begin * k,
         .x_stride = k,
         .w = step.weight.data,
         .w_row_bytes = step.weight.row_bytes,
         .bias = step.In(2),
         .residual = step.at[3] == nullptr ? nullptr : step.In(3) + skipped,
         .out = step.Out() + skipped,
         .out_stride = step.width,
         .rows = rows.count(),
         .k = k,
         .n_begin = n_begin,
         .n_end = n_end,
         .scratch = context.scratch + part * context.scratch_stride});
  };
  SplitColumns(step, context, k * rows.count(), run);
}

void RunQuantizeRows(const Step& step, const RunContext& context) {
  const ActiveRows rows = Active(step, context);
  const int64_t k = step.inner;
  Split(context, rows.count(), 2 * k, [&](int64_t begin, int64_t end) {
    const int64_t first = rows.begin + begin;
    context.kernels.quantize_rows(
        {.x = step.In(0) + first * k,
         .x_stride = k,
         .rows = end - begin,
         .k = k,
         .out = QuantizedAt(step.at[kOutSlot], step.rows.count, k, first)});
  });
}

void RunMatMulQ(const Step& step, const RunContext& context) {
  const ActiveRows rows = Active(step, context);
  if (rows.count() == 0) return;
  const int64_t k = step.weight.cols;
  const int64_t skipped = rows.begin * step.width;
  const auto run = [&](int64_t, int64_t n_begin, int64_t n_end) {
    step.matmul_q(
        {.x = QuantizedAt(step.at[0], step.rows.count, k, rows.begin),
         .w = step.weight.data,
         .bias = step.In(2),
         .residual = step.at[3] == nullptr ? nullptr : step.In(3) + skipped,
         .out = step.Out() + skipped,
         .out_stride = step.width,
         .rows = rows.count(),
         .k = k,
         .n_begin = n_begin,
         .n_end = n_end});
  };
  // An integer kernel does about four multiply-adds in the time of a float one.
  SplitColumns(step, context, std::max<int64_t>(1, k * rows.count() / 4), run);
}

}  // namespace hexllm::cpu
