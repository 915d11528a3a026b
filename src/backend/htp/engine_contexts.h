// The contexts of artifacts, each loaded once. Internal to htp/engine*.
#pragma once

#include <cstdint>
#include <map>
#include <memory>

#include "artifact/artifact.h"
#include "backend/htp/context_info.h"
#include "backend/htp/qnn_session.h"
#include "base/status.h"

namespace hexllm::htp {

// A context binary, loaded.
struct LoadedContext {
  std::shared_ptr<const QnnContext> context;
  ContextInfo info;
};

// Not thread-safe. Contexts may outlive it.
class EngineContexts {
 public:
  EngineContexts(std::shared_ptr<const QnnLibrary> library,
                 std::shared_ptr<const QnnSystemLibrary> system)
      : library_(std::move(library)), system_(std::move(system)) {}

  const QnnLibrary& library() const { return *library_; }

  // The segment that this library can load.
  uint32_t ProgramOf(const artifact::GraphEntry& entry) const;

  // The context of a segment; the same one as long as somebody has it. On a
  // device all contexts of an artifact share a spill-fill buffer, as large as
  // the one that needs most: their graphs run one after the other. kBadInput
  // for a damaged segment, kUnsupported for one of an unknown SoC.
  Result<std::shared_ptr<const LoadedContext>> Load(
      const std::shared_ptr<const artifact::Artifact>& artifact,
      uint32_t segment);

 private:
  // What was loaded of one artifact.
  struct Loaded {
    std::weak_ptr<const artifact::Artifact> artifact;
    std::map<uint32_t, ContextInfo> infos;  // by segment
    std::map<uint32_t, std::weak_ptr<const LoadedContext>> contexts;
    std::weak_ptr<const QnnContext> spill_fill_owner;
  };

  Loaded& LoadedOf(const std::shared_ptr<const artifact::Artifact>& artifact);
  Result<std::shared_ptr<const QnnSession>> SessionFor(const ContextInfo& info);
  Result<const ContextInfo*> InfoOf(Loaded& loaded,
                                    const artifact::Artifact& artifact,
                                    uint32_t segment);
  Result<ContextLoad> LoadOf(Loaded& loaded,
                             const artifact::Artifact& artifact);

  std::shared_ptr<const QnnLibrary> library_;
  std::shared_ptr<const QnnSystemLibrary> system_;
  std::map<uint32_t, std::shared_ptr<const QnnSession>> sessions_;  // by SoC id
  std::map<const artifact::Artifact*, Loaded> loaded_;
};

}  // namespace hexllm::htp
