#include "compile/size_check.h"

#include <fmt/format.h>

#include <map>
#include <utility>

#include "compile/targets.h"
#include "models/decoder.h"
#include "passes/pipeline.h"
#include "quant/weight_encoding.h"

namespace hexllm {
namespace {

// The format of what is looked up in tables: that of activations.
ir::Encoding LookupFormat(const quant::LayerSettings& settings) {
  return {.dtype =
              settings.scheme->activation_bits == 8 ? DType::kU8 : DType::kU16};
}

// Gives the weights of linears and the outputs of lookups encodings without
// numbers. A table that is a weight too is there twice, as quantization has it.
void AddFormats(const quant::ResolvedRecipe& recipe, ir::Module& module) {
  std::map<ir::ConstantId, ir::ConstantId> weights;
  for (ir::Graph& graph : module.graphs) {
    for (ir::Node& node : graph.nodes) {
      const quant::LayerSettings& settings =
          recipe.For(graph[node.output].name);
      if (node.op == ir::OpKind::kEmbedding)
        graph[node.output].encoding = LookupFormat(settings);
      if (node.op != ir::OpKind::kLinear) continue;
      const ir::ConstantId plain = graph[node.inputs[1]].constant;
      if (!plain.valid()) continue;
      ir::ConstantId& weight = weights[plain];
      if (!weight.valid()) {
        ir::Constant copy = module.constants[plain];
        copy.encoding = quant::WeightFormat(copy, settings);
        weight = module.constants.Add(std::move(copy));
      }
      node.inputs[1] = graph.AddConstant(weight, module.constants[weight]);
    }
  }
}

Status CheckWith(const SizeJob& job, int64_t shards) {
  GraphPlan plan = job.plan;
  plan.shards = shards;
  HX_ASSIGN_OR_RETURN(
      ir::Module module,
      models::BuildDecoder(job.source,
                           GraphRequests(plan, job.options.prefill_logits)));
  HX_RETURN_IF_ERROR(RunPipeline(module, kStaticPipeline, {}));
  AddFormats(job.recipe, module);
  return CheckTargetSize(job.options.target, module);
}

}  // namespace

Status CheckSizes(const SizeJob& job) {
  Status status = CheckWith(job, job.plan.shards);
  if (status.ok()) return status;
  Error error = std::move(status).error();
  const int64_t layers = job.source.config.layers;
  for (int64_t shards = job.plan.shards + 1; shards <= layers; ++shards) {
    if (!CheckWith(job, shards).ok()) continue;
    error.message += fmt::format("; use --num-sharding {}", shards);
    return error;
  }
  error.message += "; no --num-sharding makes its parts small enough";
  return error;
}

}  // namespace hexllm
