// Lowers modules into artifacts and runs their graphs on an engine, tensor in,
// tensor out. For tests of backends; models are run by Sessions.
#pragma once

#include <bit>
#include <cstring>
#include <memory>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "artifact/artifact.h"
#include "artifact/segment_sink.h"
#include "backend/cpu/lower.h"
#include "backend/engine.h"
#include "base/check.h"
#include "base/progress.h"
#include "ir/graph.h"
#include "tests/support/io_tensors.h"

namespace hexllm::testing {

// An artifact whose manifest need not be a model's: any graph, any plan. Each
// segment has an allocation of exactly its size, so that sanitizers see a read
// beyond it.
class TestArtifact final : public artifact::Artifact,
                           public artifact::SegmentSink {
 public:
  TestArtifact() { path_ = "(test)"; }

  ByteSpan Segment(uint32_t index) const override {
    HX_CHECK(index < segments_.size());
    const Stored& segment = segments_[index];
    return ByteSpan(segment.memory.get(), segment.bytes)
        .subspan(segment.offset);
  }
  Result<uint32_t> Add(artifact::NewSegment segment, ByteSpan bytes) override {
    lifetimes.push_back(segment.lifetime);
    manifest_.segments.push_back({.name = segment.name,
                                  .kind = segment.kind,
                                  .offset = 0,
                                  .bytes = bytes.size(),
                                  .checksum = 0});
    segments_.emplace_back();
    Replace(static_cast<uint32_t>(segments_.size() - 1), bytes);
    return static_cast<uint32_t>(segments_.size() - 1);
  }
  // Segment `index` holds these bytes from now on, `offset` bytes behind an
  // aligned address.
  void Replace(uint32_t index, ByteSpan bytes, size_t offset = 0) {
    const size_t size = bytes.size() + offset;
    Stored stored{.memory = std::unique_ptr<std::byte[], Free>(
                      new (kAlign) std::byte[size]),
                  .bytes = size,
                  .offset = offset};
    std::memcpy(stored.memory.get() + offset, bytes.data(), bytes.size());
    segments_[index] = std::move(stored);
  }
  artifact::Manifest& manifest_for_edit() { return manifest_; }

  std::vector<artifact::Lifetime> lifetimes;  // of the segments, as given

 private:
  // Of artifacts' segments; they have more.
  static constexpr std::align_val_t kAlign{64};
  struct Free {
    void operator()(std::byte* memory) const {
      ::operator delete[](memory, kAlign);
    }
  };
  struct Stored {
    std::unique_ptr<std::byte[], Free> memory;
    size_t bytes = 0;
    size_t offset = 0;
  };
  std::vector<Stored> segments_;
};

// `module` lowered for the CPU.
inline Result<std::shared_ptr<TestArtifact>> LowerForTest(
    const ir::Module& module) {
  auto artifact = std::make_shared<TestArtifact>();
  NullProgress progress;
  HX_ASSIGN_OR_RETURN(artifact->manifest_for_edit().graphs,
                      cpu::Lower(module, *artifact, progress));
  return artifact;
}

// A loaded graph with memory of its own for every input and output.
class BoundGraph {
 public:
  static Result<BoundGraph> Load(
      Engine& engine, std::shared_ptr<const artifact::Artifact> artifact,
      size_t index) {
    BoundGraph out;
    HX_ASSIGN_OR_RETURN(out.graph_, engine.Load(std::move(artifact), index));
    const artifact::GraphEntry& entry = out.graph_->entry();
    HX_RETURN_IF_ERROR(
        out.BindAll(engine, IoDirection::kInput, entry.inputs, out.inputs_));
    HX_RETURN_IF_ERROR(
        out.BindAll(engine, IoDirection::kOutput, entry.outputs, out.outputs_));
    return out;
  }

  ExecutableGraph& graph() { return *graph_; }

  // Memory of the input or output with this role, as floats.
  std::span<float> Input(const Role& role) {
    return Floats(inputs_[Find(graph_->entry().inputs, role)]);
  }
  std::span<float> Output(const Role& role) {
    return Floats(outputs_[Find(graph_->entry().outputs, role)]);
  }
  std::span<int32_t> Tokens() {
    const std::span<float> raw = Input({.kind = RoleKind::kToken});
    return {reinterpret_cast<int32_t*>(raw.data()), raw.size()};
  }

  // Copies `tensor` into input `index`, in the codes of its encoding.
  void SetInput(size_t index, const ir::HostTensor& tensor) {
    const artifact::IoSpec& spec = graph_->entry().inputs[index];
    if (spec.dtype != DType::kF32 && spec.dtype != DType::kI32) {
      return EncodeTensor(tensor.floats, spec, inputs_[index].bytes());
    }
    std::span<float> to = Floats(inputs_[index]);
    HX_CHECK(to.size() == tensor.floats.size() + tensor.ints.size());
    for (size_t i = 0; i < tensor.ints.size(); ++i) {
      to[i] = std::bit_cast<float>(static_cast<int32_t>(tensor.ints[i]));
    }
    if (!tensor.floats.empty()) {
      std::memcpy(to.data(), tensor.floats.data(), to.size_bytes());
    }
  }
  // Output `index`, decoded.
  ir::HostTensor GetOutput(size_t index) {
    const artifact::IoSpec& spec = graph_->entry().outputs[index];
    if (spec.dtype != DType::kF32) return Decoded(index, spec);
    const std::span<float> from = Floats(outputs_[index]);
    return {.type = {.dtype = DType::kF32,
                     .shape = graph_->entry().outputs[index].shape},
            .floats = {from.begin(), from.end()},
            .ints = {}};
  }

 private:
  static std::span<float> Floats(Buffer& buffer) {
    const std::span<std::byte> bytes = buffer.bytes();
    return {reinterpret_cast<float*>(bytes.data()),
            bytes.size() / sizeof(float)};
  }
  ir::HostTensor Decoded(size_t index, const artifact::IoSpec& spec) {
    ir::HostTensor out{.type = {.dtype = DType::kF32, .shape = spec.shape}};
    out.floats.resize(static_cast<size_t>(NumElements(spec.shape).value()));
    DecodeTensor(outputs_[index].bytes(), spec, out.floats);
    return out;
  }
  static size_t Find(const std::vector<artifact::IoSpec>& specs,
                     const Role& role) {
    for (size_t i = 0; i < specs.size(); ++i) {
      if (specs[i].role == role) return i;
    }
    CheckFailed(__FILE__, __LINE__, RoleToString(role).c_str());
  }
  Status BindAll(Engine& engine, IoDirection direction,
                 const std::vector<artifact::IoSpec>& specs,
                 std::vector<Buffer>& buffers) {
    for (size_t i = 0; i < specs.size(); ++i) {
      const auto bytes = StorageBytes(specs[i].dtype, specs[i].shape);
      HX_CHECK(bytes.has_value());
      HX_ASSIGN_OR_RETURN(Buffer buffer, engine.Allocate(*bytes));
      HX_RETURN_IF_ERROR(graph_->Bind(direction, i, buffer.bytes()));
      buffers.push_back(std::move(buffer));
    }
    return OkStatus();
  }

  std::vector<Buffer> inputs_;
  std::vector<Buffer> outputs_;
  std::unique_ptr<ExecutableGraph> graph_;
};

// Runs graph 0 of `module` once. Errors come back as they are.
inline Result<std::vector<ir::HostTensor>> RunOnEngine(
    const ir::Module& module, Engine& engine,
    std::span<const ir::HostTensor> inputs) {
  HX_ASSIGN_OR_RETURN(const auto artifact, LowerForTest(module));
  HX_ASSIGN_OR_RETURN(BoundGraph graph, BoundGraph::Load(engine, artifact, 0));
  for (size_t i = 0; i < inputs.size(); ++i) graph.SetInput(i, inputs[i]);
  HX_RETURN_IF_ERROR(graph.graph().Execute({}));
  std::vector<ir::HostTensor> outputs;
  for (size_t i = 0; i < module.graphs[0].outputs.size(); ++i) {
    outputs.push_back(graph.GetOutput(i));
  }
  return outputs;
}

}  // namespace hexllm::testing
