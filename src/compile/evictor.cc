#include "compile/evictor.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "artifact/artifact.h"
#include "artifact/writer.h"
#include "base/check.h"
#include "ir/encode.h"
#include "ir/float_constant.h"
#include "ir/verify.h"
#include "quant/hadamard.h"
#include "quant/weight_encoding.h"

namespace hexllm {
namespace {

using artifact::GraphEntry;
using artifact::IoSpec;
using artifact::Manifest;
using ir::AttrName;
using ir::OpKind;
using ir::ValueId;

using MaybeEncoding = std::optional<ir::Encoding>;

// The encodings of one layer's values, in the order of the graph.
struct KeyEncodings {
  MaybeEncoding stored;   // of k_in and k_out
  MaybeEncoding rotated;  // between
  MaybeEncoding rope;     // of cosines and sines, from -1 to 1
  MaybeEncoding plain;    // of keys k in the place of k H
};

// Codes of all that can come out of H when what goes in has codes of `in`.
ir::Encoding WidenedByRotation(const ir::Encoding& in, int64_t head_dim) {
  const int32_t zero = in.zero_points[0];
  const int32_t most = std::max(zero, UINT16_MAX - zero);
  const double range = std::sqrt(static_cast<double>(head_dim)) * most;
  return {.dtype = DType::kU16,
          .scales = {in.scales[0] * static_cast<float>(range / INT16_MAX)},
          .zero_points = {INT16_MAX + 1}};
}

Result<KeyEncodings> EncodingsOf(const IoSpec& spec) {
  constexpr int32_t kOne = INT16_MAX;
  const ir::Encoding units{
      .dtype = DType::kU16, .scales = {1.0f / kOne}, .zero_points = {kOne + 1}};
  switch (spec.dtype) {
    case DType::kF32:
      return KeyEncodings{};
    case DType::kF16: {
      const ir::Encoding half{.dtype = DType::kF16};
      return KeyEncodings{half, half, half, half};
    }
    case DType::kU8:
    case DType::kU16: {
      const ir::Encoding stored{.dtype = spec.dtype,
                                .scales = {spec.encoding->scale},
                                .zero_points = {spec.encoding->zero_point}};
      // 255 * 257 = 65535: the same range in 16 bits.
      const int32_t finer = spec.dtype == DType::kU8 ? 257 : 1;
      const ir::Encoding rotated{
          .dtype = DType::kU16,
          .scales = {spec.encoding->scale / static_cast<float>(finer)},
          .zero_points = {spec.encoding->zero_point * finer}};
      return KeyEncodings{stored, rotated, units,
                          WidenedByRotation(rotated, spec.shape[1])};
    }
    default:
      return Error{ErrorCode::kUnsupported,
                   fmt::format("--use-attention-sink: a key cache of {}; "
                               "expected f32, f16, u8 or u16",
                               DTypeName(spec.dtype))};
  }
}

// H [head_dim,head_dim] as the weight of a linear whose input has `encoding`.
Result<ir::Constant> HeadRotation(int64_t head_dim,
                                  const MaybeEncoding& encoding) {
  if (!quant::HasHadamard(head_dim)) {
    return Error{
        ErrorCode::kBadInput,
        fmt::format("manifest: rotated keys: expected heads of a power "
                    "of two, found {}",
                    head_dim)};
  }
  const std::vector<float> matrix = quant::HadamardMatrix(head_dim);
  ir::Constant constant = ir::MakeFloatConstant("evictor.head_rotation",
                                                {head_dim, head_dim}, matrix);
  if (!encoding) return constant;
  const std::string_view scheme = ir::HasCodes(*encoding) ? "16a8w" : "fp16";
  HX_ASSIGN_OR_RETURN(
      constant.encoding,
      quant::WeightEncoding(constant, {.scheme = quant::FindScheme(scheme)},
                            nullptr));
  return constant;
}

// One shard's graph in the making.
class EvictorBuilder {
 public:
  EvictorBuilder(const Manifest& manifest, const GraphEntry& step,
                 ir::ConstantStore& constants)
      : manifest_(manifest), constants_(constants) {
    graph_.name =
        step.shard == 0 ? "evictor" : fmt::format("evictor_{}", step.shard);
    graph_.kind = GraphKind::kEvictor;
    graph_.context_tokens = manifest.context_tokens;
    graph_.step_tokens = manifest.context_tokens - 1;
    graph_.shard = step.shard;
  }

  // `k_out` of a layer whose keys are rotated.
  Status AddLayer(const IoSpec& k_out) {
    const int32_t layer = k_out.role.index;
    const int32_t rope = manifest_.key_ropes[static_cast<size_t>(layer)];
    HX_ASSIGN_OR_RETURN(const KeyEncodings encodings, EncodingsOf(k_out));
    const std::string name = fmt::format("evictor.layers.{}.", layer);
    const ValueId stored = graph_.AddInput(
        {RoleKind::kKIn, layer},
        {DType::kF32, {k_out.shape[0], k_out.shape[1], graph_.step_tokens}});
    graph_[stored].encoding = encodings.stored;
    const ValueId cos = Rope(RoleKind::kRopeCos, rope, encodings.rope);
    const ValueId sin = Rope(RoleKind::kRopeSin, rope, encodings.rope);
    const ValueId rows = Add(OpKind::kTranspose, {stored}, {2, 0, 1},
                             name + "stored", encodings.stored);
    ValueId rotated;
    if (manifest_.keys_rotated) {
      HX_ASSIGN_OR_RETURN(const ValueId plain,
                          TimesH(rows, name + "plain", encodings.plain));
      const ValueId moved = Add(OpKind::kRope, {plain, cos, sin}, {},
                                name + "moved", encodings.plain);
      HX_ASSIGN_OR_RETURN(rotated,
                          TimesH(moved, name + "rotated", encodings.rotated));
    } else {
      rotated = Add(OpKind::kRope, {rows, cos, sin}, {}, name + "rotated",
                    encodings.rotated);
    }
    if (encodings.rotated != encodings.stored) {
      rotated = Add(OpKind::kConvert, {rotated}, {}, name + "converted",
                    encodings.stored);
    }
    graph_.AddOutput({RoleKind::kKOut, layer},
                     Add(OpKind::kTranspose, {rotated}, {1, 2, 0}, name + "k",
                         encodings.stored));
    return OkStatus();
  }

  bool has_layers() const { return !graph_.nodes.empty(); }
  ir::Graph Take() && { return std::move(graph_); }

 private:
  ValueId Add(OpKind op, std::vector<ValueId> inputs, std::vector<int64_t> perm,
              const std::string& name, const MaybeEncoding& encoding) {
    ir::Attrs attrs;
    if (!perm.empty()) attrs = {{AttrName::kPerm, std::move(perm)}};
    const ValueId value = graph_.AddNode(op, std::move(inputs), attrs, name);
    graph_[value].encoding = encoding;
    return value;
  }

  // x[T,G,D] times H.
  Result<ValueId> TimesH(ValueId x, const std::string& name,
                         const MaybeEncoding& encoding) {
    const Shape heads = graph_.type(x).shape;
    const MaybeEncoding of_x = graph_[x].encoding;
    if (!rotation_) {
      HX_ASSIGN_OR_RETURN(ir::Constant h, HeadRotation(heads[2], of_x));
      rotation_ = constants_.Add(std::move(h));
    }
    const ValueId weight =
        graph_.AddConstant(*rotation_, constants_[*rotation_]);
    const auto reshape = [&](ValueId value, Shape shape) {
      const MaybeEncoding same = graph_[value].encoding;
      const ValueId made = graph_.AddNode(
          OpKind::kReshape, {value}, {{AttrName::kShape, std::move(shape)}},
          graph_[value].name);
      graph_[made].encoding = same;
      return made;
    };
    const ValueId flat = reshape(x, {heads[0] * heads[1], heads[2]});
    return reshape(Add(OpKind::kLinear, {flat, weight}, {}, name, encoding),
                   heads);
  }

  // The input, which layers share.
  ValueId Rope(RoleKind kind, int32_t table, const MaybeEncoding& encoding) {
    const ValueId found = graph_.FindIo({kind, table});
    if (found.valid()) return found;
    const int64_t half =
        manifest_.rope_tables[static_cast<size_t>(table)].half_dim;
    const ValueId made = graph_.AddInput(
        {kind, table}, {DType::kF32, {graph_.step_tokens, half}});
    graph_[made].encoding = encoding;
    return made;
  }

  const Manifest& manifest_;
  ir::ConstantStore& constants_;
  std::optional<ir::ConstantId> rotation_ = {};  // H
  ir::Graph graph_;
};

// The segments that the evictors of `manifest` alone use.
std::vector<bool> EvictorSegments(const Manifest& manifest) {
  std::vector<bool> out(manifest.segments.size());
  for (const bool evictors : {true, false}) {
    for (const GraphEntry& graph : manifest.graphs) {
      if ((graph.kind == GraphKind::kEvictor) != evictors) continue;
      out[graph.program] = evictors;
      if (graph.simulator_program) out[*graph.simulator_program] = evictors;
    }
  }
  return out;
}

// Copies all segments but those; returns their new numbers.
Result<std::vector<uint32_t>> CopySegments(const artifact::Artifact& from,
                                           artifact::SegmentSink& sink) {
  const Manifest& manifest = from.manifest();
  const std::vector<bool> dropped = EvictorSegments(manifest);
  std::vector<uint32_t> numbers(manifest.segments.size());
  for (uint32_t i = 0; i < manifest.segments.size(); ++i) {
    if (dropped[i]) continue;
    HX_RETURN_IF_ERROR(from.Verify(i));
    HX_ASSIGN_OR_RETURN(numbers[i],
                        sink.Add({.name = manifest.segments[i].name,
                                  .kind = manifest.segments[i].kind},
                                 from.Segment(i)));
  }
  return numbers;
}

// `manifest` without evictors, its segments numbered anew.
Manifest Renumbered(Manifest manifest, const std::vector<uint32_t>& numbers) {
  const auto renumber = [&](uint32_t& segment) { segment = numbers[segment]; };
  const auto renumber_if = [&](std::optional<uint32_t>& segment) {
    if (segment) renumber(*segment);
  };
  std::erase_if(manifest.graphs, [](const GraphEntry& graph) {
    return graph.kind == GraphKind::kEvictor;
  });
  for (GraphEntry& graph : manifest.graphs) {
    renumber(graph.program);
    renumber_if(graph.simulator_program);
  }
  for (artifact::RopeTable& table : manifest.rope_tables) {
    renumber(table.cos_segment);
    renumber(table.sin_segment);
    if (!table.long_prompts) continue;
    renumber(table.long_prompts->cos_segment);
    renumber(table.long_prompts->sin_segment);
  }
  if (manifest.embedding) renumber(manifest.embedding->segment);
  renumber_if(manifest.tokenizer_segment);
  renumber_if(manifest.chat_template_segment);
  manifest.segments.clear();
  return manifest;
}

}  // namespace

Status CheckSink(const artifact::SinkSettings& settings, int64_t context) {
  const int64_t sum = int64_t{settings.sink_tokens} + settings.evict_tokens;
  if (settings.sink_tokens >= 1 && settings.evict_tokens >= 1 &&
      sum < context - 1)
    return OkStatus();
  return Error{ErrorCode::kUsage,
               fmt::format("--use-attention-sink: expected two numbers of at "
                           "least 1 and below {} together, in a context of {}; "
                           "found {},{}",
                           context - 1, context, settings.sink_tokens,
                           settings.evict_tokens)};
}

Result<ir::Module> BuildEvictor(const Manifest& manifest) {
  ir::Module module;
  for (const GraphEntry& step : manifest.graphs) {
    if (step.kind != GraphKind::kKv) continue;
    EvictorBuilder builder(manifest, step, module.constants);
    for (const IoSpec& output : step.outputs) {
      if (output.role.kind != RoleKind::kKOut) continue;
      const auto layer = static_cast<size_t>(output.role.index);
      if (manifest.key_ropes[layer] >= 0)
        HX_RETURN_IF_ERROR(builder.AddLayer(output));
    }
    if (builder.has_layers())
      module.graphs.push_back(std::move(builder).Take());
  }
  const Status valid = ir::Verify(module);
  HX_CHECK(valid.ok());
  return module;
}

Status AddEvictor(const TargetOptions& target,
                  const artifact::SinkSettings& settings,
                  artifact::SegmentSink& sink, Manifest& manifest) {
  HX_RETURN_IF_ERROR(CheckSink(settings, manifest.context_tokens));
  HX_ASSIGN_OR_RETURN(const ir::Module module, BuildEvictor(manifest));
  NullProgress progress;
  HX_ASSIGN_OR_RETURN(auto entries,
                      LowerForTarget(target, module, sink, progress));
  for (GraphEntry& entry : entries) manifest.graphs.push_back(std::move(entry));
  manifest.attention_sink = settings;
  return OkStatus();
}

Status ReplaceEvictor(const std::string& path, const std::string& out_path,
                      const TargetOptions& target,
                      const artifact::SinkSettings& settings) {
  HX_ASSIGN_OR_RETURN(const auto from, artifact::Artifact::Open(path));
  if (from->manifest().key_ropes.empty()) {
    return Error{ErrorCode::kUnsupported,
                 path +
                     ": it does not say which keys are rotated, as it is of "
                     "an older hexllm; compile its checkpoint again"};
  }
  TargetOptions same = target;
  same.name = from->manifest().graphs.at(0).backend;
  HX_RETURN_IF_ERROR(CheckTarget(same));
  HX_ASSIGN_OR_RETURN(artifact::FileSink sink,
                      artifact::FileSink::Create(out_path));
  HX_ASSIGN_OR_RETURN(const auto numbers, CopySegments(*from, sink));
  Manifest manifest = Renumbered(from->manifest(), numbers);
  HX_RETURN_IF_ERROR(AddEvictor(same, settings, sink, manifest));
  return sink.Finish(std::move(manifest));
}

}  // namespace hexllm
