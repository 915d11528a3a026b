// Speed of the CPU kernels on one core, for every instruction set of this CPU:
//   fma/ISA          the roof: fma in registers
//   prompt/TYPE/ISA  matmul of several rows; flops = 2 per weight and row
//   token/TYPE/ISA   matmul of one row; bytes = weights as stored
//   prompt_q/TYPE/ISA, token_q/TYPE/ISA
//                    the same with rounded activations (matmul_q) and packed
//                    weights; ops = 2 per weight and row
//   code_matmul/ISA  the same for codes of 16 bits and i8
//   read             the roof of tokens: reading memory
//   quantize_rows/ISA, softmax/ISA
//   batch_matmul/ISA in double; with codes: /1
//   attention/ISA    one row, one KV head
//   gated_mul/ISA, rms_norm/ISA
// Sizes follow: rows/K/N; group/past/visible; activation; MiB.
// Try --benchmark_filter=prompt/q4_1.
#include <benchmark/benchmark.h>

#include <string>

#include "bench/fma_peak.h"
#include "tests/support/kernel_cases.h"
#include "tests/support/quant_cases.h"

namespace hexllm::cpu::testing {
namespace {

using benchmark::Counter;
using benchmark::State;

Counter PerSecond(double count_per_iteration) {
  return Counter(count_per_iteration, Counter::kIsIterationInvariantRate,
                 Counter::kIs1000);
}

void RunFma(State& state, const KernelTable& table) {
  double flops = 0;
  float sink = 0;
  for (auto _ : state) {
    flops = bench::RunFmaChains(table.isa, 100000, sink);
    benchmark::DoNotOptimize(sink);
  }
  state.counters["flops"] = PerSecond(flops);
}

struct MatMulSize {
  int64_t rows, k, n;
};

void RunMatMul(State& state, const KernelTable& table, DType dtype,
               const MatMulSize& size) {
  std::mt19937 rng(1);
  const MatMulCase test(rng, dtype,
                        {.rows = size.rows,
                         .n = size.n,
                         .k = size.k,
                         .n_begin = 0,
                         .n_end = size.n});
  Scratch scratch(MatMulScratchFloats(size.k));
  std::vector<float> out(static_cast<size_t>(size.rows * size.n));
  const MatMulArgs args = test.Args(out.data(), scratch.data());
  for (auto _ : state) {
    table.matmul[static_cast<size_t>(dtype)](args);
    benchmark::ClobberMemory();
  }
  const auto weights = static_cast<double>(size.k * size.n);
  state.counters["flops"] =
      PerSecond(2.0 * weights * static_cast<double>(size.rows));
  state.counters["weights"] = PerSecond(weights);
  state.counters["bytes"] =
      PerSecond(static_cast<double>(WeightRowBytes(dtype, size.k) * size.n));
}

void RunAttention(State& state, const KernelTable& table,
                  const AttentionShape& shape, int64_t visible) {
  std::mt19937 rng(1);
  AttentionCase test(rng, shape);
  for (int64_t c = visible; c < shape.past; ++c) {
    test.mask[static_cast<size_t>(c)] = -INFINITY;
  }
  std::vector<float> out(test.q.size());
  Scratch scratch(AttentionScratchFloats(shape.group, shape.past, shape.step));
  const AttentionArgs args = test.Args(out.data(), scratch.data());
  for (auto _ : state) {
    table.attention(args);
    benchmark::ClobberMemory();
  }
  state.counters["flops"] = PerSecond(static_cast<double>(
      4 * shape.group * shape.head_dim * (visible + shape.step)));
}

void RunGatedMul(State& state, const KernelTable& table,
                 Activation activation) {
  std::mt19937 rng(1);
  const std::vector<float> gate = RandomFloats(rng, 1536);
  const std::vector<float> up = RandomFloats(rng, 1536);
  std::vector<float> out(1536);
  for (auto _ : state) {
    table.gated_mul(gate.data(), up.data(), out.data(), 1536, activation);
    benchmark::ClobberMemory();
  }
  state.counters["elements"] = PerSecond(1536);
}

void RunRmsNorm(State& state, const KernelTable& table) {
  std::mt19937 rng(1);
  const std::vector<float> x = RandomFloats(rng, 576);
  const std::vector<float> weight = RandomFloats(rng, 576);
  std::vector<float> out(576);
  for (auto _ : state) {
    table.rms_norm({.x = x.data(),
                    .weight = weight.data(),
                    .out = out.data(),
                    .rows = 1,
                    .width = 576,
                    .eps = 1e-5f,
                    .weight_offset = 0.0f});
    benchmark::ClobberMemory();
  }
  state.counters["elements"] = PerSecond(576);
}

// Adds the counters of a product of integers to `state`.
void CountOps(State& state, const MatMulSize& size, int64_t bytes) {
  const auto weights = static_cast<double>(size.k * size.n);
  state.counters["ops"] =
      PerSecond(2.0 * weights * static_cast<double>(size.rows));
  state.counters["weights"] = PerSecond(weights);
  state.counters["bytes"] = PerSecond(static_cast<double>(bytes));
}

MatMulShape ShapeOf(const MatMulSize& size) {
  return {.rows = size.rows,
          .n = size.n,
          .k = size.k,
          .n_begin = 0,
          .n_end = size.n};
}

void RunMatMulQ(State& state, const KernelTable& table, DType dtype,
                const MatMulSize& size) {
  std::mt19937 rng(1);
  MatMulQCase test(rng, dtype, ShapeOf(size));
  RoundedRows rows(table, test.x(), size.rows, size.k);
  std::vector<float> out(static_cast<size_t>(size.rows * size.n));
  const MatMulQArgs args = test.Args(rows, out.data());
  for (auto _ : state) {
    table.matmul_q[static_cast<size_t>(dtype)](args);
    benchmark::ClobberMemory();
  }
  CountOps(state, size, PackedBytes(dtype, size.n, size.k));
}

// All panels of `size`, as the engine calls the kernel; the same weights in
// each.
void RunCodeMatMul(State& state, const KernelTable& table,
                   const MatMulSize& size) {
  std::mt19937 rng(1);
  CodeMatMulCase test(rng,
                      {.rows = size.rows, .k = size.k, .outputs = kPackedRows});
  const int64_t panels = size.n / kPackedRows;
  const int64_t panel_bytes = PackedPanelBytes(DType::kI8, size.k);
  AlignedBytes weights(panels * panel_bytes);
  std::vector<float> out(static_cast<size_t>(size.rows * size.n));
  CodeMatMulArgs args = test.Args(out.data());
  for (int64_t p = 0; p < panels; ++p) {
    std::memcpy(weights.bytes().data() + p * panel_bytes, args.w,
                static_cast<size_t>(panel_bytes));
  }
  args.out_stride = size.n;
  for (auto _ : state) {
    for (int64_t p = 0; p < panels; ++p) {
      args.w = weights.bytes().data() + p * panel_bytes;
      args.out = out.data() + p * kPackedRows;
      table.code_matmul(args);
    }
    benchmark::ClobberMemory();
  }
  CountOps(state, size, PackedBytes(DType::kI8, size.n, size.k));
}

void RunRead(State& state, int64_t mib) {
  std::vector<uint64_t> words(static_cast<size_t>(mib) << 17, 1);
  for (auto _ : state) {
    uint64_t sums[4] = {};
    for (size_t i = 0; i < words.size(); i += 4) {
      for (size_t lane = 0; lane < 4; ++lane) sums[lane] ^= words[i + lane];
    }
    benchmark::DoNotOptimize(sums);
  }
  state.counters["bytes"] = PerSecond(static_cast<double>(words.size() * 8));
}

void RunQuantizeRows(State& state, const KernelTable& table) {
  std::mt19937 rng(1);
  const std::vector<float> x = RandomFloats(rng, 1536);
  for (auto _ : state) {
    RoundedRows rows(table, x, 1, 1536);
    benchmark::DoNotOptimize(rows.codes.data());
  }
  state.counters["elements"] = PerSecond(1536);
}

void RunSoftmax(State& state, const KernelTable& table) {
  std::mt19937 rng(1);
  const std::vector<float> x = RandomFloats(rng, 1024);
  std::vector<float> out(1024);
  for (auto _ : state) {
    table.softmax({.x = x.data(), .out = out.data(), .rows = 1, .width = 1024});
    benchmark::ClobberMemory();
  }
  state.counters["elements"] = PerSecond(1024);
}

void RunBatchMatMul(State& state, const KernelTable& table,
                    const BatchMatMulShape& shape) {
  std::mt19937 rng(1);
  BatchMatMulCase test(rng, shape);
  std::vector<float> out(static_cast<size_t>(shape.m * (shape.n + 1)));
  const BatchMatMulArgs args = test.Args(out.data());
  for (auto _ : state) {
    table.batch_matmul(args);
    benchmark::ClobberMemory();
  }
  state.counters["flops"] =
      PerSecond(2.0 * static_cast<double>(shape.m * shape.k * shape.n));
}

std::string Name(const std::string& kind, const KernelTable& table,
                 std::initializer_list<int64_t> sizes) {
  std::string name = kind + "/" + std::string(IsaName(table.isa));
  for (const int64_t size : sizes) name += "/" + std::to_string(size);
  return name;
}

void RegisterMatMul(const KernelTable& table, DType dtype) {
  const std::string type(DTypeName(dtype));
  const int64_t block = GetDTypeInfo(dtype).block_elems;
  for (const MatMulSize& size :
       {MatMulSize{512, 576, 1536}, MatMulSize{128, 576, 1536},
        MatMulSize{128, 1536, 576}, MatMulSize{128, 2048, 2048},
        MatMulSize{16, 576, 1536}, MatMulSize{4, 576, 1536},
        MatMulSize{1, 576, 49152}, MatMulSize{1, 1536, 16384},
        MatMulSize{1, 576, 1536}, MatMulSize{1, 2048, 8192}}) {
    if (size.k % block != 0) continue;
    const std::string kind = size.rows == 1 ? "token/" : "prompt/";
    benchmark::RegisterBenchmark(
        Name(kind + type, table, {size.rows, size.k, size.n}).c_str(),
        [&table, dtype, size](State& state) {
          RunMatMul(state, table, dtype, size);
        });
  }
}

void RegisterDots(const KernelTable& table) {
  for (const MatMulSize& size :
       {MatMulSize{128, 576, 1536}, MatMulSize{128, 1536, 576},
        MatMulSize{128, 2048, 2048}, MatMulSize{16, 576, 1536},
        MatMulSize{4, 576, 1536}, MatMulSize{2, 576, 1536},
        MatMulSize{1, 576, 1536}, MatMulSize{1, 1536, 576},
        MatMulSize{1, 576, 49152}, MatMulSize{1, 2048, 8192},
        MatMulSize{1, 576, 184320}}) {
    for (const DType dtype : {DType::kQ4_1, DType::kQ8_0}) {
      const std::string kind = size.rows < 16 ? "token_q/" : "prompt_q/";
      benchmark::RegisterBenchmark(Name(kind + std::string(DTypeName(dtype)),
                                        table, {size.rows, size.k, size.n})
                                       .c_str(),
                                   [&table, dtype, size](State& state) {
                                     RunMatMulQ(state, table, dtype, size);
                                   });
    }
    benchmark::RegisterBenchmark(
        Name("code_matmul", table, {size.rows, size.k, size.n}).c_str(),
        [&table, size](State& state) { RunCodeMatMul(state, table, size); });
  }
}

void RegisterBatchMatMul(const KernelTable& table) {
  for (BatchMatMulShape shape :
       {BatchMatMulShape{384, 64, 1024}, BatchMatMulShape{384, 1024, 64},
        BatchMatMulShape{3, 64, 1024}, BatchMatMulShape{3, 1024, 64}}) {
    for (const int64_t codes : {0, 1}) {
      if (codes == 1) shape.a_step = shape.b_step = 0.001f;
      benchmark::RegisterBenchmark(
          Name("batch_matmul", table, {shape.m, shape.k, shape.n, codes})
              .c_str(),
          [&table, shape](State& state) {
            RunBatchMatMul(state, table, shape);
          });
    }
  }
}

void RegisterAttention(const KernelTable& table) {
  for (const int64_t past : {1023, 8191}) {
    for (const int64_t group : {1, 3, 4}) {
      for (const int64_t visible : {int64_t{16}, past}) {
        benchmark::RegisterBenchmark(
            Name("attention", table, {group, past, visible}).c_str(),
            [&table, past, group, visible](State& state) {
              const AttentionShape shape = {
                  .group = group, .head_dim = 64, .past = past, .step = 1};
              RunAttention(state, table, shape, visible);
            });
      }
    }
  }
}

void RegisterRounding(const KernelTable& table) {
  benchmark::RegisterBenchmark(
      Name("quantize_rows", table, {}).c_str(),
      [&table](State& state) { RunQuantizeRows(state, table); });
  benchmark::RegisterBenchmark(
      Name("softmax", table, {}).c_str(),
      [&table](State& state) { RunSoftmax(state, table); });
}

void RegisterAll() {
  for (const int64_t mib : {1, 16, 64}) {
    benchmark::RegisterBenchmark(("read/" + std::to_string(mib)).c_str(),
                                 [mib](State& state) { RunRead(state, mib); });
  }
  for (const KernelTable* table : VectorKernels()) {
    RegisterDots(*table);
    // These have nothing else of their own.
    if (table->isa == Isa::kAvx512Vnni || table->isa == Isa::kNeonDot) continue;
    RegisterBatchMatMul(*table);
    RegisterRounding(*table);
    benchmark::RegisterBenchmark(
        Name("fma", *table, {}).c_str(),
        [table](State& state) { RunFma(state, *table); });
    for (const DType dtype : kWeightTypes) RegisterMatMul(*table, dtype);
    RegisterAttention(*table);
    for (const auto activation :
         {Activation::kSilu, Activation::kGeluTanh, Activation::kGeluErf}) {
      benchmark::RegisterBenchmark(
          Name("gated_mul", *table, {static_cast<int64_t>(activation)}).c_str(),
          [table, activation](State& state) {
            RunGatedMul(state, *table, activation);
          });
    }
    benchmark::RegisterBenchmark(
        Name("rms_norm", *table, {}).c_str(),
        [table](State& state) { RunRmsNorm(state, *table); });
  }
}

}  // namespace
}  // namespace hexllm::cpu::testing

int main(int argc, char** argv) {
  hexllm::cpu::testing::RegisterAll();
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
