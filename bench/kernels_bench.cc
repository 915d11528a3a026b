// Speed of the CPU kernels on one core, for every instruction set of this CPU:
//   fma/ISA          the roof: fma in registers
//   prompt/TYPE/ISA  matmul of several rows; flops = 2 per weight and row
//   token/TYPE/ISA   matmul of one row; bytes = weights as stored
//   attention/ISA    one row, one KV head
//   gated_mul/ISA, rms_norm/ISA
// Sizes follow: rows/K/N; group/past/visible; activation.
// Try --benchmark_filter=prompt/q4_1.
#include <benchmark/benchmark.h>

#include <string>

#include "bench/fma_peak.h"
#include "tests/support/kernel_cases.h"

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
       {MatMulSize{128, 576, 1536}, MatMulSize{128, 1536, 576},
        MatMulSize{128, 2048, 2048}, MatMulSize{16, 576, 1536},
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

void RegisterAll() {
  for (const KernelTable* table : VectorKernels()) {
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
