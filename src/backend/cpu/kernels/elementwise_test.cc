#include <gtest/gtest.h>

#include <functional>

#include "tests/support/kernel_cases.h"

namespace hexllm::cpu::testing {
namespace {

constexpr Activation kActivations[] = {Activation::kSilu, Activation::kGeluTanh,
                                       Activation::kGeluErf};

// Floats of all sizes, the special ones, and every n up to 40.
std::vector<float> AnyFloats(std::mt19937& rng, int64_t n) {
  std::vector<float> out = RandomFloats(rng, n);
  constexpr float kSpecial[] = {0.0f,     -0.0f,     INFINITY,   -INFINITY,
                                NAN,      0x1p-149f, -0x1p-140f, 3e38f,
                                -3.4e38f, 88.8f,     -103.9f,    0.625f};
  for (float& value : out) {
    switch (rng() % 4) {
      case 0:
        value = std::bit_cast<float>(static_cast<uint32_t>(rng()));
        break;
      case 1:
        value = kSpecial[rng() % std::size(kSpecial)];
        break;
      default:
        value *= 20.0f;
    }
  }
  return out;
}

// Runs `kernel` on both tables; out of place and over the first input.
using Kernel = std::function<void(const KernelTable&, const float* a,
                                  const float* b, float* out, int64_t n)>;
void ExpectSame(const char* name, const Kernel& kernel) {
  std::mt19937 rng(31);
  for (int64_t n = 0; n < 200; ++n) {
    const std::vector<float> a = AnyFloats(rng, n);
    const std::vector<float> b = AnyFloats(rng, n);
    std::vector<float> expected(a.size());
    kernel(ScalarKernels(), a.data(), b.data(), expected.data(), n);
    for (const KernelTable* table : VectorKernels()) {
      std::vector<float> out(a.size());
      kernel(*table, a.data(), b.data(), out.data(), n);
      EXPECT_EQ(FirstDifference(out, expected), -1)
          << name << " " << IsaName(table->isa) << " n " << n;
      std::vector<float> in_place = a;
      kernel(*table, in_place.data(), b.data(), in_place.data(), n);
      EXPECT_EQ(FirstDifference(in_place, expected), -1)
          << name << " in place " << IsaName(table->isa) << " n " << n;
    }
  }
}

TEST(Elementwise, EveryInstructionSetEqualsScalar) {
  ExpectSame("add", [](auto& t, auto* a, auto* b, auto* out, auto n) {
    t.add(a, b, out, n);
  });
  ExpectSame("mul", [](auto& t, auto* a, auto* b, auto* out, auto n) {
    t.mul(a, b, out, n);
  });
  ExpectSame("scale", [](auto& t, auto* a, auto*, auto* out, auto n) {
    t.scale(a, 0.3f, out, n);
  });
  ExpectSame("softcap", [](auto& t, auto* a, auto*, auto* out, auto n) {
    t.softcap(a, 30.0f, out, n);
  });
  for (const Activation activation : kActivations) {
    ExpectSame("activate", [=](auto& t, auto* a, auto*, auto* out, auto n) {
      t.activate(a, out, n, activation);
    });
    ExpectSame("gated_mul", [=](auto& t, auto* a, auto* b, auto* out, auto n) {
      t.gated_mul(a, b, out, n, activation);
    });
  }
}

// Activations against double precision. GELU of negative numbers cancels in
// 1 + tanh and 1 + erf, so its bound is absolute there.
TEST(Elementwise, ActivationsAreCloseToDouble) {
  for (float x = -12.0f; x < 12.0f; x += 0.0137f) {
    const double v = double{x};
    const double expected[] = {
        v / (1 + std::exp(-v)),
        v / 2 *
            (1 + std::tanh(std::sqrt(2 / M_PI) * (v + 0.044715 * v * v * v))),
        v / 2 * (1 + std::erf(v / std::sqrt(2.0)))};
    for (const Activation activation : kActivations) {
      float out = 0;
      ScalarKernels().activate(&x, &out, 1, activation);
      const double want = expected[static_cast<size_t>(activation)];
      EXPECT_NEAR(out, want, 4e-7 * std::fabs(v) + 1e-30) << x;
    }
  }
}

}  // namespace
}  // namespace hexllm::cpu::testing
