#include "cli/certify.h"

#include <fmt/format.h>

#include <filesystem>

#include "artifact/extend.h"
#include "base/scratch_folder.h"
#include "cli/model_argument.h"
#include "compile/text_assets.h"
#include "eval/certificate.h"
#include "runtime/artifact_text.h"
#include "runtime/session.h"

namespace hexllm::cli {
namespace {

// What would fail after the work fails before it.
Status CheckTokenizer(const std::string& model,
                      const models::SourceOptions& options) {
  HX_ASSIGN_OR_RETURN(const models::ModelSource source,
                      models::OpenModel(model, options));
  HX_ASSIGN_OR_RETURN(const TextAssets text, LoadTextAssets(source));
  if (text.tokenizer) return OkStatus();
  return Error{ErrorCode::kUnsupported,
               fmt::format("--certify: {}: expected a tokenizer, for the text "
                           "that certificates are about, found none; name one "
                           "with --tokenizer-model",
                           model)};
}

// The built-in text, cut to the context.
Result<std::vector<int32_t>> TextIds(const artifact::Artifact& artifact) {
  HX_ASSIGN_OR_RETURN(const Tokenizer tokenizer, TokenizerOf(artifact));
  HX_ASSIGN_OR_RETURN(std::vector<int32_t> ids,
                      tokenizer.Encode(CertificateText(), AddSpecial::kYes));
  const size_t most = artifact.manifest().context_tokens;
  if (ids.size() > most) ids.resize(most);
  if (ids.size() >= 2) return ids;
  return Error{
      ErrorCode::kUsage,
      "--certify: expected a context of two tokens or more, found one"};
}

Result<Certificate> CertificateOf(
    const std::shared_ptr<const artifact::Artifact>& artifact,
    const std::string& model, const CompileOptions& options,
    const BackendOptions& backend, ProgressSink& progress) {
  HX_ASSIGN_OR_RETURN(const std::vector<int32_t> ids, TextIds(*artifact));
  CompileOptions plain;
  plain.source = options.source;
  plain.stage = Stage::kFloat;
  plain.max_context_len = artifact->manifest().context_tokens;
  plain.prefill_logits = LogitsRows::kAll;
  HX_ASSIGN_OR_RETURN(const auto float_artifact,
                      CompileToMemory(model, plain, progress));
  HX_ASSIGN_OR_RETURN(const auto float_engine,
                      CreateEngineFor(*float_artifact, backend));
  HX_ASSIGN_OR_RETURN(
      const auto float_session,
      Session::Create({float_artifact, float_engine.get(), {}}));
  HX_ASSIGN_OR_RETURN(const auto engine, CreateEngineFor(*artifact, backend));
  HX_ASSIGN_OR_RETURN(const auto session,
                      Session::Create({artifact, engine.get(), {}}));
  progress.Begin("certify", "", 0);
  return Certify(*float_session, *session, ids);
}

}  // namespace

Status CompileCertified(const std::string& model, const std::string& out,
                        const CompileOptions& options,
                        const BackendOptions& engine, ProgressSink& progress) {
  HX_RETURN_IF_ERROR(CheckTokenizer(model, options.source));
  const std::filesystem::path path(out);
  const std::string parent =
      path.has_parent_path() ? path.parent_path().string() : ".";
  HX_ASSIGN_OR_RETURN(const ScratchFolder folder,
                      ScratchFolder::Create(parent));
  const std::string plain = folder.path() + "/compiled.hxl";
  HX_RETURN_IF_ERROR(CompileToFile(model, plain, options, progress));
  HX_ASSIGN_OR_RETURN(const auto artifact, artifact::Artifact::Open(plain));
  HX_ASSIGN_OR_RETURN(
      const Certificate certificate,
      CertificateOf(artifact, model, options, engine, progress));
  return artifact::WriteExtended(
      *artifact,
      {std::string(kCertificateSegment), artifact::SegmentKind::kText},
      AsBytes(DumpJson(CertificateToJson(certificate))), out);
}

}  // namespace hexllm::cli
