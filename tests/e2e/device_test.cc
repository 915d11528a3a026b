// A checkpoint compiled for the HTP and run in the vendor's x86 simulator,
// beside the same graphs on the CPU engine and the float golden. The figures
// are the simulator's, not a phone's.
#include <gtest/gtest.h>

#include "tests/e2e/run_model.h"
#include "tests/support/golden_tensors.h"
#include "tests/support/qnn_folder.h"
#include "tests/support/sqnr.h"

namespace hexllm::testing {
namespace {

struct Expectation {
  std::string recipe;
  std::string soc;
  double least_db;  // device against qdq; for fp16 against the float golden
};

void PrintTo(const Expectation& value, std::ostream* out) {
  *out << value.recipe << " on " << value.soc;
}

class Device : public ::testing::TestWithParam<Expectation> {
 protected:
  void SetUp() override {
    if (!qnn_) GTEST_SKIP() << kNoQnn;
  }

  std::vector<float> Logits(Stage stage) const {
    CompileOptions options = AllLogits(1, 32);
    options.mode = ModelMode::kKv;
    options.prefill_ar_len.reset();
    options.recipe = GetParam().recipe;
    if (GetParam().recipe != "fp16")
      options.calibration.ids = {golden_.Ints("p1.input_ids")};
    options.stage = stage;
    const bool device = stage == Stage::kDevice;
    if (device) {
      options.target = {.name = "htp",
                        .soc = GetParam().soc,
                        .qnn_lib_dir = *qnn_,
                        .use = htp::ContextUse::kSimulator};
    }
    NullProgress progress;
    auto artifact =
        CompileToMemory(DataPath("models/llama3_2_1b"), options, progress);
    if (!artifact.ok()) {
      ADD_FAILURE() << artifact.error().message;
      return {};
    }
    const auto engine = CreateEngine(device ? "htp" : "cpu",
                                     {.threads = 2, .qnn_lib_dir = *qnn_});
    const auto session = Session::Create({*artifact, engine->get(), {}});
    if (!session.ok()) {
      ADD_FAILURE() << session.error().message;
      return {};
    }
    return AllLogitsOf(**session, Ids());
  }

  std::vector<int32_t> Ids() const {
    std::vector<int32_t> ids = golden_.Ints("p1.input_ids");
    ids.resize(10);  // the simulator takes its time
    return ids;
  }

  const GoldenTensors golden_{
      DataPath("models/llama3_2_1b/golden.safetensors")};
  const std::optional<std::string> qnn_ = FindQnnFolder();
};

TEST_P(Device, IsNearItsReference) {
  const std::vector<float> device = Logits(Stage::kDevice);
  std::vector<float> reference;
  if (GetParam().recipe == "fp16") {
    reference = golden_.Floats("p1.logits");
    reference.resize(device.size());
  } else {
    reference = Logits(Stage::kQdq);
  }
  const double sqnr = Sqnr(reference, device);
  std::printf("%-12s %s SQNR %.1f dB\n", GetParam().recipe.c_str(),
              GetParam().soc.c_str(), sqnr);
  EXPECT_GE(sqnr, GetParam().least_db);
}

INSTANTIATE_TEST_SUITE_P(Htp, Device,
                         ::testing::Values(Expectation{"fp16", "SM8750", 40},
                                           Expectation{"16a8w", "SM8550", 40},
                                           Expectation{"16a8w", "SM8750", 40},
                                           Expectation{"16a8w", "SM8850", 40},
                                           Expectation{"16a4w", "SM8750", 40},
                                           Expectation{"16a4w_block", "SM8750",
                                                       40}),
                         [](const auto& instance) {
                           return instance.param.recipe + "_" +
                                  instance.param.soc;
                         });

}  // namespace
}  // namespace hexllm::testing
