#include "compile/rotate.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <string>

#include "models/decoder.h"
#include "tests/support/golden_tensors.h"
#include "tests/support/safetensors_builder.h"
#include "tests/support/sqnr.h"
#include "tests/support/temp_dir.h"
#include "tests/support/tiny_llama.h"

namespace hexllm {
namespace {

using models::ModelSource;
using quant::Rotation;
using quant::RotationKind;
using testing::DataPath;
using testing::TempDir;
using testing::TinyLlama;

ModelSource Opened(const std::string& path) {
  auto source = models::OpenModel(path, {});
  EXPECT_TRUE(source.ok()) << source.error().message;
  return source.ok() ? std::move(*source) : ModelSource();
}

quant::Recipe Recipe(const quant::Rotations& rotations) {
  quant::Recipe recipe;
  recipe.defaults.scheme = quant::FindScheme("fp32");
  recipe.rotations = rotations;
  return recipe;
}

// The constants of a model, by name.
std::map<std::string, std::vector<float>> WeightsOf(const ModelSource& source) {
  std::map<std::string, std::vector<float>> weights;
  const models::GraphRequest graph;
  const auto module = models::BuildDecoder(source, {&graph, 1});
  EXPECT_TRUE(module.ok()) << module.error().message;
  if (!module.ok()) return weights;
  for (size_t i = 0; i < module->constants.size(); ++i) {
    const ir::Constant& constant = module->constants[{static_cast<int32_t>(i)}];
    const auto width = static_cast<size_t>(RowElems(constant));
    std::vector<float>& values = weights[constant.name];
    values.resize(width * static_cast<size_t>(NumRows(constant)));
    for (int64_t row = 0; row < NumRows(constant); ++row) {
      ReadRow(
          constant, row,
          std::span(values).subspan(static_cast<size_t>(row) * width, width));
    }
  }
  return weights;
}

void ExpectSameWeights(const ModelSource& found, const ModelSource& wanted) {
  const auto a = WeightsOf(found);
  const auto b = WeightsOf(wanted);
  ASSERT_EQ(a.size(), b.size());
  for (const auto& [name, values] : b) {
    ASSERT_EQ(a.count(name), 1u) << name;
    const std::vector<float>& other = a.at(name);
    ASSERT_EQ(other.size(), values.size()) << name;
    for (size_t i = 0; i < values.size(); ++i)
      ASSERT_NEAR(other[i], values[i], 1e-5) << name << " " << i;
  }
}

// SpinQuant's folding by another implementation (tests/data/quant): a model in
// Meta's layout as it was, with its norms folded, and rotated.
class SpinQuantVectors : public ::testing::Test {
 protected:
  // The tensors that begin with `prefix`, as a model.
  ModelSource Model(const std::string& prefix) {
    testing::SafetensorsBuilder builder;
    for (const TensorView& tensor : file_.tensors()) {
      if (!tensor.name.starts_with(prefix)) continue;
      builder.Add(tensor.name.substr(prefix.size()), "F32", tensor.shape,
                  AsText(tensor.data));
    }
    const std::string folder = dir_.File(prefix);
    std::filesystem::create_directory(folder);
    std::ofstream(folder + "/model.safetensors", std::ios::binary)
        << builder.Build();
    std::ofstream(folder + "/params.json")
        << R"({"dim": 32, "multiple_of": 32, "n_heads": 4, "n_kv_heads": 2,
               "n_layers": 2, "norm_eps": 1e-05, "vocab_size": 97})";
    return Opened(folder);
  }
  Rotation Given(const std::string& name, int64_t size) const {
    return Rotation::FromMatrix(golden_.Floats(name), size);
  }
  ModelSource Folded(const FoldedRotations& rotations) {
    NullProgress progress;
    auto made = FoldRotations(Model("orig."), rotations, progress);
    EXPECT_TRUE(made.ok()) << made.error().message;
    return made.ok() ? std::move(*made) : ModelSource();
  }

  const std::string path_ = DataPath("quant/spinquant_r1_r2.safetensors");
  const Checkpoint file_ = std::move(*Checkpoint::Open(path_));
  const testing::GoldenTensors golden_{path_};
  const TempDir dir_;
};

TEST_F(SpinQuantVectors, NormsAreFolded) {
  std::vector<float> unit(32 * 32);
  for (size_t i = 0; i < 32; ++i) unit[i * 33] = 1;
  ExpectSameWeights(Folded({.r1 = Rotation::FromMatrix(unit, 32)}),
                    Model("fused."));
}

TEST_F(SpinQuantVectors, WeightsAreRotated) {
  ExpectSameWeights(Folded({.r1 = Given("R1", 32),
                            .r2 = {Given("R2.0", 8), Given("R2.1", 8)}}),
                    Model("rotated."));
}

TEST(Rotate, NothingWantedIsTheSameModel) {
  const TempDir dir;
  TinyLlama().WriteFolder(dir);
  const ModelSource source = Opened(dir.path());
  NullProgress progress;
  const auto same = RotateModel(source, Recipe({}), progress);
  ASSERT_TRUE(same.ok());
  EXPECT_EQ(same->checkpoint, source.checkpoint);
}

TEST(Rotate, R2LeavesAllButValuesAlone) {
  const TempDir dir;
  TinyLlama().WriteFolder(dir);
  const ModelSource source = Opened(dir.path());
  NullProgress progress;
  const auto made =
      RotateModel(source, Recipe({.r2 = RotationKind::kHadamard}), progress);
  ASSERT_TRUE(made.ok()) << made.error().message;
  EXPECT_EQ(made->config.head, models::Head::kTied);
  const auto before = WeightsOf(source);
  for (const auto& [name, values] : WeightsOf(*made)) {
    const bool rotated = name.find(".v_proj") != std::string::npos ||
                         name.find(".o_proj") != std::string::npos;
    EXPECT_EQ(values != before.at(name), rotated) << name;
  }
}

// Tables of artifacts take no more room than the checkpoint's own, in steps of
// the types that hold any rotated row.
TEST(Rotate, ATableOf8BitsKeeps8Bits) {
  quant::Recipe recipe = Recipe({.r1 = RotationKind::kHadamard});
  recipe.defaults.scheme = quant::FindScheme("16a8w");
  const auto rotated = [&](const std::string& type) {
    NullProgress progress;
    auto made =
        RotateModel(Opened(DataPath("gguf/llama/llama-h64-" + type + ".gguf")),
                    recipe, progress);
    EXPECT_TRUE(made.ok()) << made.error().message;
    return made.ok() ? std::move(*made) : ModelSource();
  };
  const auto type_of = [](const ModelSource& source) {
    return models::EmbeddingTable(source)->type.dtype;
  };
  const ModelSource exact = rotated("F32");
  const ModelSource narrow = rotated("Q8_0");
  EXPECT_EQ(type_of(exact), DType::kF16);
  EXPECT_EQ(type_of(rotated("BF16")), DType::kF16);
  EXPECT_EQ(type_of(rotated("Q4_1")), DType::kQ8_0);
  EXPECT_EQ(type_of(narrow), DType::kQ8_0);
  const std::string name = "model.embed_tokens.weight";
  EXPECT_GT(testing::Sqnr(WeightsOf(exact)[name], WeightsOf(narrow)[name]), 35);
}

// What cannot be rotated, and the key that asks for it.
TEST(Rotate, RefusesWhatItWouldChange) {
  const auto error_of = [](const models::DecoderConfig& config,
                           const quant::Rotations& wanted) {
    const Status status = CheckRotations(config, wanted);
    if (status.ok()) return std::string("none");
    EXPECT_EQ(status.error().code, ErrorCode::kUnsupported);
    return status.error().message;
  };
  const quant::Rotations r1{.r1 = RotationKind::kRandom};
  const quant::Rotations r3{.r3 = RotationKind::kHadamard};
  models::DecoderConfig config;
  config.hidden = 24;
  config.head_dim = 8;
  EXPECT_EQ(error_of(config, r1), "none");
  EXPECT_EQ(error_of(config, r3), "none");
  config.norm_placement = models::NormPlacement::kBeforeAndAfter;
  EXPECT_NE(error_of(config, r1).find("r1: the weights of norms behind"),
            std::string::npos);
  config.norm = models::NormKind::kLayer;
  config.head_dim = 12;
  EXPECT_NE(error_of(config, r1).find("r1: LayerNorm"), std::string::npos);
  EXPECT_EQ(PossibleRotations(config, {.r1 = RotationKind::kRandom,
                                       .r2 = RotationKind::kRandom,
                                       .r3 = RotationKind::kHadamard,
                                       .seed = 3}),
            (quant::Rotations{.r2 = RotationKind::kRandom, .seed = 3}));
  EXPECT_NE(error_of(config, r3)
                .find("r3: expected heads of a power of two, "
                      "found 12"),
            std::string::npos);
}

}  // namespace
}  // namespace hexllm
