#include "backend/htp/engine_contexts.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "base/quote.h"

namespace hexllm::htp {

using artifact::Artifact;
using artifact::GraphEntry;

uint32_t EngineContexts::ProgramOf(const GraphEntry& entry) const {
  return library_->is_simulator()
             ? entry.simulator_program.value_or(entry.program)
             : entry.program;
}

EngineContexts::Loaded& EngineContexts::LoadedOf(
    const std::shared_ptr<const Artifact>& artifact) {
  std::erase_if(loaded_, [](const auto& entry) {
    return entry.second.artifact.expired();
  });
  Loaded& loaded = loaded_[artifact.get()];
  loaded.artifact = artifact;
  return loaded;
}

Result<std::shared_ptr<const QnnSession>> EngineContexts::SessionFor(
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

Result<const ContextInfo*> EngineContexts::InfoOf(Loaded& loaded,
                                                  const Artifact& artifact,
                                                  uint32_t segment) {
  const auto known = loaded.infos.find(segment);
  if (known != loaded.infos.end()) return &known->second;
  // The library crashes on some altered binaries.
  HX_RETURN_IF_ERROR(artifact.Verify(segment));
  HX_ASSIGN_OR_RETURN(ContextInfo info,
                      system_->Read(artifact.Segment(segment)));
  return &(loaded.infos[segment] = std::move(info));
}

Result<ContextLoad> EngineContexts::LoadOf(Loaded& loaded,
                                           const Artifact& artifact) {
  ContextLoad load;
  std::set<uint32_t> programs;
  for (const GraphEntry& graph : artifact.manifest().graphs)
    if (graph.backend == "htp") programs.insert(ProgramOf(graph));
  if (library_->is_simulator() || programs.size() < 2) return load;
  for (const uint32_t segment : programs) {
    HX_ASSIGN_OR_RETURN(const ContextInfo* info,
                        InfoOf(loaded, artifact, segment));
    for (const ContextGraph& graph : info->graphs) {
      load.spill_fill_bytes =
          std::max(load.spill_fill_bytes, graph.spill_fill_bytes.value_or(0));
    }
  }
  load.spill_fill_owner = loaded.spill_fill_owner.lock();
  return load;
}

Result<std::shared_ptr<const LoadedContext>> EngineContexts::Load(
    const std::shared_ptr<const Artifact>& artifact, uint32_t segment) {
  Loaded& loaded = LoadedOf(artifact);
  if (auto context = loaded.contexts[segment].lock()) return context;
  HX_ASSIGN_OR_RETURN(const ContextInfo* info,
                      InfoOf(loaded, *artifact, segment));
  HX_ASSIGN_OR_RETURN(auto session, SessionFor(*info));
  HX_ASSIGN_OR_RETURN(ContextLoad load, LoadOf(loaded, *artifact));
  const bool owner = load.spill_fill_owner == nullptr;
  HX_ASSIGN_OR_RETURN(
      auto context,
      QnnContext::FromBinary(std::move(session), artifact->Segment(segment),
                             std::move(load)));
  if (owner) loaded.spill_fill_owner = context;
  auto made = std::make_shared<const LoadedContext>(
      LoadedContext{.context = std::move(context), .info = *info});
  loaded.contexts[segment] = made;
  return made;
}

}  // namespace hexllm::htp
