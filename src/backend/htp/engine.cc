#include "backend/htp/engine.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "backend/cpu/engine_memory.h"
#include "backend/htp/context_info.h"
#include "backend/htp/engine_graph.h"
#include "backend/htp/qnn_executable.h"
#include "backend/htp/qnn_session.h"
#include "base/quote.h"

namespace hexllm::htp {
namespace {

using artifact::Artifact;
using artifact::GraphEntry;

// A context binary, loaded.
struct LoadedContext {
  std::shared_ptr<const QnnContext> context;
  ContextInfo info;
};

class HtpEngine final : public Engine {
 public:
  HtpEngine(std::shared_ptr<const QnnLibrary> library,
            std::shared_ptr<const QnnSystemLibrary> system)
      : library_(std::move(library)), system_(std::move(system)) {}

  std::string_view name() const override { return "htp"; }
  Result<Buffer> Allocate(size_t bytes) override {
    return cpu::AllocateBuffer(bytes);
  }
  Result<std::unique_ptr<ExecutableGraph>> Load(
      std::shared_ptr<const Artifact> artifact, size_t index) override;

 private:
  // A segment by its bytes, which the artifact keeps in place.
  using SegmentKey = const std::byte*;

  Result<std::shared_ptr<const QnnSession>> SessionFor(const ContextInfo& info);
  Result<std::shared_ptr<const LoadedContext>> ContextOf(
      const Artifact& artifact, uint32_t segment);

  std::shared_ptr<const QnnLibrary> library_;
  std::shared_ptr<const QnnSystemLibrary> system_;
  std::map<uint32_t, std::shared_ptr<const QnnSession>> sessions_;  // by SoC id
  std::map<SegmentKey, std::weak_ptr<const LoadedContext>> contexts_;
};

Result<std::shared_ptr<const QnnSession>> HtpEngine::SessionFor(
    const ContextInfo& info) {
  const Soc* soc = info.soc_id ? FindSocById(*info.soc_id) : nullptr;
  if (soc == nullptr) {
    return Error{
        ErrorCode::kUnsupported,
        fmt::format("the context binary is for SoC number {}, which hexllm "
                    "does not know",
                    info.soc_id.value_or(0))};
  }
  auto& session = sessions_[soc->qnn_id];
  if (session == nullptr) {
    HX_ASSIGN_OR_RETURN(session, QnnSession::Open(library_, *soc));
  }
  return session;
}

Result<std::shared_ptr<const LoadedContext>> HtpEngine::ContextOf(
    const Artifact& artifact, uint32_t segment) {
  const ByteSpan binary = artifact.Segment(segment);
  auto& cached = contexts_[binary.data()];
  if (auto loaded = cached.lock()) return loaded;
  // The library crashes on some altered binaries.
  HX_RETURN_IF_ERROR(artifact.Verify(segment));
  HX_ASSIGN_OR_RETURN(ContextInfo info, system_->Read(binary));
  HX_ASSIGN_OR_RETURN(auto session, SessionFor(info));
  HX_ASSIGN_OR_RETURN(auto context,
                      QnnContext::FromBinary(std::move(session), binary));
  auto loaded = std::make_shared<const LoadedContext>(
      LoadedContext{.context = std::move(context), .info = std::move(info)});
  cached = loaded;
  return std::shared_ptr<const LoadedContext>(std::move(loaded));
}

Result<GraphInfo> FindGraph(const ContextInfo& info, const std::string& name) {
  for (const ContextGraph& graph : info.graphs) {
    if (graph.info.name == name) return graph.info;
  }
  return Error{ErrorCode::kBadInput,
               fmt::format("the context binary has no graph {}", Quoted(name))};
}

// The segment that this machine can load.
uint32_t ProgramOf(const GraphEntry& entry) {
#ifdef __x86_64__
  return entry.simulator_program.value_or(entry.program);
#else
  return entry.program;
#endif
}

// True when this machine cannot load the graph's program: it is of several
// graphs, which then share weights, and on x86 the library ends the process.
bool IsForDevicesOnly([[maybe_unused]] const std::vector<GraphEntry>& graphs,
                      [[maybe_unused]] size_t index) {
#ifdef __x86_64__
  const uint32_t program = ProgramOf(graphs[index]);
  return std::ranges::count(graphs, program, ProgramOf) > 1;
#else
  return false;
#endif
}

// kUsage or kUnsupported when graph `index` is none of this engine.
Status CheckGraph(const Artifact& artifact, size_t index) {
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
  if (IsForDevicesOnly(graphs, index)) {
    return Error{ErrorCode::kUnsupported,
                 fmt::format("{}: graph '{}' shares weights with others, which "
                             "loads on a device only; compile with --simulator "
                             "to run it on x86, too",
                             artifact.path(), graphs[index].name)};
  }
  const uint32_t program = ProgramOf(graphs[index]);
  const auto& segments = artifact.manifest().segments;
  if (program < segments.size() &&
      segments[program].kind == artifact::SegmentKind::kQnnContext) {
    return OkStatus();
  }
  return Error{ErrorCode::kBadInput,
               fmt::format("{}: the program of graph '{}' is no QNN context",
                           artifact.path(), graphs[index].name)};
}

Result<std::unique_ptr<ExecutableGraph>> HtpEngine::Load(
    std::shared_ptr<const Artifact> artifact, size_t index) {
  HX_RETURN_IF_ERROR(CheckGraph(*artifact, index));
  const GraphEntry& entry = artifact->manifest().graphs[index];
  const uint32_t program = ProgramOf(entry);
  auto loaded = ContextOf(*artifact, program);
  if (!loaded.ok()) {
    return Error(loaded.error())
        .With(fmt::format("{}: segment '{}'", artifact->path(),
                          artifact->manifest().segments[program].name));
  }
  HX_ASSIGN_OR_RETURN(GraphInfo info, FindGraph((*loaded)->info, entry.name));
  // The executable keeps the loaded context, and with it the cache's entry.
  std::shared_ptr<const QnnContext> context(*loaded, (*loaded)->context.get());
  HX_ASSIGN_OR_RETURN(
      auto executable,
      QnnExecutable::Retrieve(std::move(context), std::move(info)));
  return HtpGraph::Create({.artifact = std::move(artifact), .index = index},
                          std::move(executable));
}

}  // namespace

Result<std::unique_ptr<Engine>> CreateEngine(const EngineOptions& options) {
  HX_ASSIGN_OR_RETURN(auto library, QnnLibrary::Open(options.lib_dir));
  HX_ASSIGN_OR_RETURN(auto system, QnnSystemLibrary::Open(options.lib_dir));
  return std::unique_ptr<Engine>(
      std::make_unique<HtpEngine>(std::move(library), std::move(system)));
}

}  // namespace hexllm::htp
