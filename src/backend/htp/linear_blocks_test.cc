// Linears with 4-bit weights in blocks, of many widths, on the HTP's simulator
// against the interpreter. By itself the library computes garbage for blocks of
// 16 when there are more than 32 input channels and no multiple of 32, and
// crashes on loaded contexts with blocks of 64, of 448 or 896 channels for one.
// And with 16 rows it computes garbage for all weights.
#include <gtest/gtest.h>

#include <cmath>

#include "backend/htp/lower_rounding.h"
#include "backend/htp/lower_testing.h"
#include "backend/htp/qnn_testing.h"
#include "ir/interpret.h"
#include "tests/support/ir_tensors.h"

namespace hexllm::htp {
namespace {

struct LinearShape {
  int64_t in;
  int64_t out;
  int32_t block;
};

std::string Describe(const LinearShape& shape) {
  return std::to_string(shape.in) + " to " + std::to_string(shape.out) +
         ", blocks of " + std::to_string(shape.block);
}

// All widths up to 256, and those of real models.
std::vector<LinearShape> Shapes() {
  std::vector<LinearShape> shapes;
  for (const int32_t block : {16, 32, 64}) {
    for (int64_t in = block; in <= 256; in += block)
      shapes.push_back(
          {.in = in, .out = in % 96 == 0 ? 8 : 72, .block = block});
    for (const int64_t in :
         {448, 576, 896, 1152, 2048, 2304, 4864, 6912, 9216}) {
      if (in % block == 0) shapes.push_back({in, 40, block});
    }
  }
  return shapes;
}

// A linear for each shape, side by side in one graph.
class BlockLinears {
 public:
  explicit BlockLinears(int64_t tokens) : tokens_(tokens) {
    ir::Graph& graph = module.graphs.emplace_back();
    graph.name = "linears";
    graph.kind = GraphKind::kPrefill;
    for (const LinearShape& shape : Shapes()) Add(shape);
  }

  ir::Module module;
  std::vector<ir::HostTensor> inputs;

 private:
  static ir::Encoding Codes(float most) {
    return {
        .dtype = DType::kU16, .scales = {most / 32767}, .zero_points = {32768}};
  }

  ir::Encoding Blocks(const LinearShape& shape) {
    ir::Encoding encoding{
        .dtype = DType::kI8, .bits = 4, .axis = 0, .block = shape.block};
    for (int64_t n = 0; n < shape.out; ++n)
      encoding.scales.push_back((0.5F + random_.Unit() / 2) / 7 / 16);
    for (int64_t i = 0; i < shape.out * shape.in / shape.block; ++i)
      encoding.block_scales.push_back(
          static_cast<uint8_t>(1 + random_.Below(16)));
    return encoding;
  }

  void Add(const LinearShape& shape) {
    ir::Graph& graph = module.graphs[0];
    ir::HostTensor x = testing::RandomF32({tokens_, shape.in}, random_);
    const auto index = static_cast<int32_t>(inputs.size());
    const ir::ValueId input =
        graph.AddInput({.kind = RoleKind::kKIn, .index = index}, x.type);
    graph[input].encoding = Codes(1);
    ir::RoundToEncoding(Codes(1), x.type.shape, x.floats);
    inputs.push_back(std::move(x));
    const std::string name = "linear." + std::to_string(index);
    ir::Constant w = ir::MakeRandomConstant(
        name + ".w", {.dtype = DType::kF32, .shape = {shape.out, shape.in}});
    w.encoding = Blocks(shape);
    const ir::ConstantId id = module.constants.Add(std::move(w));
    const ir::ValueId output = graph.AddNode(
        ir::OpKind::kLinear,
        {input, graph.AddConstant(id, module.constants[id])}, {}, name);
    graph[output].encoding = Codes(std::sqrt(static_cast<float>(shape.in)) / 2);
    graph.AddOutput({.kind = RoleKind::kTap, .name = name}, output);
  }

  int64_t tokens_;
  ir::PseudoRandom random_{7};
};

struct Target {
  const char* soc;
  int64_t tokens;
  double most_steps;  // as conformance_test.cc has them
};

class HtpLinearBlocks : public ::testing::TestWithParam<Target> {};

TEST_P(HtpLinearBlocks, AreRightForAllWidths) {
  const auto folder = FindQnnFolder();
  if (!folder) GTEST_SKIP() << kNoQnn;
  BlockLinears linears(GetParam().tokens);
  ModelRounding(linears.module, FindSoc(GetParam().soc).value());
  const ir::Graph& graph = linears.module.graphs[0];
  const auto found = RunOnHtp(
      linears.module, 0,
      {.lib_dir = *folder, .soc = GetParam().soc, .vocab = 7}, linears.inputs);
  ASSERT_TRUE(found.ok()) << found.error().message;
  const auto wanted = ir::Interpret(linears.module, graph, linears.inputs);
  const std::vector<LinearShape> shapes = Shapes();
  for (size_t i = 0; i < shapes.size(); ++i) {
    const double steps = MostSteps(*graph[graph.outputs[i].value].encoding,
                                   (*found)[i].floats, wanted[i].floats);
    EXPECT_LE(steps, GetParam().most_steps + 0.01) << Describe(shapes[i]);
  }
}

INSTANTIATE_TEST_SUITE_P(Socs, HtpLinearBlocks,
                         ::testing::Values(Target{"SM8450", 3, 30},
                                           Target{"SM8550", 3, 1},
                                           Target{"SM8750", 3, 1},
                                           Target{"SM8750", 16, 1}),
                         [](const auto& target) {
                           return target.param.soc + std::string("_") +
                                  std::to_string(target.param.tokens);
                         });

}  // namespace
}  // namespace hexllm::htp
