// An engine that runs the fake model of fake_model.h, and its artifact. It is
// as strict as the contract of backend/engine.h allows: exact sizes, every
// mask element one of the two patterns, garbage in all rows that are padding.
#pragma once

#include <cstddef>
#include <cstdio>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "artifact/artifact.h"
#include "artifact/writer.h"
#include "backend/engine.h"
#include "base/check.h"
#include "tests/support/fake_model.h"
#include "tests/support/io_spec.h"

namespace hexllm::testing {

// Makes the manifest of a fake model.
class FakeArtifactBuilder {
 public:
  explicit FakeArtifactBuilder(FakeOptions options)
      : options_(std::move(options)) {}

  // Any test may change it before Build.
  artifact::Manifest& manifest() { return manifest_; }
  artifact::MemorySink& sink() { return sink_; }

  std::shared_ptr<const artifact::Artifact> Build() {
    manifest_.producer = "hexllm test";
    manifest_.model_name = "fake";
    manifest_.architecture = "fake";
    manifest_.stage = "fp";
    manifest_.vocab_size = options_.vocab;
    manifest_.layers = options_.layers;
    manifest_.context_tokens = options_.context;
    manifest_.mask_windows = options_.windows;
    manifest_.generation = options_.generation;
    AddRopeTable();
    if (options_.host_embedding) AddEmbedding();
    const uint32_t plan =
        Add({"plan", artifact::SegmentKind::kCpuPlan}, AsBytes("fake plan"));
    manifest_.lookahead = options_.lookahead;
    if (const auto& shape = options_.lookahead) {
      options_.steps.push_back(
          {GraphKind::kLookahead,
           (shape->window + shape->guesses) * (shape->ngram - 1),
           LogitsRows::kAll});
    }
    for (const FakeStep& step : options_.steps) {
      for (uint32_t s = 0; s < options_.shards; ++s)
        manifest_.graphs.push_back(MakeGraph(step, s, plan));
    }
    auto made = std::move(sink_).Finish(manifest_, nullptr);
    if (!made.ok()) std::fprintf(stderr, "%s\n", made.error().message.c_str());
    return std::move(made).value();
  }

  uint32_t Add(artifact::NewSegment segment, ByteSpan bytes) {
    return sink_.Add(std::move(segment), bytes).value();
  }

 private:
  using IoSpec = artifact::IoSpec;

  void AddRopeTable() {
    artifact::RopeTable table{.positions = options_.context,
                              .half_dim = options_.rope_half_dim};
    for (uint32_t which = 0; which < 2; ++which) {
      std::vector<float> values;
      for (uint32_t p = 0; p < table.positions; ++p) {
        for (uint32_t i = 0; i < table.half_dim; ++i) {
          const auto code = static_cast<int32_t>(FakeRopeCode(p, i, which));
          values.push_back(kFakeRopeScale *
                           static_cast<float>(code - kFakeRopeZeroPoint));
        }
      }
      const uint32_t segment = Add({which == 0 ? "rope/cos" : "rope/sin",
                                    artifact::SegmentKind::kRopeTable},
                                   std::as_bytes(std::span(values)));
      (which == 0 ? table.cos_segment : table.sin_segment) = segment;
    }
    manifest_.rope_tables = {table};
  }

  // The embedding of a token is its id.
  void AddEmbedding() {
    std::vector<float> rows;
    for (uint32_t id = 0; id < options_.vocab; ++id)
      rows.push_back(static_cast<float>(id));
    const uint32_t segment =
        Add({"embedding", artifact::SegmentKind::kEmbedding},
            std::as_bytes(std::span(rows)));
    manifest_.embedding = {.segment = segment, .width = 1};
  }

  artifact::GraphEntry MakeGraph(const FakeStep& step, uint32_t shard,
                                 uint32_t plan) {
    artifact::GraphEntry graph;
    graph.name = std::string(GraphKindName(step.kind)) + "_" +
                 std::to_string(step.step_tokens) + "_" + std::to_string(shard);
    graph.kind = step.kind;
    graph.step_tokens = step.step_tokens;
    graph.context_tokens = options_.context;
    graph.logits_rows = step.logits_rows;
    graph.shard = shard;
    graph.backend = "cpu";
    graph.program = plan;
    AddStepInputs(graph);
    const uint32_t per_shard = options_.layers / options_.shards;
    const uint32_t end = shard + 1 == options_.shards ? options_.layers
                                                      : (shard + 1) * per_shard;
    for (uint32_t l = shard * per_shard; l < end; ++l) AddLayer(graph, l);
    AddEnds(graph);
    return graph;
  }

  void AddStepInputs(artifact::GraphEntry& graph) {
    const int64_t t = graph.step_tokens;
    for (const RoleKind kind : {RoleKind::kRopeCos, RoleKind::kRopeSin}) {
      IoSpec spec =
          MakeIo({kind}, options_.rope_dtype, {t, options_.rope_half_dim});
      if (spec.dtype != DType::kF32)
        spec.encoding = {kFakeRopeScale, kFakeRopeZeroPoint};
      graph.inputs.push_back(spec);
    }
    for (size_t j = 0; j < options_.windows.size(); ++j) {
      graph.inputs.push_back(MakeMaskIo(
          static_cast<int32_t>(j), options_.mask_dtype, {t, options_.context}));
    }
  }

  void AddLayer(artifact::GraphEntry& graph, uint32_t layer) {
    const int64_t t = graph.step_tokens;
    const int64_t p = graph.context_tokens - graph.step_tokens;
    const auto add = [&](RoleKind kind, Shape shape) {
      IoSpec spec = MakeIo({kind, static_cast<int32_t>(layer)},
                           options_.kv_dtype, std::move(shape));
      if (spec.dtype != DType::kF32) spec.encoding = {0.5f, 3};
      (IsInputRole(kind) ? graph.inputs : graph.outputs).push_back(spec);
    };
    const int64_t g = options_.groups;
    if (p > 0) add(RoleKind::kVIn, {g, p, options_.v_dim});
    if (p > 0) add(RoleKind::kKIn, {g, options_.k_dim, p});
    add(RoleKind::kKOut, {g, options_.k_dim, t});
    add(RoleKind::kVOut, {g, t, options_.v_dim});
  }

  void AddEnds(artifact::GraphEntry& graph) {
    const int64_t t = graph.step_tokens;
    const bool last = graph.shard + 1 == options_.shards;
    if (graph.shard == 0) {
      graph.inputs.push_back(
          options_.host_embedding
              ? MakeIo({RoleKind::kEmbedding}, DType::kF32, {t, 1})
              : MakeIo({RoleKind::kToken}, DType::kI32, {t}));
    } else {
      graph.inputs.push_back(
          MakeIo({RoleKind::kHiddenIn}, DType::kF32, {t, 2}));
    }
    if (!last) {
      graph.outputs.push_back(
          MakeIo({RoleKind::kHiddenOut}, DType::kF32, {t, 2}));
    }
    if (!last || graph.logits_rows == LogitsRows::kNone) return;
    const int64_t rows = graph.logits_rows == LogitsRows::kAll ? t : 1;
    IoSpec logits = MakeIo({RoleKind::kLogits}, options_.logits_dtype,
                           {rows, options_.vocab});
    if (logits.dtype != DType::kF32) logits.encoding = {kFakeLogitScale, 0};
    graph.outputs.push_back(logits);
  }

  FakeOptions options_;
  artifact::Manifest manifest_;
  artifact::MemorySink sink_;
};

// What a fake engine does wrong, and what it saw.
struct FakeFaults {
  std::optional<int> failing_step;  // the Execute call (from 0) that fails
  std::optional<int> nan_step;      // the one whose logits are NaN
  int steps = 0;                    // Execute calls so far
  int allocations = 0;
  std::vector<uint32_t> step_tokens;  // T of each
  std::vector<uint32_t> first_rows;   // StepRows::begin of each
  // Called with true when an Execute begins and with false when it ends.
  std::function<void(bool)> on_execute = [](bool) {};
};

class FakeGraph final : public ExecutableGraph {
 public:
  FakeGraph(std::shared_ptr<const artifact::Artifact> artifact, size_t index,
            FakeFaults* faults)
      : artifact_(std::move(artifact)), index_(index), faults_(faults) {}

  const artifact::GraphEntry& entry() const override {
    return artifact_->manifest().graphs[index_];
  }

  Status Bind(IoDirection direction, size_t index,
              std::span<std::byte> memory) override {
    const auto& specs =
        direction == IoDirection::kInput ? entry().inputs : entry().outputs;
    const artifact::IoSpec& spec = specs.at(index);
    const bool is_cache =
        spec.role.kind == RoleKind::kKIn || spec.role.kind == RoleKind::kVIn;
    const size_t alignment =
        is_cache ? GetDTypeInfo(spec.dtype).block_bytes : kBufferAlignment;
    if (memory.size() != *StorageBytes(spec.dtype, spec.shape) ||
        reinterpret_cast<uintptr_t>(memory.data()) % alignment != 0) {
      return Error{ErrorCode::kUsage,
                   "wrong memory for " + RoleToString(spec.role)};
    }
    bound_[{spec.role.kind, spec.role.index}] = {&spec, memory};
    return OkStatus();
  }

  Status Execute(StepRows rows) override {
    faults_->on_execute(true);
    Status status = RunStep(rows);
    faults_->on_execute(false);
    return status;
  }

 private:
  struct Bound {
    const artifact::IoSpec* spec = nullptr;
    std::span<std::byte> memory;
  };

  Status RunStep(StepRows rows) {
    HX_CHECK(bound_.size() == entry().inputs.size() + entry().outputs.size());
    const int step = faults_->steps++;
    faults_->step_tokens.push_back(entry().step_tokens);
    faults_->first_rows.push_back(rows.begin);
    if (faults_->failing_step == step)
      return Error{ErrorCode::kEnvironment, "the fake device is lost"};
    FillGarbage();
    // Row by row: a row's keys and values are made before later rows read them.
    for (uint32_t row = rows.begin; row < entry().step_tokens; ++row)
      HX_RETURN_IF_ERROR(RunRow(row, rows.begin, faults_->nan_step == step));
    return OkStatus();
  }

  const Bound* Find(RoleKind kind, size_t index = 0) const {
    const auto it = bound_.find({kind, static_cast<int32_t>(index)});
    return it == bound_.end() ? nullptr : &it->second;
  }
  static size_t ElementSize(const Bound& io) {
    return GetDTypeInfo(io.spec->dtype).block_bytes;
  }
  static uint64_t Get(const Bound& io, size_t element) {
    uint64_t value = 0;
    const size_t size = ElementSize(io);
    HX_CHECK((element + 1) * size <= io.memory.size());
    std::memcpy(&value, io.memory.data() + element * size, size);
    return value;
  }
  static void Put(const Bound& io, size_t element, uint64_t value) {
    const size_t size = ElementSize(io);
    HX_CHECK((element + 1) * size <= io.memory.size());
    std::memcpy(io.memory.data() + element * size, &value, size);
  }

  void FillGarbage() {
    for (const auto& [role, io] : bound_) {
      if (!IsInputRole(role.first))
        std::memset(io.memory.data(), 0xa5, io.memory.size());
    }
  }

  uint64_t FirstState(uint32_t row) const {
    if (const Bound* hidden = Find(RoleKind::kHiddenIn)) {
      uint64_t h = 0;
      std::memcpy(&h, hidden->memory.data() + row * sizeof(h), sizeof(h));
      return h;
    }
    std::vector<uint32_t> codes;
    for (const RoleKind kind : {RoleKind::kRopeCos, RoleKind::kRopeSin}) {
      const Bound& io = *Find(kind);
      const auto half = static_cast<size_t>(io.spec->shape[1]);
      for (size_t i = 0; i < half; ++i) {
        const uint64_t bits = Get(io, row * half + i);
        float value = 0;
        std::memcpy(&value, &bits, sizeof(value));
        codes.push_back(io.spec->encoding
                            ? static_cast<uint32_t>(bits)
                            : static_cast<uint32_t>(
                                  static_cast<int32_t>(value / kFakeRopeScale) +
                                  kFakeRopeZeroPoint));
      }
    }
    const int32_t token = TokenOf(row);
    HX_CHECK(token >= 0);
    return FakeEmbed(token, codes);
  }

  int32_t TokenOf(uint32_t row) const {
    if (const Bound* tokens = Find(RoleKind::kToken))
      return static_cast<int32_t>(Get(*tokens, row));
    const Bound& embedding = *Find(RoleKind::kEmbedding);
    float id = 0;
    HX_CHECK((row + 1) * sizeof(id) <= embedding.memory.size());
    std::memcpy(&id, embedding.memory.data() + row * sizeof(id), sizeof(id));
    return static_cast<int32_t>(id);
  }

  Status RunRow(uint32_t row, uint32_t begin, bool nan) {
    uint64_t h = FirstState(row);
    for (size_t l = 0; l < artifact_->manifest().layers; ++l) {
      if (Find(RoleKind::kKOut, l) == nullptr) continue;
      WriteColumn(l, row, h);
      HX_ASSIGN_OR_RETURN(const uint64_t sum, SumColumns(l, row, begin));
      h = FakeAttend(h, sum);
    }
    if (const Bound* hidden = Find(RoleKind::kHiddenOut))
      std::memcpy(hidden->memory.data() + row * sizeof(h), &h, sizeof(h));
    WriteLogits(row, h, nan);
    return OkStatus();
  }

  void WriteColumn(size_t layer, uint32_t row, uint64_t h) {
    const size_t t = entry().step_tokens;
    const Bound& k = *Find(RoleKind::kKOut, layer);
    const auto outer = static_cast<size_t>(k.spec->shape[0] * k.spec->shape[1]);
    for (size_t e = 0; e < outer; ++e)
      Put(k, e * t + row, FakeKvElement(h, 0, e, ElementSize(k)));
    const Bound& v = *Find(RoleKind::kVOut, layer);
    const auto groups = static_cast<size_t>(v.spec->shape[0]);
    const auto dim = static_cast<size_t>(v.spec->shape[2]);
    for (size_t g = 0; g < groups; ++g) {
      for (size_t d = 0; d < dim; ++d)
        Put(v, (g * t + row) * dim + d,
            FakeKvElement(h, 1, g * dim + d, ElementSize(v)));
    }
  }

  // The hash of one column of K and V tensors with `columns` columns.
  static uint64_t HashColumn(const Bound& k, const Bound& v, size_t columns,
                             size_t column) {
    std::vector<uint64_t> elements;
    const auto outer = static_cast<size_t>(k.spec->shape[0] * k.spec->shape[1]);
    for (size_t e = 0; e < outer; ++e)
      elements.push_back(Get(k, e * columns + column));
    const auto groups = static_cast<size_t>(v.spec->shape[0]);
    const auto dim = static_cast<size_t>(v.spec->shape[2]);
    for (size_t g = 0; g < groups; ++g) {
      for (size_t d = 0; d < dim; ++d)
        elements.push_back(Get(v, (g * columns + column) * dim + d));
    }
    return FakeReference::HashElements(elements);
  }

  Result<uint64_t> SumColumns(size_t layer, uint32_t row, uint32_t begin) {
    const size_t t = entry().step_tokens;
    const size_t c = entry().context_tokens;
    const size_t past = c - t;
    const Bound& mask = *Find(
        RoleKind::kMask, layer % artifact_->manifest().mask_windows.size());
    uint64_t sum = 0;
    for (size_t column = 0; column < c; ++column) {
      const uint64_t bits = Get(mask, row * c + column);
      if (bits == mask.spec->mask_hidden) continue;
      // Padding columns and later rows hold nothing yet.
      const bool readable =
          column < past || (column - past >= begin && column - past <= row);
      if (bits != mask.spec->mask_visible || !readable)
        return Error{ErrorCode::kEnvironment, "bad mask element"};
      sum += column < past
                 ? HashColumn(*Find(RoleKind::kKIn, layer),
                              *Find(RoleKind::kVIn, layer), past, column)
                 : HashColumn(*Find(RoleKind::kKOut, layer),
                              *Find(RoleKind::kVOut, layer), t, column - past);
    }
    return sum;
  }

  void WriteLogits(uint32_t row, uint64_t h, bool nan) {
    const Bound* logits = Find(RoleKind::kLogits);
    const bool all = entry().logits_rows == LogitsRows::kAll;
    if (logits == nullptr || (!all && row + 1 != entry().step_tokens)) return;
    const uint32_t vocab = artifact_->manifest().vocab_size;
    const size_t first = (all ? row : 0) * size_t{vocab};
    for (uint32_t v = 0; v < vocab; ++v) {
      const uint32_t code = FakeLogitCode(h, v);
      if (logits->spec->encoding) {
        Put(*logits, first + v, code);
        continue;
      }
      const float value =
          nan ? __builtin_nanf("") : kFakeLogitScale * static_cast<float>(code);
      uint32_t bits = 0;
      std::memcpy(&bits, &value, sizeof(bits));
      Put(*logits, first + v, bits);
    }
  }

  std::shared_ptr<const artifact::Artifact> artifact_;
  size_t index_;
  FakeFaults* faults_;
  std::map<std::pair<RoleKind, int32_t>, Bound> bound_;
};

class FakeEngine final : public Engine {
 public:
  std::string_view name() const override { return "fake"; }

  Result<Buffer> Allocate(size_t bytes) override {
    ++faults.allocations;
    // Garbage after a buffer's end would be found by the sanitizers.
    auto* data = static_cast<std::byte*>(::operator new (
        bytes == 0 ? 1 : bytes, std::align_val_t{kBufferAlignment}));
    std::memset(data, 0, bytes);
    return Buffer(data, bytes, [](std::byte* memory, size_t) {
      ::operator delete (memory, std::align_val_t{kBufferAlignment});
    });
  }

  Result<std::unique_ptr<ExecutableGraph>> Load(
      std::shared_ptr<const artifact::Artifact> artifact,
      size_t index) override {
    return std::unique_ptr<ExecutableGraph>(
        new FakeGraph(std::move(artifact), index, &faults));
  }

  FakeFaults faults;
};

inline std::shared_ptr<const artifact::Artifact> MakeFakeArtifact(
    FakeOptions options) {
  return FakeArtifactBuilder(std::move(options)).Build();
}

}  // namespace hexllm::testing
