// Weights of types that no kernel reads.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "models/weight_binder.h"
#include "tests/support/safetensors_builder.h"
#include "tests/support/temp_dir.h"

namespace hexllm::models {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::SafetensorsBuilder;
using testing::TempDir;

class WeightTypes : public ::testing::Test {
 protected:
  WeightTypes() {
    const double doubles[] = {1.5, -0.25};
    const double huge[] = {1.5, 1e300};
    const auto checkpoint = Checkpoint::Open(dir_.Write(
        "model.safetensors",
        SafetensorsBuilder()
            .Add("f64", "F64", {1, 2},
                 AsText(std::as_bytes(std::span(doubles))))
            .Add("huge", "F64", {1, 2}, AsText(std::as_bytes(std::span(huge))))
            .Add("i32", "I32", {1, 2}, "12345678")
            .Add("i8", "I8", {1, 4}, std::string("\x00\x01\x80\x7F", 4))
            .Build()));
    EXPECT_TRUE(checkpoint.ok());
  }

  // Row 0 of the tensor as it is bound; empty on an error.
  std::vector<float> Bound(const std::string& name, int64_t columns) {
    source_.checkpoint = std::make_shared<const Checkpoint>(
        Checkpoint::Open(dir_.File("model.safetensors")).value());
    ir::ConstantStore constants;
    WeightBinder binder(source_, constants);
    const auto id = binder.Bind({name, {1, columns}});
    if (!id.ok()) {
      message_ = id.error().message;
      return {};
    }
    type_ = constants[*id].type.dtype;
    std::vector<float> row(static_cast<size_t>(columns));
    ir::ReadRow(constants[*id], 0, row);
    return row;
  }

  TempDir dir_;
  ModelSource source_;
  DType type_ = DType::kBool;
  std::string message_;
};

TEST_F(WeightTypes, DoublesBecomeFloats) {
  EXPECT_THAT(Bound("f64", 2), ElementsAre(1.5f, -0.25f));
  EXPECT_EQ(type_, DType::kF32);
}

TEST_F(WeightTypes, DoublesThatNoFloatHoldsAreRefused) {
  EXPECT_THAT(Bound("huge", 2), ElementsAre());
  EXPECT_THAT(message_, HasSubstr("tensor 'huge': expected f64 values"));
  EXPECT_THAT(message_, HasSubstr("found inf at element 1"));
}

TEST_F(WeightTypes, BytesAreNumbers) {
  EXPECT_THAT(Bound("i8", 4), ElementsAre(0, 1, -128, 127));
  EXPECT_EQ(type_, DType::kF16);
}

TEST_F(WeightTypes, OtherIntegersAreNoWeights) {
  EXPECT_THAT(Bound("i32", 2), ElementsAre());
  EXPECT_THAT(message_, HasSubstr("integer type i32"));
}

}  // namespace
}  // namespace hexllm::models
