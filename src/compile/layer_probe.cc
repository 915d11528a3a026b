#include "compile/layer_probe.h"

#include <algorithm>
#include <set>
#include <utility>

#include "backend/engines.h"
#include "base/check.h"
#include "compile/rotate.h"
#include "compile/tapped_run.h"
#include "compile/text_assets.h"
#include "models/decoder.h"
#include "passes/pipeline.h"
#include "runtime/session.h"

namespace hexllm {
namespace {

// The beginnings of the first sequences.
Result<TokenSequences> ShortSequences(const models::ModelSource& source,
                                      const CompileOptions& options,
                                      ProgressSink& progress) {
  HX_ASSIGN_OR_RETURN(const TextAssets text, LoadTextAssets(source));
  HX_ASSIGN_OR_RETURN(
      TokenSequences sequences,
      MakeCalibrationSet(options.calibration, text, source.config.vocab,
                         static_cast<size_t>(source.config.max_positions),
                         progress));
  if (sequences.size() > LayerProbe::kSequences)
    sequences.resize(LayerProbe::kSequences);
  for (auto& ids : sequences)
    ids.resize(std::min(ids.size(), LayerProbe::kSequenceTokens));
  return sequences;
}

// Every `step`-th row that is no padding.
void AppendRows(const TapView& tap, size_t most, std::vector<float>& rows) {
  const auto columns = static_cast<size_t>(tap.shape.back());
  const size_t count = tap.values.size() / columns;
  const size_t step = std::max<size_t>(1, (count - tap.first_row) / most);
  for (size_t i = tap.first_row; i < count; i += step) {
    const auto row = tap.values.subspan(i * columns, columns);
    rows.insert(rows.end(), row.begin(), row.end());
  }
}

}  // namespace

LayerProbe::LayerProbe(models::ModelSource source, TokenSequences sequences,
                       ir::Module module)
    : source_(std::move(source)),
      sequences_(std::move(sequences)),
      module_(std::move(module)) {
  const ir::Graph& graph = module_.graphs.front();
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    const ir::Node& node = graph.nodes[i];
    if (node.op != ir::OpKind::kLinear) continue;
    const ir::ConstantId id = graph[node.inputs[1]].constant;
    // No rule is for what rotates heads.
    if (module_.constants[id].name == models::kHeadRotation) continue;
    layers_.push_back({.name = graph[node.output].name,
                       .op = "linear",
                       .inputs = ir::RowElems(module_.constants[id])});
    nodes_.push_back(i);
  }
}

const ir::Constant& LayerProbe::Weight(size_t layer) const {
  const ir::Graph& graph = module_.graphs.front();
  return module_
      .constants[graph[graph.nodes[nodes_.at(layer)].inputs[1]].constant];
}

bool LayerProbe::IsHead(size_t layer) const {
  const ir::Graph& graph = module_.graphs.front();
  const ir::ValueId logits = graph.FindIo({.kind = RoleKind::kLogits});
  return graph[logits].name == layers_.at(layer).name;
}

Result<std::shared_ptr<const artifact::Artifact>> LayerProbe::Lower(
    ir::Module module) const {
  HX_RETURN_IF_ERROR(RunPipeline(module, "cpu", {}));
  return LowerInMemory(source_, module);
}

Result<std::shared_ptr<const artifact::Artifact>> LayerProbe::FloatArtifact()
    const {
  return Lower(module_);
}

Result<std::shared_ptr<const artifact::Artifact>> LayerProbe::WithRounded(
    size_t layer, const ir::Constant& rounded) const {
  ir::Module module = module_;
  ir::Graph& graph = module.graphs.front();
  const ir::ConstantId id = module.constants.Add(rounded);
  graph.nodes[nodes_.at(layer)].inputs[1] =
      graph.AddConstant(id, module.constants[id]);
  return Lower(std::move(module));
}

Status LayerProbe::KeepInputs(int threads, ProgressSink& progress) {
  ir::Module tapped = module_;
  ir::Graph& graph = tapped.graphs.front();
  for (const size_t node : nodes_) {
    const ir::ValueId input = graph.nodes[node].inputs[0];
    const std::string& name = graph[input].name;
    if (!inputs_.try_emplace(name).second) continue;
    graph.AddOutput({.kind = RoleKind::kTap, .index = 0, .name = name}, input);
  }
  HX_ASSIGN_OR_RETURN(const auto artifact, Lower(std::move(tapped)));
  HX_ASSIGN_OR_RETURN(const auto engine,
                      CreateEngine("cpu", {.threads = threads}));
  SessionOptions options;
  const size_t most = std::max<size_t>(1, kInputRows / sequences_.size());
  options.on_tap = [this, most](const TapView& tap) {
    AppendRows(tap, most, inputs_.at(std::string(tap.name)));
    return OkStatus();
  };
  HX_ASSIGN_OR_RETURN(const auto session,
                      Session::Create({artifact, engine.get(), options}));
  progress.Begin("observe inputs", "", 0);
  for (const auto& ids : sequences_) {
    session->Reset();
    HX_RETURN_IF_ERROR(session->Prefill(ids));
  }
  return OkStatus();
}

quant::OutputError LayerProbe::ErrorOf(size_t layer, const ir::Constant& weight,
                                       const ir::Constant& rounded) const {
  const ir::Graph& graph = module_.graphs.front();
  const ir::ValueId input = graph.nodes[nodes_.at(layer)].inputs[0];
  return quant::OutputErrorOf(weight, rounded, inputs_.at(graph[input].name));
}

Result<LayerProbe> LayerProbe::Open(const std::string& model_path,
                                    const CompileOptions& options,
                                    const quant::Recipe& recipe,
                                    ProgressSink& progress) {
  progress.Begin("open checkpoint", "", 0);
  HX_ASSIGN_OR_RETURN(models::ModelSource source,
                      models::OpenModel(model_path, options.source));
  HX_ASSIGN_OR_RETURN(TokenSequences sequences,
                      ShortSequences(source, options, progress));
  // What it is read from has no tokenizer.
  HX_ASSIGN_OR_RETURN(source, RotateModel(std::move(source), recipe, progress));
  const auto tokens = static_cast<int64_t>(LongestSequence(sequences));
  const models::GraphRequest request{
      .kind = tokens > 1 ? GraphKind::kPrefill : GraphKind::kKv,
      .step_tokens = tokens,
      .context_tokens = tokens,
      .logits = LogitsRows::kAll};
  HX_ASSIGN_OR_RETURN(ir::Module module,
                      models::BuildDecoder(source, {&request, 1}));
  LayerProbe probe(std::move(source), std::move(sequences), std::move(module));
  HX_RETURN_IF_ERROR(probe.KeepInputs(options.threads, progress));
  return probe;
}

}  // namespace hexllm
