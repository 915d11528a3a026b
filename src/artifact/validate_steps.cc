// What the graphs of one artifact must agree on. A step is the graphs of one
// kind and step size: its shards, in order.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <vector>

#include "artifact/validate.h"
#include "base/quote.h"

namespace hexllm::artifact {
namespace {

using StepKey = std::pair<GraphKind, uint32_t>;
using Step = std::vector<const GraphEntry*>;

// The KV cache of one layer as a graph sees it. All graphs that touch the layer
// must see the same.
struct KvSpec {
  int64_t heads = 0;     // G
  int64_t head_dim = 0;  // D
  DType dtype = DType::kF32;
  std::optional<IoEncoding> encoding;
  bool operator==(const KvSpec&) const = default;
};
// By layer, first K then V.
using KvCache = std::map<int32_t, std::pair<KvSpec, KvSpec>>;

// The inputs and outputs of a graph by role kind and index.
using IoIndex = std::map<std::pair<RoleKind, int32_t>, const IoSpec*>;

IoIndex IndexIos(const GraphEntry& graph) {
  IoIndex out;
  for (const IoSpec& io : graph.inputs) {
    out[{io.role.kind, io.role.index}] = &io;
  }
  for (const IoSpec& io : graph.outputs) {
    out[{io.role.kind, io.role.index}] = &io;
  }
  return out;
}

const IoSpec* Find(const IoIndex& ios, RoleKind kind, int32_t index = 0) {
  const auto it = ios.find({kind, index});
  return it == ios.end() ? nullptr : it->second;
}

Error InGraph(const GraphEntry& graph, const std::string& what) {
  return Invalid(fmt::format("graph {}: {}", Quoted(graph.name), what));
}

KvSpec SpecOfK(const IoSpec& io) {
  return {io.shape[0], io.shape[1], io.dtype, io.encoding};
}

KvSpec SpecOfV(const IoSpec& io) {
  return {io.shape[0], io.shape[2], io.dtype, io.encoding};
}

// Adds one layer of `graph` to `cache`. The four roles of a layer come
// together; the inputs may be left out of a graph without past columns.
Status AddLayer(const GraphEntry& graph, const IoIndex& ios, int32_t layer,
                KvCache& cache) {
  const IoSpec* k_in = Find(ios, RoleKind::kKIn, layer);
  const IoSpec* v_in = Find(ios, RoleKind::kVIn, layer);
  const IoSpec* k_out = Find(ios, RoleKind::kKOut, layer);
  const IoSpec* v_out = Find(ios, RoleKind::kVOut, layer);
  const bool has_past = graph.context_tokens > graph.step_tokens;
  const bool inputs_fit =
      (k_in == nullptr) == (v_in == nullptr) && (k_in != nullptr || !has_past);
  if (k_out == nullptr || v_out == nullptr || !inputs_fit) {
    return InGraph(graph, fmt::format("layer {} has not all of k_in, v_in, "
                                      "k_out, v_out",
                                      layer));
  }
  const KvSpec k = SpecOfK(*k_out);
  const KvSpec v = SpecOfV(*v_out);
  if ((k_in != nullptr && (SpecOfK(*k_in) != k || SpecOfV(*v_in) != v)) ||
      k.heads != v.heads) {
    return InGraph(graph, fmt::format("the KV inputs and outputs of layer {} "
                                      "differ in heads, head size, element "
                                      "type or encoding",
                                      layer));
  }
  if (!cache.emplace(layer, std::pair(k, v)).second) {
    return InGraph(graph, fmt::format("layer {} is in two shards", layer));
  }
  return OkStatus();
}

Status AddLayers(const GraphEntry& graph, const IoIndex& ios, KvCache& cache) {
  std::set<int32_t> layers;
  bool has_mask = false;
  for (const auto& [key, io] : ios) {
    switch (key.first) {
      case RoleKind::kKIn:
      case RoleKind::kVIn:
      case RoleKind::kKOut:
      case RoleKind::kVOut:
        layers.insert(key.second);
        break;
      case RoleKind::kMask:
        has_mask = true;
        break;
      default:
        break;
    }
  }
  if (!layers.empty() && !has_mask) {
    return InGraph(graph, "it has a KV cache and no mask");
  }
  for (const int32_t layer : layers) {
    HX_RETURN_IF_ERROR(AddLayer(graph, ios, layer, cache));
  }
  return OkStatus();
}

// Tokens enter the first shard and logits leave the last; hidden states go from
// each shard to the next.
Status ValidateEnds(const GraphEntry& graph, const IoIndex& ios, bool last) {
  const bool token = Find(ios, RoleKind::kToken) != nullptr;
  const bool embedding = Find(ios, RoleKind::kEmbedding) != nullptr;
  const bool hidden_in = Find(ios, RoleKind::kHiddenIn) != nullptr;
  const int entries = int{token} + int{embedding} + int{hidden_in};
  if (entries != 1 || hidden_in != (graph.shard > 0)) {
    return InGraph(graph,
                   "expected one of token or embedding in the first "
                   "shard and hidden_in in the others");
  }
  const bool logits = Find(ios, RoleKind::kLogits) != nullptr;
  const bool hidden_out = Find(ios, RoleKind::kHiddenOut) != nullptr;
  if (logits != (last && graph.logits_rows != LogitsRows::kNone) ||
      hidden_out == last) {
    return InGraph(graph,
                   "expected logits (unless it has no logits rows) in "
                   "the last shard and hidden_out in the others");
  }
  return OkStatus();
}

Status ValidateHandover(const GraphEntry& graph, const IoIndex& before,
                        const IoIndex& after) {
  const IoSpec* out = Find(before, RoleKind::kHiddenOut);
  const IoSpec* in = Find(after, RoleKind::kHiddenIn);
  if (out->shape == in->shape && out->dtype == in->dtype &&
      out->encoding == in->encoding) {
    return OkStatus();
  }
  return InGraph(graph, "hidden_in differs from the hidden_out before it");
}

Result<KvCache> ValidateStep(const Step& step) {
  KvCache cache;
  IoIndex before;
  for (size_t i = 0; i < step.size(); ++i) {
    const GraphEntry& graph = *step[i];
    if (graph.shard != i) {
      return InGraph(graph, fmt::format("expected shard {} of its step, found "
                                        "{}",
                                        i, graph.shard));
    }
    const IoIndex ios = IndexIos(graph);
    HX_RETURN_IF_ERROR(ValidateEnds(graph, ios, i + 1 == step.size()));
    if (i > 0) HX_RETURN_IF_ERROR(ValidateHandover(graph, before, ios));
    HX_RETURN_IF_ERROR(AddLayers(graph, ios, cache));
    before = ios;
  }
  return cache;
}

// There is a shape if and only if there is a lookahead graph, and it is its.
Status ValidateLookahead(const Manifest& manifest,
                         const std::map<StepKey, Step>& steps) {
  std::optional<uint32_t> found;
  for (const auto& [key, step] : steps) {
    if (key.first != GraphKind::kLookahead) continue;
    const GraphEntry& graph = *step.back();
    if (found) return InGraph(graph, "a second lookahead graph");
    if (graph.logits_rows != LogitsRows::kAll)
      return InGraph(graph, "a lookahead graph without logits for all rows");
    found = key.second;
  }
  const LookaheadShape shape = manifest.lookahead.value_or(LookaheadShape{});
  if (!found && !manifest.lookahead) return OkStatus();
  const uint64_t tokens =
      (uint64_t{shape.window} + shape.guesses) * (uint64_t{shape.ngram} - 1);
  if (found == tokens && shape.ngram >= 2 && shape.window >= 1 &&
      shape.guesses >= 1) {
    return OkStatus();
  }
  return Invalid(fmt::format(
      "lookahead: n-grams of {}, {} columns and {} guesses do not fit a graph "
      "of {} tokens",
      shape.ngram, shape.window, shape.guesses, found.value_or(0)));
}

// The roles of an evictor: for each layer k_in and k_out in the form of the
// cache, and the RoPE rows of their keys. Takes the layers out of `left`.
Status ValidateEvictor(const Manifest& manifest, const GraphEntry& graph,
                       const KvCache& cache, std::set<int32_t>& left) {
  if (graph.step_tokens + 1 != graph.context_tokens)
    return InGraph(graph, "expected an evictor of all columns but one");
  const IoIndex ios = IndexIos(graph);
  for (const auto& [key, io] : ios) {
    if (key.first == RoleKind::kRopeCos || key.first == RoleKind::kRopeSin)
      continue;
    const bool is_k =
        key.first == RoleKind::kKIn || key.first == RoleKind::kKOut;
    const auto layer = is_k ? cache.find(key.second) : cache.end();
    if (layer == cache.end() || SpecOfK(*io) != layer->second.first)
      return InGraph(graph, "expected keys in the form of the cache");
    if (key.first == RoleKind::kKIn) continue;
    const int32_t rope = manifest.key_ropes[static_cast<size_t>(key.second)];
    if (left.erase(key.second) == 0 ||
        Find(ios, RoleKind::kKIn, key.second) == nullptr ||
        Find(ios, RoleKind::kRopeCos, rope) == nullptr ||
        Find(ios, RoleKind::kRopeSin, rope) == nullptr) {
      return InGraph(graph, fmt::format("layer {}: it is rotated twice, or "
                                        "lacks keys or RoPE rows",
                                        key.second));
    }
  }
  return OkStatus();
}

Status ValidateKeyRopes(const Manifest& manifest) {
  const auto& ropes = manifest.key_ropes;
  const auto tables = static_cast<int64_t>(manifest.rope_tables.size());
  const bool known = std::ranges::all_of(
      ropes, [&](int32_t rope) { return rope >= -1 && rope < tables; });
  if (known && (ropes.empty() || ropes.size() == manifest.layers))
    return OkStatus();
  return Invalid(fmt::format(
      "RoPE tables of keys: expected one of {} tables for each of {} layers",
      tables, manifest.layers));
}

// Every rotated layer has one evictor, when there is a sink.
Status ValidateSink(const Manifest& manifest, const KvCache& cache) {
  HX_RETURN_IF_ERROR(ValidateKeyRopes(manifest));
  const SinkSettings sink = manifest.attention_sink.value_or(SinkSettings{});
  std::set<int32_t> left;
  for (size_t l = 0; l < manifest.key_ropes.size(); ++l) {
    if (manifest.key_ropes[l] >= 0) left.insert(static_cast<int32_t>(l));
  }
  for (const GraphEntry& graph : manifest.graphs) {
    if (graph.kind != GraphKind::kEvictor) continue;
    if (manifest.key_ropes.empty())
      return InGraph(graph, "an evictor for keys that nothing is known of");
    HX_RETURN_IF_ERROR(ValidateEvictor(manifest, graph, cache, left));
  }
  if (!manifest.attention_sink) return OkStatus();
  if (manifest.key_ropes.empty() || !left.empty())
    return Invalid("attention sink: keys without an evictor");
  if (sink.sink_tokens < 1 || sink.evict_tokens < 1 ||
      uint64_t{sink.sink_tokens} + sink.evict_tokens + 1 >=
          manifest.context_tokens) {
    return Invalid(fmt::format(
        "attention sink: {} and {} tokens do not fit a context of {}",
        sink.sink_tokens, sink.evict_tokens, manifest.context_tokens));
  }
  return OkStatus();
}

}  // namespace

Status ValidateSteps(const Manifest& manifest) {
  std::set<std::string_view> names;
  std::map<StepKey, Step> steps;
  for (const GraphEntry& graph : manifest.graphs) {
    if (!names.insert(graph.name).second) {
      return InGraph(graph, "the name is used twice");
    }
    // ValidateSink checks them.
    if (graph.kind == GraphKind::kEvictor) continue;
    steps[{graph.kind, graph.step_tokens}].push_back(&graph);
  }
  std::optional<KvCache> first;
  for (auto& [key, step] : steps) {
    std::stable_sort(step.begin(), step.end(),
                     [](const GraphEntry* a, const GraphEntry* b) {
                       return a->shard < b->shard;
                     });
    HX_ASSIGN_OR_RETURN(KvCache cache, ValidateStep(step));
    if (!first)
      first = std::move(cache);
    else if (*first != cache) {
      return InGraph(*step.front(),
                     "its KV cache (layers, heads, head size, element type or "
                     "encoding) differs from that of the other steps");
    }
  }
  HX_RETURN_IF_ERROR(ValidateLookahead(manifest, steps));
  return ValidateSink(manifest, first.value_or(KvCache()));
}

}  // namespace hexllm::artifact
