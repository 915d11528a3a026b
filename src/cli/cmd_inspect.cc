#include <fmt/format.h>

#include "artifact/inspect.h"
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
};

Status InspectArtifact(const Flags& flags) {
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
  return [flags] {
    return IsArtifact(flags->file) ? InspectArtifact(*flags)
                                   : InspectCheckpoint(*flags);
  };
}

}  // namespace hexllm::cli
