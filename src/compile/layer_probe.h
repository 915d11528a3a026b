// One linear at a time: the float graph with the weight of a single layer
// rounded, and what that does to the layer's own output. What sensitivities
// (quant/sensitivity.h) are measured with; running and comparing such graphs is
// cli/'s business. Weights stay in the mapped checkpoint.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "artifact/artifact.h"
#include "base/progress.h"
#include "base/status.h"
#include "compile/calibration_set.h"
#include "compile/compiler.h"
#include "ir/constant.h"
#include "ir/graph.h"
#include "models/model_source.h"
#include "quant/recipe.h"
#include "quant/rounding_error.h"

namespace hexllm {

class LayerProbe {
 public:
  // Opens the checkpoint at `model_path` as `options` say and runs
  // the float graph once, on the first tokens of the calibration set, to keep
  // what goes into each linear. Of `options`: source, calibration, threads; of
  // `recipe`: the rotations. Errors of OpenModel, MakeCalibrationSet,
  // RotateModel and the CPU engine.
  static Result<LayerProbe> Open(const std::string& model_path,
                                 const CompileOptions& options,
                                 const quant::Recipe& recipe,
                                 ProgressSink& progress);

  // The linears that recipes are about, in the order of the graph, each once.
  std::span<const quant::LayerId> layers() const { return layers_; }
  // The weight of `layer`, an index of layers().
  const ir::Constant& Weight(size_t layer) const;
  // True when the logits are what it gives.
  bool IsHead(size_t layer) const;
  // What graphs are run on: 1 or 2 sequences of at most kSequenceTokens.
  const TokenSequences& sequences() const { return sequences_; }
  const models::ModelSource& source() const { return source_; }

  // The error of the outputs of `layer` that `weight`, its weight or a sample
  // of its rows, has with `rounded` in its place, on the inputs that were kept.
  quant::OutputError ErrorOf(size_t layer, const ir::Constant& weight,
                             const ir::Constant& rounded) const;

  // The float graph, logits for all rows; with `rounded` as the weight of
  // `layer`. Holds the checkpoint.
  Result<std::shared_ptr<const artifact::Artifact>> FloatArtifact() const;
  Result<std::shared_ptr<const artifact::Artifact>> WithRounded(
      size_t layer, const ir::Constant& rounded) const;

  static constexpr size_t kSequences = 2;
  static constexpr size_t kSequenceTokens = 64;
  // Rows of each linear's input that are kept.
  static constexpr size_t kInputRows = 64;

 private:
  LayerProbe(models::ModelSource source, TokenSequences sequences,
             ir::Module module);
  Status KeepInputs(int threads, ProgressSink& progress);
  // Lowers `module` for the CPU.
  Result<std::shared_ptr<const artifact::Artifact>> Lower(
      ir::Module module) const;

  models::ModelSource source_;
  TokenSequences sequences_;
  ir::Module module_;                   // one graph, before any pass
  std::vector<quant::LayerId> layers_;  // of nodes_
  std::vector<size_t> nodes_;           // of module_'s graph
  std::map<std::string, std::vector<float>> inputs_;  // by name of the value
};

}  // namespace hexllm
