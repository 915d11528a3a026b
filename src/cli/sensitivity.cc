#include "cli/sensitivity.h"

#include <memory>
#include <utility>

#include "backend/engines.h"
#include "compile/layer_probe.h"
#include "eval/compare.h"
#include "eval/score.h"
#include "ir/weight_size.h"
#include "quant/rounding_error.h"
#include "quant/weight_encoding.h"
#include "runtime/session.h"

namespace hexllm::cli {
namespace {

// Output channels that a layer's noise is found in: choosing scales by squared
// error takes long.
constexpr int64_t kNoiseRows = 128;

class Measurement {
 public:
  Measurement(const LayerProbe& probe, const quant::ResolvedRecipe& base,
              Engine& engine)
      : probe_(probe), base_(base), engine_(engine) {}

  // The float graph's logits, which all others are compared with.
  Status RunFloat() {
    HX_ASSIGN_OR_RETURN(const auto artifact, probe_.FloatArtifact());
    return Run(artifact, [this](std::span<const float> row) {
      rows_.emplace_back(row.begin(), row.end());
    });
  }

  Result<quant::LayerSensitivity> Measure(size_t layer) const {
    const quant::LayerId& id = probe_.layers()[layer];
    const std::vector<quant::LayerSettings> ways =
        quant::WaysFor(base_.For(id.name), id.inputs);
    const ir::Constant& weight = probe_.Weight(layer);
    quant::LayerSensitivity result{
        .layer = id,
        .weights = static_cast<uint64_t>(ir::NumRows(weight) * id.inputs),
        .is_head = probe_.IsHead(layer),
        .probed = quant::ProbedWay(ways),
        .ways = {}};
    const ir::Constant sample = quant::SampleRows(weight, kNoiseRows);
    for (const quant::LayerSettings& way : ways) {
      HX_ASSIGN_OR_RETURN(const ir::Constant rounded,
                          quant::RoundedWeight(sample, way));
      const quant::OutputError error = probe_.ErrorOf(layer, sample, rounded);
      result.ways.push_back(
          {.settings = way,
           .bytes = ir::EncodedBytes(quant::WeightFormat(weight, way),
                                     weight.type.shape),
           .noise = error.signal > 0 ? error.noise / error.signal : 0});
    }
    HX_ASSIGN_OR_RETURN(const ir::Constant rounded,
                        quant::RoundedWeight(weight, ways[result.probed]));
    HX_ASSIGN_OR_RETURN(result.kld, Divergence(layer, rounded));
    return result;
  }

 private:
  template <typename Visit>
  Status Run(const std::shared_ptr<const artifact::Artifact>& artifact,
             Visit visit) const {
    HX_ASSIGN_OR_RETURN(const auto session,
                        Session::Create({artifact, &engine_, {}}));
    const auto add = [&](uint32_t position,
                         std::span<const float> row) -> Status {
      HX_RETURN_IF_ERROR(CheckFinite(row, position));
      visit(row);
      return OkStatus();
    };
    for (const auto& ids : probe_.sequences())
      HX_RETURN_IF_ERROR(session->Logits(ids, add));
    return OkStatus();
  }

  Result<double> Divergence(size_t layer, const ir::Constant& rounded) const {
    HX_ASSIGN_OR_RETURN(const auto artifact,
                        probe_.WithRounded(layer, rounded));
    LogitsComparer comparer;
    size_t row = 0;
    HX_RETURN_IF_ERROR(Run(artifact, [&](std::span<const float> logits) {
      comparer.Add(rows_[row++], logits);
    }));
    return std::move(comparer).Finish().mean_kld;
  }

  const LayerProbe& probe_;
  const quant::ResolvedRecipe& base_;
  Engine& engine_;
  std::vector<std::vector<float>> rows_;  // of all sequences
};

}  // namespace

Result<std::vector<quant::LayerSensitivity>> MeasureSensitivities(
    const std::string& model, const CompileOptions& options,
    const quant::Recipe& base, ProgressSink& progress) {
  HX_ASSIGN_OR_RETURN(const LayerProbe probe,
                      LayerProbe::Open(model, options, base, progress));
  HX_ASSIGN_OR_RETURN(const quant::ResolvedRecipe resolved,
                      quant::ResolveRecipe(base, probe.layers()));
  HX_ASSIGN_OR_RETURN(const auto engine,
                      CreateEngine("cpu", {.threads = options.threads}));
  Measurement measurement(probe, resolved, *engine);
  const size_t count = probe.layers().size();
  progress.Begin("measure layers", "layers", static_cast<int64_t>(count));
  HX_RETURN_IF_ERROR(measurement.RunFloat());
  std::vector<quant::LayerSensitivity> layers;
  for (size_t i = 0; i < count; ++i) {
    HX_ASSIGN_OR_RETURN(quant::LayerSensitivity layer, measurement.Measure(i));
    layers.push_back(std::move(layer));
    progress.Update(static_cast<int64_t>(i + 1));
  }
  return layers;
}

}  // namespace hexllm::cli
