// Files as others write them (tests/data/): the same weights in several types
// must come out alike, and real folders must open.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "base/dequantize.h"
#include "checkpoint/checkpoint.h"

namespace hexllm {
namespace {

std::string DataPath(const std::string& name) {
  return std::string(HEXLLM_SOURCE_DIR) + "/tests/data/" + name;
}

std::vector<float> Widen(const TensorView& tensor) {
  std::vector<float> out(static_cast<size_t>(*NumElements(tensor.shape)));
  DequantizeRow(tensor.dtype, tensor.data, out);
  return out;
}

// Signal to noise of `b` as an approximation of `a`, in dB.
double Sqnr(const std::vector<float>& a, const std::vector<float>& b) {
  double signal = 0;
  double noise = 1e-30;
  for (size_t i = 0; i < a.size(); ++i) {
    const double x = a[i];
    const double error = x - b[i];
    signal += x * x;
    noise += error * error;
  }
  return 10 * std::log10(signal / noise);
}

struct Pair {
  const char* reference;
  const char* file;
  double least_db;  // of the worst tensor; measured minus about 1 dB
};

class SameWeights : public ::testing::TestWithParam<Pair> {};

TEST_P(SameWeights, ComeOutAlike) {
  const auto reference = Checkpoint::Open(
      DataPath(fmt::format("gguf/llama/{}.gguf", GetParam().reference)));
  const auto checkpoint = Checkpoint::Open(
      DataPath(fmt::format("gguf/llama/{}.gguf", GetParam().file)));
  ASSERT_TRUE(reference.ok()) << reference.error().message;
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.error().message;
  ASSERT_EQ(checkpoint->tensors().size(), reference->tensors().size());
  for (const TensorView& expected : reference->tensors()) {
    const TensorView* tensor = checkpoint->Find(expected.name);
    ASSERT_NE(tensor, nullptr) << expected.name;
    ASSERT_EQ(tensor->shape, expected.shape) << expected.name;
    EXPECT_GE(Sqnr(Widen(expected), Widen(*tensor)), GetParam().least_db)
        << expected.name;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Gguf, SameWeights,
    ::testing::Values(Pair{"llama-h64-F32", "llama-h64-F16", 72},
                      Pair{"llama-h64-F32", "llama-h64-BF16", 54},
                      Pair{"llama-h64-F32", "llama-h64-Q8_0", 44},
                      Pair{"llama-h64-F32", "llama-h64-Q4_0", 20},
                      Pair{"llama-h64-F32", "llama-h64-Q4_1", 21},
                      Pair{"llama-h256-Q6_K", "llama-h256-Q4_K", 21},
                      Pair{"llama-h256-Q6_K", "llama-h256-Q4_K_M", 21}));

TEST(PublishedFolder, WithShardsOpens) {
  const auto checkpoint = Checkpoint::Open(DataPath("models/llama3_2_3b"));
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.error().message;
  EXPECT_EQ(checkpoint->files().size(), 3u);
  EXPECT_EQ(checkpoint->tensors().size(), 29u);
  const TensorView* norm = checkpoint->Find("model.norm.weight");
  ASSERT_NE(norm, nullptr);
  EXPECT_EQ(norm->dtype, DType::kBF16);
}

TEST(PublishedFolder, WithOneFileOpens) {
  const auto checkpoint = Checkpoint::Open(DataPath("models/smollm2_135m"));
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.error().message;
  EXPECT_EQ(checkpoint->tensors().size(), 38u);
  EXPECT_EQ(checkpoint->Find("model.embed_tokens.weight")->shape,
            (Shape{512, 72}));
}

}  // namespace
}  // namespace hexllm
