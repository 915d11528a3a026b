// Sessions of the stages that `hexllm eval` looks at, and how their tokenizer
// begins a text.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "artifact/artifact.h"
#include "backend/engine.h"
#include "base/digest.h"
#include "base/progress.h"
#include "base/status.h"
#include "cli/eval_flags.h"
#include "eval/taps.h"
#include "eval/task.h"
#include "runtime/session.h"

namespace hexllm::cli {

// Tokens of a window when nobody says, if the context has as many.
inline constexpr uint32_t kDefaultWindow = 512;

// --window, or the default: kDefaultWindow, or the context of the artifact or
// of the model where that is shorter. Errors of opening either; kUsage when
// the window is longer than that.
Result<uint32_t> WindowOf(const EvalFlags& flags);

// A stage ready to run. The session is destroyed before its engine.
struct OpenedStage {
  std::shared_ptr<const artifact::Artifact> artifact;
  std::unique_ptr<Engine> engine;
  std::unique_ptr<Session> session;
};

// What of a stage is wanted.
struct StageWish {
  std::string stage;     // "" = the one that model, artifact and recipe mean
  uint32_t context = 0;  // C of what is compiled
  // T of the blocks of what is compiled; unset = the default.
  std::optional<uint32_t> block = {};
  // When not null: what is compiled shows its inner values, which go there. It
  // outlives the session.
  TapRecorder* taps = nullptr;
};

// Compiles what has to be compiled. Errors of OpenStage, of the engine and of
// Session::Create; kUsage when an artifact lacks the graphs of --mode. A
// certified artifact is tested unless --no-self-test.
Result<OpenedStage> OpenEvalStage(const EvalFlags& flags, const StageWish& wish,
                                  ProgressSink& progress);

// What would be refused of a later stage, before the first one runs.
Status CheckLaterStages(const EvalFlags& flags);

// Puts the recipe that `artifact` was quantized with, if any, into `result`,
// once for each stage.
void AddRecipe(const artifact::Artifact& artifact, EvalResult& result);

// Of what an artifact computes: its model's id, the checksums of its segments
// and the encodings of its inputs and outputs. One in memory has no checksums:
// the contents of its segments count, but for weights and contexts, which come
// from that model, recipe and chip.
Digest IdentityOf(const artifact::Artifact& artifact);

// T of the largest step.
uint32_t LargestStep(const artifact::Manifest& manifest);

// `tokenizer` is the artifact's; it outlives the result.
Result<TaskTokens> TaskTokensOf(const artifact::Manifest& manifest,
                                const Tokenizer& tokenizer);

}  // namespace hexllm::cli
