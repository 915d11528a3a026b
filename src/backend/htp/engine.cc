#include "backend/htp/engine.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "backend/cpu/engine_memory.h"
#include "backend/htp/context_info.h"
#include "backend/htp/engine_contexts.h"
#include "backend/htp/engine_graph.h"
#include "backend/htp/qnn_executable.h"
#include "backend/htp/rpc_memory.h"
#include "base/quote.h"

namespace hexllm::htp {
namespace {

using artifact::Artifact;
using artifact::GraphEntry;

class HtpEngine final : public Engine {
 public:
  // `memory` is null for buffers of the host.
  HtpEngine(EngineContexts contexts, std::shared_ptr<RpcMemory> memory,
            Performance performance)
      : memory_(std::move(memory)),
        performance_(performance),
        contexts_(std::move(contexts)) {}

  std::string_view name() const override { return "htp"; }
  Status Reserve(size_t bytes) override {
    return memory_ == nullptr ? OkStatus() : memory_->Reserve(bytes);
  }
  Result<Buffer> Allocate(size_t bytes) override {
    return memory_ == nullptr ? cpu::AllocateBuffer(bytes)
                              : memory_->Allocate(bytes);
  }
  Result<std::unique_ptr<ExecutableGraph>> Load(
      std::shared_ptr<const Artifact> artifact, size_t index) override;
  Status SetBusy(bool busy) override;

 private:
  Status AddVote(const std::shared_ptr<const QnnSession>& session);

  std::shared_ptr<RpcMemory> memory_;
  Performance performance_;
  EngineContexts contexts_;
  // By session; a device has one.
  std::map<const QnnSession*, std::unique_ptr<PowerVote>> votes_;
  int busy_ = 0;  // how many say so
};

Result<GraphInfo> FindGraph(const ContextInfo& info, const std::string& name) {
  for (const ContextGraph& graph : info.graphs) {
    if (graph.info.name == name) return graph.info;
  }
  return Error{ErrorCode::kBadInput,
               fmt::format("the context binary has no graph {}", Quoted(name))};
}

// True when the library cannot load the graph's program: it is of several
// graphs, which then share weights, and the simulator ends the process.
bool IsForDevicesOnly(const EngineContexts& contexts,
                      const std::vector<GraphEntry>& graphs, size_t index) {
  if (!contexts.library().is_simulator()) return false;
  const uint32_t program = contexts.ProgramOf(graphs[index]);
  const auto program_of = [&](const GraphEntry& graph) {
    return contexts.ProgramOf(graph);
  };
  return std::ranges::count(graphs, program, program_of) > 1;
}

// kUsage or kUnsupported when graph `index` is none of this engine.
Status CheckGraph(const EngineContexts& contexts, const Artifact& artifact,
                  size_t index) {
  const std::vector<GraphEntry>& graphs = artifact.manifest().graphs;
  if (index >= graphs.size()) {
    return Error{ErrorCode::kUsage,
                 fmt::format("{} has {} graphs, there is no number {}",
                             artifact.path(), graphs.size(), index)};
  }
  if (graphs[index].backend != "htp") {
    return Error{ErrorCode::kUnsupported,
                 fmt::format("{}: graph '{}' is for backend '{}', this is htp",
                             artifact.path(), graphs[index].name,
                             graphs[index].backend)};
  }
  if (IsForDevicesOnly(contexts, graphs, index)) {
    return Error{ErrorCode::kUnsupported,
                 fmt::format("{}: graph '{}' shares weights with others, which "
                             "loads on a device only; compile with --simulator "
                             "to run it on x86, too",
                             artifact.path(), graphs[index].name)};
  }
  const uint32_t program = contexts.ProgramOf(graphs[index]);
  const auto& segments = artifact.manifest().segments;
  if (program < segments.size() &&
      segments[program].kind == artifact::SegmentKind::kQnnContext) {
    return OkStatus();
  }
  return Error{ErrorCode::kBadInput,
               fmt::format("{}: the program of graph '{}' is no QNN context",
                           artifact.path(), graphs[index].name)};
}

Status HtpEngine::AddVote(const std::shared_ptr<const QnnSession>& session) {
  if (performance_ == Performance::kDefault) return OkStatus();
  if (votes_.contains(session.get())) return OkStatus();
  HX_ASSIGN_OR_RETURN(auto vote, PowerVote::Create(session, performance_));
  votes_[session.get()] = std::move(vote);
  return OkStatus();
}

Status HtpEngine::SetBusy(bool busy) {
  busy_ += busy ? 1 : -1;
  if (busy_ != (busy ? 1 : 0)) return OkStatus();  // inside of another's
  for (auto& [session, vote] : votes_) {
    if (!busy) {
      vote->Lower();
      continue;
    }
    if (Status raised = vote->Raise(); !raised.ok()) {
      (void)SetBusy(false);
      return raised;
    }
  }
  return OkStatus();
}

Result<std::unique_ptr<ExecutableGraph>> HtpEngine::Load(
    std::shared_ptr<const Artifact> artifact, size_t index) {
  HX_RETURN_IF_ERROR(CheckGraph(contexts_, *artifact, index));
  const GraphEntry& entry = artifact->manifest().graphs[index];
  const uint32_t program = contexts_.ProgramOf(entry);
  auto loaded = contexts_.Load(artifact, program);
  if (!loaded.ok()) {
    return Error(loaded.error())
        .With(fmt::format("{}: segment '{}'", artifact->path(),
                          artifact->manifest().segments[program].name));
  }
  HX_RETURN_IF_ERROR(AddVote((*loaded)->context->shared_session()));
  HX_ASSIGN_OR_RETURN(GraphInfo info, FindGraph((*loaded)->info, entry.name));
  // The executable keeps the loaded context, and with it the cache's entry.
  std::shared_ptr<const QnnContext> context(*loaded, (*loaded)->context.get());
  HX_ASSIGN_OR_RETURN(
      auto executable,
      QnnExecutable::Retrieve(std::move(context), std::move(info), memory_));
  return HtpGraph::Create({.artifact = std::move(artifact), .index = index},
                          std::move(executable));
}

// kUnsupported when something was asked of the simulator that devices alone
// have.
Status CheckOptions(const EngineOptions& options) {
  const char* flag = nullptr;
  if (options.shared_buffer == SharedBuffer::kOn) flag = "--shared-buffer on";
  if (options.performance.value_or(Performance::kDefault) !=
      Performance::kDefault) {
    flag = "--htp-performance";
  }
  if (flag == nullptr) return OkStatus();
  return Error{ErrorCode::kUnsupported,
               fmt::format("{}: this library simulates the HTP, which has "
                           "neither shared memory nor clocks; leave it out",
                           flag)};
}

}  // namespace

Result<std::unique_ptr<Engine>> CreateEngine(const EngineOptions& options) {
  HX_ASSIGN_OR_RETURN(auto library, QnnLibrary::Open(options.lib_dir));
  HX_ASSIGN_OR_RETURN(auto system, QnnSystemLibrary::Open(options.lib_dir));
  const bool device = !library->is_simulator();
  if (!device) HX_RETURN_IF_ERROR(CheckOptions(options));
  std::shared_ptr<RpcMemory> memory;
  if (device && options.shared_buffer != SharedBuffer::kOff) {
    HX_ASSIGN_OR_RETURN(memory, RpcMemory::Open(options.lib_dir));
  }
  const Performance otherwise =
      device ? Performance::kBurst : Performance::kDefault;
  return std::unique_ptr<Engine>(std::make_unique<HtpEngine>(
      EngineContexts(std::move(library), std::move(system)), std::move(memory),
      options.performance.value_or(otherwise)));
}

}  // namespace hexllm::htp
