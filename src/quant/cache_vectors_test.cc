// Against reference vectors made by another implementation
// (tests/data/quant): KV caches of 8 bits and the rotation R3.
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "quant/hadamard.h"
#include "quant/vectors_testing.h"

namespace hexllm::quant {
namespace {

constexpr int64_t kHeads = 4;
constexpr int64_t kKvHeads = 2;
constexpr int64_t kSteps = 21;
constexpr int64_t kHeadDim = 16;

class CacheVectors : public ::testing::Test {
 protected:
  // q [H,T,D], k and v [G,T,D] -> [H,T,D], causal.
  std::vector<float> Attend(const std::vector<float>& q,
                            const std::vector<float>& k,
                            const std::vector<float>& v) const {
    const auto transposed = [](const std::vector<float>& x, Shape shape,
                               std::vector<int64_t> perm) {
      return testing::RunOp(ir::OpKind::kTranspose,
                            {testing::F32(std::move(shape), x)},
                            {{ir::AttrName::kPerm, std::move(perm)}});
    };
    ir::HostTensor mask = testing::F32({kSteps, kSteps}, {});
    for (int64_t i = 0; i < kSteps; ++i) {
      for (int64_t j = 0; j < kSteps; ++j)
        mask.floats.push_back(j <= i ? 0.0f : -INFINITY);
    }
    const ir::HostTensor out =
        testing::RunOp(ir::OpKind::kAttention,
                       {transposed(q, {kHeads, kSteps, kHeadDim}, {1, 0, 2}),
                        testing::F32({kKvHeads, kHeadDim, 0}, {}),
                        testing::F32({kKvHeads, 0, kHeadDim}, {}),
                        transposed(k, {kKvHeads, kSteps, kHeadDim}, {0, 2, 1}),
                        testing::F32({kKvHeads, kSteps, kHeadDim}, v), mask},
                       {{ir::AttrName::kScale, 1 / std::sqrt(16.0)},
                        {ir::AttrName::kSoftcap, 0.0}});
    return transposed(out.floats, {kSteps, kHeads, kHeadDim}, {1, 0, 2}).floats;
  }
  void ExpectClose(const std::vector<float>& found,
                   const std::vector<float>& wanted, double tolerance) const {
    const auto count = static_cast<int64_t>(wanted.size());
    ASSERT_EQ(found.size(), wanted.size());
    testing::ExpectTensor(testing::F32({count}, found),
                          testing::F32({count}, wanted), tolerance);
  }
  // Codes, scales and dequantized values of one of k and v as a weight of
  // `rows` rows, checked against the vectors.
  std::vector<float> Checked(const std::string& prefix, const char* name,
                             int64_t rows) const {
    const std::vector<float> x = vectors_.Floats(name);
    const int64_t columns = static_cast<int64_t>(x.size()) / rows;
    const ir::Encoding encoding =
        Encode(Owned({rows, columns}, x), SettingsOf("16a8w"));
    EXPECT_EQ(encoding.scales, vectors_.Floats(prefix + name + "_scale"));
    EXPECT_EQ(CodesOf(encoding, x, columns),
              vectors_.Ints(prefix + name + "_q"));
    return Rounded(encoding, {rows, columns}, x);
  }

  const Vectors vectors_{"quant_kv_r3.safetensors"};
  const std::vector<float> q_ = vectors_.Floats("q");
  const std::vector<float> k_ = vectors_.Floats("k");
  const std::vector<float> v_ = vectors_.Floats("v");
};

TEST_F(CacheVectors, Float) {
  ExpectClose(Attend(q_, k_, v_), vectors_.Floats("attn_f32"), 1e-6);
}

TEST_F(CacheVectors, Symmetric) {
  const std::pair<const char*, int64_t> cases[] = {
      {"s8_per_tensor", 1},
      {"s8_per_head", kKvHeads},
      {"s8_per_token_head", kKvHeads * kSteps}};
  for (const auto& [name, rows] : cases) {
    const std::string prefix = std::string(name) + ".";
    ExpectClose(
        Attend(q_, Checked(prefix, "k", rows), Checked(prefix, "v", rows)),
        vectors_.Floats(prefix + "attn"), 1e-6);
  }
}

TEST_F(CacheVectors, Asymmetric) {
  std::vector<float> rounded[2];
  for (const bool is_k : {true, false}) {
    const std::string name = is_k ? "k" : "v";
    const std::vector<float>& x = is_k ? k_ : v_;
    const ir::Encoding encoding = ActivationEncoding(RangeOfAll(x), 8, false);
    const std::vector<double> wanted =
        vectors_.Doubles("u8." + name + "_scale_zp");
    EXPECT_EQ(static_cast<double>(encoding.scales[0]), wanted[0]);
    EXPECT_EQ(encoding.zero_points[0], wanted[1]);
    EXPECT_EQ(CodesOf(encoding, x, kHeadDim),
              vectors_.Ints("u8." + name + "_q"));
    rounded[is_k ? 0 : 1] = Rounded(encoding, {kKvHeads, kSteps, kHeadDim}, x);
  }
  ExpectClose(Attend(q_, rounded[0], rounded[1]), vectors_.Floats("u8.attn"),
              1e-6);
}

std::vector<float> RotatedRows(std::vector<float> x) {
  for (size_t at = 0; at < x.size(); at += kHeadDim)
    HadamardTransform(std::span(x).subspan(at, kHeadDim));
  return x;
}

TEST_F(CacheVectors, Rotation) {
  EXPECT_EQ(HadamardMatrix(kHeadDim), vectors_.Floats("r3.H"));
  const std::vector<float> qh = RotatedRows(q_);
  const std::vector<float> kh = RotatedRows(k_);
  ExpectClose(qh, vectors_.Floats("r3.qH"), 1e-6);
  ExpectClose(kh, vectors_.Floats("r3.kH"), 1e-6);

  std::vector<float> scores, rotated_scores;
  for (size_t h = 0; h < kHeads; ++h) {
    for (size_t i = 0; i < kSteps * kSteps; ++i) {
      const size_t row = (h * kSteps + i / kSteps) * kHeadDim;
      const size_t column =
          (h / (kHeads / kKvHeads) * kSteps + i % kSteps) * kHeadDim;
      double plain = 0, rotated = 0;
      for (size_t d = 0; d < kHeadDim; ++d) {
        plain += static_cast<double>(q_[row + d]) *
                 static_cast<double>(k_[column + d]);
        rotated += static_cast<double>(qh[row + d]) *
                   static_cast<double>(kh[column + d]);
      }
      scores.push_back(static_cast<float>(plain));
      rotated_scores.push_back(static_cast<float>(rotated));
    }
  }
  ExpectClose(scores, vectors_.Floats("r3.scores"), 1e-5);
  ExpectClose(rotated_scores, vectors_.Floats("r3.scores"), 1e-5);
}

// The reference rotates by a matrix product, whose sums differ in the last bit:
// at most 0.2 % of the codes may be off by one.
TEST_F(CacheVectors, RotatedCache) {
  const std::vector<float> kh = RotatedRows(k_);
  const int64_t columns = static_cast<int64_t>(kh.size());
  const ir::Encoding encoding =
      Encode(Owned({1, columns}, kh), SettingsOf("16a8w"));
  const float wanted_scale = vectors_.Floats("r3.k_scale")[0];
  EXPECT_NEAR(encoding.scales[0], wanted_scale, wanted_scale * 1e-6f);
  const auto codes = CodesOf(encoding, kh, columns);
  const auto wanted = vectors_.Ints("r3.k_q");
  ASSERT_EQ(codes.size(), wanted.size());
  size_t different = 0;
  for (size_t i = 0; i < codes.size(); ++i) {
    EXPECT_LE(std::abs(codes[i] - wanted[i]), 1);
    if (codes[i] != wanted[i]) ++different;
  }
  EXPECT_LE(static_cast<double>(different),
            0.002 * static_cast<double>(codes.size()));
  ExpectClose(Attend(RotatedRows(q_), Rounded(encoding, {1, columns}, kh), v_),
              vectors_.Floats("r3.attn_s8"), 1e-5);
}

}  // namespace
}  // namespace hexllm::quant
