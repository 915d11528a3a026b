// A two-layer decoder, lowered and calibrated on made-up inputs. For the tests
// of quant/.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ir/encode.h"
#include "ir/interpret.h"
#include "models/decoder.h"
#include "passes/pipeline.h"
#include "quant/assign.h"
#include "quant/observer.h"
#include "tests/support/ir_tensors.h"
#include "tests/support/tiny_llama.h"

namespace hexllm::quant {

// Owns the checkpoint that the module's constants point into.
class LoweredDecoder {
 public:
  // Graphs prefill_4 (T = C = 4) and kv (T = 1, C = 8).
  LoweredDecoder(const testing::TinyLlama& model, std::string_view target) {
    model.WriteFolder(dir_);
    auto source = models::OpenModel(dir_.path(), {});
    if (!source.ok()) {
      ADD_FAILURE() << source.error().message;
      return;
    }
    source_ = std::make_unique<models::ModelSource>(std::move(*source));
    const models::GraphRequest requests[] = {
        {GraphKind::kPrefill, 4, 4, LogitsRows::kAll},
        {GraphKind::kKv, 1, 8, LogitsRows::kAll}};
    auto built = models::BuildDecoder(*source_, requests);
    if (!built.ok()) {
      ADD_FAILURE() << built.error().message;
      return;
    }
    module = std::move(*built);
    const Status status = RunPipeline(module, target, {});
    EXPECT_TRUE(status.ok()) << (status.ok() ? "" : status.error().message);
  }

  ir::Module module;

 private:
  testing::TempDir dir_;
  std::unique_ptr<models::ModelSource> source_;
};

// Tokens 3, 9, ..., numbers in -1 .. 1 (caches: within what the model makes),
// masks where row i sees columns up to C - T + i and the rest is `hidden`; all
// on the grids of their encodings.
inline std::vector<ir::HostTensor> MadeUpInputs(const ir::Graph& graph,
                                                float hidden) {
  ir::PseudoRandom random("inputs");
  std::vector<ir::HostTensor> inputs;
  for (const ir::GraphIo& io : graph.inputs) {
    ir::HostTensor tensor = {graph.type(io.value), {}, {}};
    if (io.role.kind == RoleKind::kToken) {
      for (int64_t i = 0; i < graph.step_tokens; ++i)
        tensor.ints.push_back(3 + 6 * i);
    } else if (io.role.kind == RoleKind::kMask) {
      const int64_t past = graph.context_tokens - graph.step_tokens;
      for (int64_t i = 0; i < graph.step_tokens; ++i) {
        for (int64_t j = 0; j < graph.context_tokens; ++j)
          tensor.floats.push_back(j <= past + i ? 0 : hidden);
      }
    } else {
      tensor = testing::RandomF32(tensor.type.shape, random);
      const bool cache =
          io.role.kind == RoleKind::kKIn || io.role.kind == RoleKind::kVIn;
      for (float& x : tensor.floats) x *= cache ? 0.25f : 1.0f;
    }
    if (const auto& encoding = graph[io.value].encoding)
      ir::RoundToEncoding(*encoding, tensor.type.shape, tensor.floats);
    inputs.push_back(std::move(tensor));
  }
  return inputs;
}

// What the graph gives for the role.
inline std::vector<float> OutputOf(const ir::Module& module,
                                   const ir::Graph& graph, const Role& role,
                                   float hidden) {
  const auto outputs =
      ir::Interpret(module, graph, MadeUpInputs(graph, hidden));
  for (size_t i = 0; i < outputs.size(); ++i)
    if (graph.outputs[i].role == role) return outputs[i].floats;
  ADD_FAILURE() << "no output " << RoleToString(role);
  return {};
}

// The ranges of all that AssignEncodings asks for, on made-up inputs.
inline Ranges Calibrate(ir::Module module) {
  Ranges ranges;
  for (ir::Graph& graph : module.graphs) {
    const std::vector<std::string> names = ObservedValues(graph);
    graph.outputs.clear();
    for (const ir::Node& node : std::vector<ir::Node>(graph.nodes)) {
      const std::string& name = graph[node.output].name;
      if (std::find(names.begin(), names.end(), name) != names.end())
        graph.AddOutput({RoleKind::kTap, 0, name}, node.output);
    }
    const auto outputs =
        ir::Interpret(module, graph, MadeUpInputs(graph, -INFINITY));
    for (size_t i = 0; i < outputs.size(); ++i) {
      ValueRange& seen = ranges[graph.outputs[i].role.name];
      for (const float x : outputs[i].floats) {
        if (!std::isfinite(x)) continue;
        seen.range = {std::min(seen.range.min, x), std::max(seen.range.max, x)};
      }
    }
  }
  ranges["rope_cos[0]"] = ranges["rope_sin[0]"] = {{-1, 1}};
  return ranges;
}

// A recipe of that scheme for everything, with rules for the layers given.
inline ResolvedRecipe RecipeOf(std::string_view scheme, int kv_bits = 16) {
  ResolvedRecipe resolved;
  resolved.recipe.defaults.scheme = FindScheme(scheme);
  resolved.recipe.kv_bits = kv_bits;
  return resolved;
}

// The first value of that name that is no data movement and no constant.
inline const ir::Value* FindValue(const ir::Graph& graph,
                                  std::string_view name) {
  for (const ir::Node& node : graph.nodes) {
    const bool moved =
        node.op == ir::OpKind::kReshape || node.op == ir::OpKind::kTranspose ||
        node.op == ir::OpKind::kSliceRows || node.op == ir::OpKind::kConcat;
    if (!moved && graph[node.output].name == name) return &graph[node.output];
  }
  return nullptr;
}

inline ir::Encoding EncodingOf(const ir::Graph& graph, std::string_view name) {
  const ir::Value* value = FindValue(graph, name);
  if (value != nullptr && value->encoding) return *value->encoding;
  ADD_FAILURE() << "no encoded value " << name;
  return {};
}

}  // namespace hexllm::quant
