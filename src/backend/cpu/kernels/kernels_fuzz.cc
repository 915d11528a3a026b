// Differential fuzzing of the CPU kernels: every instruction set of this CPU
// must give the bits of the scalar kernels, whatever the bits of the inputs.
// Input: kernel, shape and seed (8 bytes), then raw data that replaces the
// first weights and activations.
#include <cstdio>
#include <cstdlib>

#include "tests/support/kernel_cases.h"
#include "tests/support/quant_cases.h"

namespace hexllm::cpu::testing {
namespace {

// Bytes of the input, zeros after its end.
class Input {
 public:
  Input(const uint8_t* data, size_t size) : data_(data, size) {}

  uint8_t Byte() {
    if (data_.empty()) return 0;
    const uint8_t byte = data_.front();
    data_ = data_.subspan(1);
    return byte;
  }
  // A whole number in [low, high], high - low < 256.
  int64_t Number(int64_t low, int64_t high) {
    return low + Byte() % (high - low + 1);
  }
  // Overwrites the front of `target` with up to `most` of the bytes left.
  void Fill(std::span<std::byte> target, size_t most) {
    const size_t size = std::min({target.size(), most, data_.size()});
    if (size > 0) std::memcpy(target.data(), data_.data(), size);
    data_ = data_.subspan(size);
  }

 private:
  std::span<const uint8_t> data_;
};

void ExpectSame(const KernelTable& table, std::span<const float> got,
                std::span<const float> expected) {
  const int64_t at = FirstDifference(got, expected);
  if (at < 0) return;
  std::fprintf(stderr, "isa %d differs from scalar at %lld\n",
               static_cast<int>(table.isa), static_cast<long long>(at));
  std::abort();
}

void FuzzMatMul(Input& input) {
  const DType dtype = kWeightTypes[input.Byte() % std::size(kWeightTypes)];
  const int64_t block = GetDTypeInfo(dtype).block_elems;
  MatMulShape shape = {};
  shape.rows = input.Number(1, 14);
  shape.n = input.Number(1, 70);
  shape.k = block == 1 ? input.Number(1, 100) : block * input.Number(1, 3);
  shape.n_end = shape.n;
  std::mt19937 rng(input.Byte());
  shape.bias = rng() % 2 == 0;
  shape.residual = rng() % 2 == 0;
  MatMulCase test(rng, dtype, shape);
  input.Fill(test.w(), 512);
  input.Fill(std::as_writable_bytes(std::span(test.x())), 512);
  const std::vector<float> expected = test.Run(ScalarKernels());
  for (const KernelTable* table : VectorKernels()) {
    ExpectSame(*table, test.Run(*table), expected);
  }
}

void FuzzAttention(Input& input) {
  AttentionShape shape = {};
  shape.group = input.Number(1, 6);
  shape.head_dim = input.Number(1, 80);
  shape.past = input.Number(0, 150);
  shape.step = input.Number(1, 20);
  std::mt19937 rng(input.Byte());
  shape.softcap = rng() % 2 == 0 ? 0.0f : 5.0f;
  AttentionCase test(rng, shape);
  test.HideAtRandom(rng, 60);
  input.Fill(std::as_writable_bytes(std::span(test.q)), 64);
  input.Fill(std::as_writable_bytes(std::span(test.k_new)), 128);
  input.Fill(std::as_writable_bytes(std::span(test.v_new)), 128);
  input.Fill(std::as_writable_bytes(std::span(test.k_past)), 512);
  const std::vector<float> expected = test.Run(ScalarKernels());
  for (const KernelTable* table : VectorKernels()) {
    ExpectSame(*table, test.Run(*table), expected);
  }
}

std::vector<float> RunElementwise(const KernelTable& table, int which,
                                  const std::vector<float>& x) {
  std::vector<float> out(x.size());
  const auto n = static_cast<int64_t>(x.size());
  switch (which) {
    case 0:
      table.softcap(x.data(), 20.0f, out.data(), n);
      break;
    case 1:
    case 2:
    case 3:
      table.activate(x.data(), out.data(), n,
                     static_cast<Activation>(which - 1));
      break;
    default:
      table.rms_norm({.x = x.data(),
                      .weight = x.data(),
                      .out = out.data(),
                      .rows = 1,
                      .width = n,
                      .eps = 1e-5f,
                      .weight_offset = 1.0f});
  }
  return out;
}

void FuzzElementwise(Input& input) {
  const auto which = static_cast<int>(input.Number(0, 4));
  std::vector<float> x(static_cast<size_t>(input.Number(1, 100)));
  input.Fill(std::as_writable_bytes(std::span(x)), 400);
  const std::vector<float> expected = RunElementwise(ScalarKernels(), which, x);
  for (const KernelTable* table : VectorKernels()) {
    ExpectSame(*table, RunElementwise(*table, which, x), expected);
  }
}

void FuzzMatMulQ(Input& input) {
  const DType dtype = input.Byte() % 2 == 0 ? DType::kQ4_1 : DType::kQ8_0;
  MatMulShape shape = {};
  shape.rows = input.Number(1, 14);
  shape.n = input.Number(1, 40);
  shape.k = kQuantBlock * input.Number(1, 3);
  shape.n_end = shape.n;
  std::mt19937 rng(input.Byte());
  shape.bias = rng() % 2 == 0;
  shape.residual = rng() % 2 == 0;
  MatMulQCase test(rng, dtype, shape);
  input.Fill(std::as_writable_bytes(std::span(test.x())), 256);
  input.Fill(test.stored(), 512);
  test.Pack();
  const std::vector<float> expected = test.Run(ScalarKernels());
  for (const KernelTable* table : VectorKernels()) {
    ExpectSame(*table, test.Run(*table), expected);
  }
}

void FuzzCodeMatMul(Input& input) {
  CodeMatMulShape shape = {};
  shape.rows = input.Number(1, 14);
  shape.outputs = input.Number(1, kPackedRows);
  shape.k = input.Number(1, 100);
  std::mt19937 rng(input.Byte());
  shape.wide = rng() % 2 == 0;
  shape.dropped_bits = rng() % 2 == 0 ? 0 : 9;
  CodeMatMulCase test(rng, shape);
  input.Fill(std::as_writable_bytes(std::span(test.x())), 512);
  input.Fill(test.stored(), 512);
  test.Pack();
  const std::vector<float> expected = test.Run(ScalarKernels());
  for (const KernelTable* table : VectorKernels()) {
    ExpectSame(*table, test.Run(*table), expected);
  }
}

void FuzzBatchMatMul(Input& input) {
  BatchMatMulShape shape = {.m = input.Number(1, 14),
                            .k = input.Number(0, 140),
                            .n = input.Number(1, 40)};
  if (input.Byte() % 2 == 0) shape.a_step = shape.b_step = 0.01f;
  std::mt19937 rng(input.Byte());
  BatchMatMulCase test(rng, shape);
  input.Fill(std::as_writable_bytes(std::span(test.a())), 256);
  input.Fill(std::as_writable_bytes(std::span(test.b())), 512);
  const std::vector<float> expected = test.Run(ScalarKernels());
  for (const KernelTable* table : VectorKernels()) {
    ExpectSame(*table, test.Run(*table), expected);
  }
}

std::vector<float> RunRounding(const KernelTable& table, int which,
                               const std::vector<float>& x) {
  std::vector<float> out(x.size());
  const auto n = static_cast<int64_t>(x.size());
  if (which == 0) {
    table.round_f16(x.data(), out.data(), n);
  } else if (which == 1) {
    table.softmax({.x = x.data(), .out = out.data(), .rows = 1, .width = n});
  } else {
    table.round_codes({.x = x.data(),
                       .out = out.data(),
                       .n = n,
                       .scale = which == 2 ? 0.037f : 1e-6f,
                       .zero_point = which == 2 ? 0 : 40000,
                       .least = which == 2 ? -127 : 0,
                       .most = which == 2 ? 127 : 65535});
  }
  return out;
}

void FuzzRounding(Input& input) {
  const auto which = static_cast<int>(input.Number(0, 3));
  std::vector<float> x(static_cast<size_t>(input.Number(1, 100)));
  input.Fill(std::as_writable_bytes(std::span(x)), 400);
  const std::vector<float> expected = RunRounding(ScalarKernels(), which, x);
  for (const KernelTable* table : VectorKernels()) {
    ExpectSame(*table, RunRounding(*table, which, x), expected);
  }
}

}  // namespace
}  // namespace hexllm::cpu::testing

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  namespace testing = hexllm::cpu::testing;
  testing::Input input(data, size);
  switch (input.Byte() % 7) {
    case 0:
      testing::FuzzMatMul(input);
      break;
    case 1:
      testing::FuzzAttention(input);
      break;
    case 2:
      testing::FuzzElementwise(input);
      break;
    case 3:
      testing::FuzzMatMulQ(input);
      break;
    case 4:
      testing::FuzzCodeMatMul(input);
      break;
    case 5:
      testing::FuzzBatchMatMul(input);
      break;
    default:
      testing::FuzzRounding(input);
  }
  return 0;
}
