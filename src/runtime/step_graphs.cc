#include "runtime/step_graphs.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "runtime/io_codec.h"

namespace hexllm {
namespace {

using artifact::GraphEntry;
using artifact::IoSpec;
using artifact::Manifest;

// Notes the sizes of a k_out [G,D,T] or v_out [G,T,D].
void AddCacheOutput(const IoSpec& spec, KvGeometry& geometry) {
  const auto dim = [&spec](size_t axis) {
    return static_cast<uint64_t>(spec.shape[axis]);
  };
  const auto layer = static_cast<size_t>(spec.role.index);
  const uint64_t element = ElementBytes(spec.dtype);
  if (spec.role.kind == RoleKind::kKOut)
    geometry.k[layer] = {.outer = dim(0) * dim(1), .column_bytes = element};
  if (spec.role.kind == RoleKind::kVOut)
    geometry.v[layer] = {.outer = dim(0), .column_bytes = dim(2) * element};
}

// The graph for steps of one token: the smallest T that gives logits.
const StepGraph* FindSingle(const std::vector<StepGraph>& steps) {
  const StepGraph* best = nullptr;
  for (const StepGraph& step : steps) {
    if (step.kind == GraphKind::kLookahead ||
        step.logits_rows == LogitsRows::kNone)
      continue;
    // Of equal T the later one, which is the kv graph.
    if (best == nullptr || step.step_tokens <= best->step_tokens) best = &step;
  }
  return best;
}

// The graph for the prompt's blocks; null when there is none of the wanted T.
const StepGraph* FindBlock(const std::vector<StepGraph>& steps,
                           std::optional<uint32_t> wanted) {
  const StepGraph* best = nullptr;
  for (const StepGraph& step : steps) {
    if (step.kind == GraphKind::kLookahead) continue;
    if (wanted && step.step_tokens != *wanted) continue;
    if (best == nullptr || step.step_tokens > best->step_tokens) best = &step;
  }
  return best;
}

const StepGraph* FindLookahead(const std::vector<StepGraph>& steps) {
  for (const StepGraph& step : steps)
    if (step.kind == GraphKind::kLookahead) return &step;
  return nullptr;
}

std::string ListStepTokens(const std::vector<StepGraph>& steps) {
  std::string out;
  for (const StepGraph& step : steps) {
    if (step.kind == GraphKind::kLookahead) continue;
    out += fmt::format("{}{}", out.empty() ? "" : ", ", step.step_tokens);
  }
  return out;
}

}  // namespace

std::vector<StepGraph> FindStepGraphs(const Manifest& manifest) {
  std::map<std::pair<GraphKind, uint32_t>, StepGraph> found;
  for (size_t i = 0; i < manifest.graphs.size(); ++i) {
    const GraphEntry& graph = manifest.graphs[i];
    if (graph.kind == GraphKind::kEvictor) continue;
    StepGraph& step = found[{graph.kind, graph.step_tokens}];
    step.kind = graph.kind;
    step.step_tokens = graph.step_tokens;
    step.shards.push_back(i);
  }
  std::vector<StepGraph> steps;
  for (auto& [key, step] : found) {
    std::sort(step.shards.begin(), step.shards.end(), [&](size_t a, size_t b) {
      return manifest.graphs[a].shard < manifest.graphs[b].shard;
    });
    step.logits_rows = manifest.graphs[step.shards.back()].logits_rows;
    steps.push_back(std::move(step));
  }
  return steps;
}

Result<StepChoice> ChooseSteps(const std::vector<StepGraph>& steps,
                               const StepWish& wish) {
  const StepGraph* single = FindSingle(steps);
  if (single == nullptr) {
    return Error{ErrorCode::kBadInput,
                 "of the artifact's prefill and kv graphs none gives logits"};
  }
  const StepGraph* lookahead = FindLookahead(steps);
  if (lookahead == nullptr &&
      (wish.lookahead_blocks || wish.lookahead == LookaheadMode::kOn)) {
    return Error{ErrorCode::kUsage,
                 "the artifact has no lookahead graph; compile it with "
                 "--model-mode lookahead"};
  }
  const StepGraph* block =
      wish.lookahead_blocks ? lookahead : FindBlock(steps, wish.block_tokens);
  if (block == nullptr) {
    return Error{ErrorCode::kUsage,
                 fmt::format("the artifact has no graph of {} tokens a step; "
                             "it has {}",
                             *wish.block_tokens, ListStepTokens(steps))};
  }
  StepChoice choice{*block, *single, {}};
  if (wish.lookahead != LookaheadMode::kOff && lookahead != nullptr)
    choice.lookahead = *lookahead;
  return choice;
}

Result<KvGeometry> FindKvGeometry(const Manifest& manifest,
                                  const std::vector<StepGraph>& steps) {
  KvGeometry geometry;
  geometry.k.resize(manifest.layers);
  geometry.v.resize(manifest.layers);
  for (const StepGraph& step : steps) {
    geometry.capacity =
        std::max(geometry.capacity, manifest.context_tokens - step.step_tokens);
    for (const size_t shard : step.shards) {
      for (const IoSpec& spec : manifest.graphs[shard].outputs)
        AddCacheOutput(spec, geometry);
    }
  }
  for (uint32_t l = 0; l < manifest.layers; ++l) {
    if (geometry.k[l].outer == 0) {
      return Error{ErrorCode::kBadInput,
                   fmt::format("no graph has the KV cache of layer {}; the "
                               "artifact says it has {} layers",
                               l, manifest.layers)};
    }
  }
  return geometry;
}

uint64_t FindBufferBytes(const Manifest& manifest,
                         const std::vector<StepGraph>& steps,
                         const KvGeometry& geometry) {
  uint64_t total = 0;
  const auto add = [&total](uint64_t bytes) {
    total +=
        (bytes + kBufferAlignment - 1) / kBufferAlignment * kBufferAlignment;
  };
  for (const auto* tensors : {&geometry.k, &geometry.v}) {
    for (const KvTensorShape& shape : *tensors)
      add(shape.outer * shape.column_bytes * geometry.capacity);
  }
  for (const StepGraph& step : steps) {
    // Shards share inputs of one role; hidden_in is the last hidden_out.
    std::set<std::string> seen;
    for (const size_t shard : step.shards) {
      const GraphEntry& graph = manifest.graphs[shard];
      for (const IoSpec& spec : graph.inputs) {
        const RoleKind kind = spec.role.kind;
        if (kind != RoleKind::kKIn && kind != RoleKind::kVIn &&
            kind != RoleKind::kHiddenIn &&
            seen.insert(RoleToString(spec.role)).second)
          add(StorageBytes(spec.dtype, spec.shape).value());
      }
      for (const IoSpec& spec : graph.outputs)
        add(StorageBytes(spec.dtype, spec.shape).value());
    }
  }
  return total;
}

}  // namespace hexllm
