#include <fmt/format.h>

#include "artifact/inspect.h"
#include "backend/htp/context_info.h"
#include "checkpoint/inspect.h"
#include "cli/command.h"
#include "cli/model_argument.h"
#include "cli/output.h"

namespace hexllm::cli {
namespace {

struct Flags {
  std::string file;
  bool json = false;
  bool verify = false;
  std::string qnn_lib_dir;
};

// What the QNN contexts of `artifact` hold, one after the other. Each is
// checked first: the QNN library does not withstand damaged ones.
Result<std::string> DescribeContexts(const artifact::Artifact& artifact,
                                     const std::string& qnn_lib_dir) {
  HX_ASSIGN_OR_RETURN(const auto library,
                      htp::QnnSystemLibrary::Open(qnn_lib_dir));
  const auto& segments = artifact.manifest().segments;
  std::string text;
  for (uint32_t i = 0; i < segments.size(); ++i) {
    if (segments[i].kind != artifact::SegmentKind::kQnnContext) continue;
    HX_RETURN_IF_ERROR(artifact.Verify(i));
    auto info = library->Read(artifact.Segment(i));
    if (!info.ok()) {
      return std::move(info).error().With(
          fmt::format("{}: segment {}", artifact.path(), segments[i].name));
    }
    text +=
        fmt::format("\n{}: {}", segments[i].name, htp::DescribeContext(*info));
  }
  return text.empty() ? "\nno QNN contexts\n" : text;
}

Status InspectArtifact(const Flags& flags) {
  if (flags.json && !flags.qnn_lib_dir.empty()) {
    return Error{ErrorCode::kUsage,
                 "--qnn-lib-dir describes QNN contexts for people; leave out "
                 "--json"};
  }
  HX_ASSIGN_OR_RETURN(const auto artifact,
                      artifact::Artifact::Open(flags.file));
  if (flags.verify) HX_RETURN_IF_ERROR(artifact->VerifyAll());
  std::string text = flags.json
                         ? DumpJson(artifact::ArtifactToJson(*artifact)) + "\n"
                         : artifact::DescribeArtifact(*artifact);
  if (flags.verify && !flags.json) {
    text += fmt::format("verified {} segments: all match their checksums\n",
                        artifact->manifest().segments.size());
  }
  if (!flags.qnn_lib_dir.empty()) {
    HX_ASSIGN_OR_RETURN(const std::string contexts,
                        DescribeContexts(*artifact, flags.qnn_lib_dir));
    text += contexts;
  }
  return Print(text);
}

Status InspectCheckpoint(const Flags& flags) {
  HX_ASSIGN_OR_RETURN(const Checkpoint checkpoint,
                      Checkpoint::Open(flags.file));
  if (flags.verify)
    return Error{ErrorCode::kUsage,
                 fmt::format("{}: --verify checks the checksums of an "
                             "artifact; a checkpoint has none",
                             flags.file)};
  if (!flags.qnn_lib_dir.empty())
    return Error{ErrorCode::kUsage,
                 fmt::format("{}: --qnn-lib-dir describes the QNN contexts of "
                             "an artifact; a checkpoint has none",
                             flags.file)};
  return Print(flags.json ? DumpJson(CheckpointToJson(checkpoint)) + "\n"
                          : DescribeCheckpoint(checkpoint));
}

}  // namespace

Body AddInspect(CLI::App& app) {
  auto flags = std::make_shared<Flags>();
  app.add_option("file", flags->file, "A checkpoint or an artifact")
      ->required()
      ->type_name("FILE");
  app.add_flag("--json", flags->json, "Print JSON");
  app.add_flag("--verify", flags->verify,
               "Also check the checksums of all segments (artifacts)");
  app.add_option("--qnn-lib-dir", flags->qnn_lib_dir,
                 "Also describe the QNN contexts (artifacts), with the QNN "
                 "libraries in this folder")
      ->type_name("DIR");
  return [flags] {
    return IsArtifact(flags->file) ? InspectArtifact(*flags)
                                   : InspectCheckpoint(*flags);
  };
}

}  // namespace hexllm::cli
