// Rounding to 8-bit codes, to grids and to half precision, and softmax, over
// the vector abstraction V (vec_*.h). The definitions are quant_ref.cc and
// rounding_ref.cc.
#pragma once

#include <stdint.h>

#include "backend/cpu/kernels/elementwise_body.h"
#include "backend/cpu/kernels/inline.h"
#include "backend/cpu/kernels/kernels.h"
#include "backend/cpu/kernels/math.h"

namespace hexllm::cpu {
namespace {

// `x` where it is a number, else 0. For |x| below 2^25.
template <class V>
HX_INLINE typename V::F NumberOrZero(typename V::F x) {
  return V::IfLess(V::Abs(x), V::Set(0x1p25f), x, V::Set(0.0f));
}

// min(max(low, x), high) of whole numbers; keeps NaNs: Min and Max return their
// second operand for them.
template <class V>
HX_INLINE typename V::F Clamp(typename V::F x, float low, float high) {
  return V::Max(V::Set(low), V::Min(V::Set(high), x));
}

// --- 8-bit codes.

// The code of each element of a block, and their sum.
template <class V>
HX_INLINE int32_t RoundBlock(const float* x, float inverse, int8_t* codes) {
  static_assert(kQuantBlock == 32);
  typename V::F sum = V::Set(0.0f);
#pragma GCC unroll 2
  for (int i = 0; i < 32; i += 16) {
    const auto scaled = V::Mul(V::Load(x + i), V::Set(inverse));
    const auto code =
        NumberOrZero<V>(V::RoundEven(Clamp<V>(scaled, -127.0f, 127.0f)));
    V::StoreInt8(codes + i, code);
    sum = V::Add(sum, code);  // exact: small whole numbers
  }
  return static_cast<int32_t>(V::AddLanes(sum));
}

template <class V>
HX_INLINE float LargestMagnitude(const float* x) {
  const auto first = V::Load(x);
  const auto second = V::Load(x + 16);
  if ((V::NotEqual(first, first) | V::NotEqual(second, second)) != 0) {
    return __builtin_nanf("");
  }
  return V::MaxLanes(V::Max(V::Abs(first), V::Abs(second)));
}

template <class V>
HX_INLINE void QuantizeRowsBody(const QuantizeRowsArgs& args) {
  const int64_t blocks = args.k / kQuantBlock;
  for (int64_t r = 0; r < args.rows; ++r) {
    for (int64_t b = 0; b < blocks; ++b) {
      const float* x = args.x + r * args.x_stride + b * kQuantBlock;
      const float amax = LargestMagnitude<V>(x);
      const float inverse = amax == 0.0f ? 0.0f : 127.0f / amax;
      int8_t* codes = args.out.codes + r * args.k + b * kQuantBlock;
      args.out.sums[r * blocks + b] = RoundBlock<V>(x, inverse, codes);
      args.out.scales[r * blocks + b] = amax / 127.0f;
    }
  }
}

// --- Grids.

template <class V>
HX_INLINE void RoundCodesBody(const RoundCodesArgs& args) {
  const auto scale = V::Set(args.scale);
  const auto zero = static_cast<float>(args.zero_point);
  const auto least = static_cast<float>(args.least) - zero;
  const auto most = static_cast<float>(args.most) - zero;
  Map<V>(args.x, args.out, args.n, [&](typename V::F x) {
    const auto steps = V::RoundEven(V::Div(x, scale));
    const auto clamped = NumberOrZero<V>(Clamp<V>(steps, least, most));
    // -0 becomes 0: there is one code for both.
    return V::Mul(V::Add(clamped, V::Set(0.0f)), scale);
  });
}

// --- Softmax.

// The last n < 16 elements, padded with -infinity.
template <class V>
HX_INLINE typename V::F LoadHidden(const float* x, int64_t n) {
  float all[16];
  V::Store(all, V::Set(-__builtin_inff()));
  for (int64_t i = 0; i < n; ++i) all[i] = x[i];
  return V::Load(all);
}

template <class V>
HX_INLINE float LargestOf(const float* x, int64_t n) {
  auto max = V::Set(-__builtin_inff());
  int64_t i = 0;
  for (; i + 16 <= n; i += 16) max = V::Max(V::Load(x + i), max);
  if (i < n) max = V::Max(LoadHidden<V>(x + i, n - i), max);
  return V::MaxLanes(max);
}

// An exact sum of numbers in [0, 1], whatever their order.
template <class V>
class ExactSum {
 public:
  HX_INLINE ExactSum() {
    for (auto& lane : lanes_) lane = V::DoubleSet(0.0);
  }
  HX_INLINE void Add(typename V::F x) {
    // Adding 2^16 leaves multiples of 2^-36.
    const auto grid = V::DoubleSet(65536.0);
    const auto one = V::DoubleSet(1.0);
    double wide[16];
    V::StoreWidened(wide, x);
    for (int i = 0; i < kLanes; ++i) {
      const auto shifted =
          V::DoubleFma(V::DoubleLoad(wide + i * V::kDoubles), one, grid);
      const auto term = V::DoubleFma(grid, V::DoubleSet(-1.0), shifted);
      lanes_[i] = V::DoubleFma(term, one, lanes_[i]);
    }
  }
  HX_INLINE float Get() const {
    double all[16];
    double sum = 0;
    for (int i = 0; i < kLanes; ++i)
      V::DoubleStore(all + i * V::kDoubles, lanes_[i]);
    for (const double lane : all) sum += lane;
    return static_cast<float>(sum);
  }

 private:
  static constexpr int kLanes = 16 / V::kDoubles;
  typename V::D lanes_[Bound(kLanes)];
};

template <class V>
HX_INLINE void SoftmaxRow(const float* x, float* out, int64_t width) {
  const float largest = LargestOf<V>(x, width);
  // A row that is hidden as a whole: all exponentials are zero.
  const auto max = V::Set(largest == -__builtin_inff() ? 0.0f : largest);
  ExactSum<V> exact;
  int64_t i = 0;
  for (; i + 16 <= width; i += 16) {
    const auto e = Exp<V>(V::Sub(V::Load(x + i), max));
    V::Store(out + i, e);
    exact.Add(e);
  }
  if (i < width) {
    const auto e = Exp<V>(V::Sub(LoadHidden<V>(x + i, width - i), max));
    V::StorePartial(out + i, e, width - i);
    exact.Add(e);
  }
  const float sum = exact.Get();
  const auto all = V::Set(sum);
  Map<V>(out, out, width, [&](typename V::F e) {
    return sum == 0.0f ? V::Set(0.0f) : V::Div(e, all);
  });
}

template <class V>
HX_INLINE void SoftmaxBody(const SoftmaxArgs& args) {
  for (int64_t r = 0; r < args.rows; ++r) {
    const int64_t at = r * args.width;
    SoftmaxRow<V>(args.x + at, args.out + at, args.width);
  }
}

}  // namespace
}  // namespace hexllm::cpu
