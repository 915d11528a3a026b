#include "backend/cpu/engine.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "backend/cpu/engine_load.h"
#include "backend/cpu/engine_memory.h"
#include "backend/cpu/engine_ops.h"
#include "backend/cpu/kernels/kernels.h"
#include "backend/engine_checks.h"
#include "base/check.h"
#include "base/thread_pool.h"

namespace hexllm::cpu {
namespace {

using artifact::Artifact;
using artifact::GraphEntry;
using artifact::IoSpec;

constexpr int kMaxThreads = 1024;
// Parts of scratch start on cache lines.
constexpr int64_t kScratchAlignFloats = 16;

// What the graphs of one engine share.
struct Shared {
  Shared(int threads, const KernelTable& table, int64_t grain)
      : pool(threads), kernels(table), grain_work(grain) {}

  ThreadPool pool;
  const KernelTable& kernels;
  int64_t grain_work;
};

class CpuGraph final : public ExecutableGraph {
 public:
  CpuGraph(std::shared_ptr<const Artifact> artifact, size_t index,
           std::shared_ptr<Shared> shared)
      : artifact_(std::move(artifact)),
        entry_(artifact_->manifest().graphs[index]),
        shared_(std::move(shared)),
        inputs_(entry_.inputs.size()),
        outputs_(entry_.outputs.size()) {}

  Status Init(size_t index);
  const GraphEntry& entry() const override { return entry_; }
  Status Bind(IoDirection direction, size_t index,
              std::span<std::byte> memory) override;
  Status Execute(StepRows rows) override;

 private:
  // Memory of one input or output; empty spans of empty tensors are bound too.
  struct Bound {
    std::span<std::byte> memory;
    bool bound = false;
  };
  Status CheckTokens(const TokenCheck& check, int64_t begin) const;

  std::shared_ptr<const Artifact> artifact_;
  const GraphEntry& entry_;
  std::shared_ptr<Shared> shared_;
  Program program_;
  Buffer scratch_;
  int64_t scratch_stride_ = 0;
  std::vector<Bound> inputs_;
  std::vector<Bound> outputs_;
};

Status CpuGraph::Init(size_t index) {
  HX_ASSIGN_OR_RETURN(program_,
                      LoadProgram(*artifact_, index, shared_->kernels));
  scratch_stride_ = (program_.scratch_floats + kScratchAlignFloats - 1) /
                    kScratchAlignFloats * kScratchAlignFloats;
  const auto bytes =
      StorageBytes(DType::kF32, {shared_->pool.threads(), scratch_stride_});
  HX_CHECK(bytes.has_value());
  HX_ASSIGN_OR_RETURN(scratch_, AllocateBuffer(*bytes));
  return OkStatus();
}

Status CpuGraph::Bind(IoDirection direction, size_t index,
                      std::span<std::byte> memory) {
  HX_RETURN_IF_ERROR(CheckMemory(entry_, direction, index, memory));
  const bool input = direction == IoDirection::kInput;
  (input ? inputs_ : outputs_)[index] = {.memory = memory, .bound = true};
  const auto& slots =
      (input ? program_.input_slots : program_.output_slots)[index];
  for (const IoSlot& slot : slots) {
    program_.steps[slot.step].at[slot.slot] = memory.data();
  }
  return OkStatus();
}

Status CpuGraph::CheckTokens(const TokenCheck& check, int64_t begin) const {
  const auto* ids =
      reinterpret_cast<const int32_t*>(inputs_[check.input].memory.data());
  const int64_t padding = begin - check.rows.first;
  for (int64_t r = std::clamp<int64_t>(padding, 0, check.rows.count);
       r < check.rows.count; ++r) {
    HX_RETURN_IF_ERROR(CheckTokenId(ids[r], r, check.vocab));
  }
  return OkStatus();
}

Status CpuGraph::Execute(StepRows rows) {
  HX_RETURN_IF_ERROR(CheckReady(entry_, rows, inputs_, outputs_));
  for (const TokenCheck& check : program_.token_checks) {
    HX_RETURN_IF_ERROR(CheckTokens(check, rows.begin));
  }
  const RunContext context{
      .pool = shared_->pool,
      .kernels = shared_->kernels,
      .grain_work = shared_->grain_work,
      .scratch = reinterpret_cast<float*>(scratch_.bytes().data()),
      .scratch_stride = scratch_stride_,
      .begin = rows.begin};
  for (const Step& step : program_.steps) step.run(step, context);
  return OkStatus();
}

class CpuEngine final : public Engine {
 public:
  explicit CpuEngine(std::shared_ptr<Shared> shared)
      : shared_(std::move(shared)) {}

  std::string_view name() const override { return "cpu"; }
  Result<Buffer> Allocate(size_t bytes) override {
    return AllocateBuffer(bytes);
  }
  Result<std::unique_ptr<ExecutableGraph>> Load(
      std::shared_ptr<const Artifact> artifact, size_t index) override;

 private:
  std::shared_ptr<Shared> shared_;
};

Result<std::unique_ptr<ExecutableGraph>> CpuEngine::Load(
    std::shared_ptr<const Artifact> artifact, size_t index) {
  const std::vector<GraphEntry>& graphs = artifact->manifest().graphs;
  if (index >= graphs.size()) {
    return Error{ErrorCode::kUsage,
                 fmt::format("{} has {} graphs, there is no number {}",
                             artifact->path(), graphs.size(), index)};
  }
  if (graphs[index].backend != name()) {
    return Error{ErrorCode::kUnsupported,
                 fmt::format("{}: graph '{}' is for backend '{}', this is the "
                             "CPU",
                             artifact->path(), graphs[index].name,
                             graphs[index].backend)};
  }
  auto graph = std::make_unique<CpuGraph>(std::move(artifact), index, shared_);
  HX_RETURN_IF_ERROR(graph->Init(index));
  return std::unique_ptr<ExecutableGraph>(std::move(graph));
}

}  // namespace

std::string_view IsaName(Isa isa) {
  switch (isa) {
    case Isa::kScalar:
      return "scalar";
    case Isa::kAvx2:
      return "avx2";
    case Isa::kAvx512:
      return "avx512";
    case Isa::kAvx512Vnni:
      return "avx512vnni";
    case Isa::kNeon:
      return "neon";
    case Isa::kNeonDot:
      return "neondot";
  }
  return "unknown";
}

Result<std::unique_ptr<Engine>> CreateEngine(const EngineOptions& options) {
  if (options.threads < 0 || options.threads > kMaxThreads) {
    return Error{ErrorCode::kUsage,
                 fmt::format("threads: expected 0 (one per core) to {}, found "
                             "{}",
                             kMaxThreads, options.threads)};
  }
  const KernelTable* kernels =
      options.isa ? FindKernels(*options.isa) : &BestKernels();
  if (kernels == nullptr) {
    return Error{ErrorCode::kUnsupported,
                 fmt::format("this CPU or this build has no {} kernels",
                             IsaName(*options.isa))};
  }
  if (options.grain_work < 1) {
    return Error{ErrorCode::kUsage,
                 fmt::format("work of a part: expected 1 or more, found {}",
                             options.grain_work)};
  }
  const int threads = options.threads > 0 ? options.threads : PhysicalCores();
  return std::unique_ptr<Engine>(
      std::make_unique<CpuEngine>(std::make_shared<Shared>(
          std::min(threads, kMaxThreads), *kernels, options.grain_work)));
}

}  // namespace hexllm::cpu
