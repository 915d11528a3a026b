// Whole decoders of two layers on the HTP's simulator against the interpreter
// of the same graph with encodings, output by output.
#include <gtest/gtest.h>

#include <cmath>

#include "backend/htp/lower_rounding.h"
#include "backend/htp/lower_testing.h"
#include "backend/htp/qnn_testing.h"
#include "backend/htp/tensor_name.h"
#include "ir/interpret.h"
#include "quant/decoder_testing.h"

namespace hexllm::htp {
namespace {

constexpr uint32_t kVocab = 32;  // of TinyLlama

// What the lowering would choose, or what it would not: attention in the other
// form, RoPE without RotaryEmbedding.
enum class Form : uint8_t { kUsual, kOther };

struct Variant {
  std::string_view scheme;
  int kv_bits;
  double least_db;  // signal to noise of an output
  Form form = Form::kUsual;
  std::string_view soc = "SM8750";
};

HtpTarget TargetFor(const Variant& variant, const ir::Graph& graph) {
  HtpTarget target{.lib_dir = *FindQnnFolder(),
                   .soc = std::string(variant.soc),
                   .vocab = kVocab};
  if (variant.form == Form::kUsual) return target;
  target.attention = FasterForm(graph, 79) == AttentionForm::kGrouped
                         ? AttentionForm::kByHeads
                         : AttentionForm::kGrouped;
  target.absent_ops = {"RotaryEmbedding"};
  return target;
}

// Signal to noise in dB: `wanted` against the difference.
double SignalToNoise(std::span<const float> found,
                     std::span<const float> wanted) {
  double signal = 0;
  double noise = 1e-30;
  for (size_t i = 0; i < wanted.size(); ++i) {
    const double difference =
        static_cast<double>(found[i]) - static_cast<double>(wanted[i]);
    signal += static_cast<double>(wanted[i]) * static_cast<double>(wanted[i]);
    noise += difference * difference;
  }
  return 10 * std::log10(signal / noise);
}

// A decoder with encodings. Hidden columns are at the mask's lowest number.
class EncodedDecoder {
 public:
  explicit EncodedDecoder(const Variant& variant)
      : decoder_(testing::TinyLlama(), "htp") {
    const quant::Ranges ranges = quant::Calibrate(decoder_.module);
    const auto recipe = quant::RecipeOf(variant.scheme, variant.kv_bits);
    const auto warnings = quant::AssignEncodings(
        decoder_.module, {.recipe = &recipe, .ranges = &ranges});
    EXPECT_TRUE(warnings.ok()) << warnings.error().message;
    ModelRounding(decoder_.module, FindSoc(variant.soc).value());
  }
  const ir::Module& module() const { return decoder_.module; }

 private:
  quant::LoweredDecoder decoder_;
};

class HtpDecoder
    : public ::testing::TestWithParam<std::tuple<Variant, size_t>> {};

TEST_P(HtpDecoder, MatchesTheInterpreter) {
  if (!FindQnnFolder()) GTEST_SKIP() << kNoQnn;
  const auto& [variant, index] = GetParam();
  const EncodedDecoder decoder(variant);
  const ir::Graph& graph = decoder.module().graphs[index];
  const auto inputs = quant::MadeUpInputs(graph, -60000);
  const auto found =
      RunOnHtp(decoder.module(), index, TargetFor(variant, graph), inputs);
  ASSERT_TRUE(found.ok()) << found.error().message;
  const auto wanted = ir::Interpret(decoder.module(), graph, inputs);
  for (size_t i = 0; i < wanted.size(); ++i) {
    const ir::GraphIo& io = graph.outputs[i];
    const double db = SignalToNoise((*found)[i].floats, wanted[i].floats);
    RecordProperty(TensorNameOf(io.role), std::to_string(db));
    EXPECT_GE(db, variant.least_db) << RoleToString(io.role);
  }
}

std::string NameOf(
    const ::testing::TestParamInfo<std::tuple<Variant, size_t>>& info) {
  const Variant& variant = std::get<0>(info.param);
  return std::string(variant.soc) + "_" + std::string(variant.scheme) +
         "_cache" + std::to_string(variant.kv_bits) +
         (variant.form == Form::kOther ? "_other" : "") +
         (std::get<1>(info.param) == 0 ? "_prefill" : "_kv");
}

// A cache of 8 bits has 8 numbers per token here: two of them a step away, as
// before v73, are 38 dB.
constexpr Variant kVariants[] = {{"16a8w", 8, 70},
                                 {"16a8w", 16, 58},
                                 {"16a8w", 16, 58, Form::kOther},
                                 {"16a4w", 8, 58},
                                 {"8a8w", 8, 20},
                                 {"fp16", 16, 50},
                                 {"fp16", 16, 50, Form::kOther},
                                 {"16a8w", 8, 70, Form::kUsual, "SM8850"},
                                 {"16a4w", 8, 58, Form::kUsual, "SM8850"},
                                 {"16a8w", 8, 70, Form::kUsual, "SM8650"},
                                 {"16a8w", 16, 58, Form::kUsual, "SM8650"},
                                 {"16a4w", 8, 58, Form::kUsual, "SM8650"},
                                 {"16a8w", 8, 70, Form::kUsual, "SM8550"},
                                 {"16a4w", 8, 58, Form::kUsual, "SM8550"},
                                 {"16a8w", 8, 45, Form::kUsual, "SM8450"},
                                 {"16a4w", 8, 36, Form::kUsual, "SM8450"},
                                 {"16a8w", 8, 45, Form::kUsual, "SM8350"}};

// Graph 0 is prefill_4, without a cache before it; 1 is kv.
INSTANTIATE_TEST_SUITE_P(Schemes, HtpDecoder,
                         ::testing::Combine(::testing::ValuesIn(kVariants),
                                            ::testing::Values(0U, 1U)),
                         NameOf);

}  // namespace
}  // namespace hexllm::htp
