// How far a recipe takes a model from its float graph, on a text that
// calibration does not read. Used by `recipe search` and `compile
// --quant-recipe-suggestion`, which judge by it what they predicted.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "backend/engine.h"
#include "base/progress.h"
#include "base/scratch_folder.h"
#include "base/status.h"
#include "compile/compiler.h"
#include "quant/recipe.h"

namespace hexllm::cli {

struct HeldOutFigures {
  double mean_kld = 0;    // nats a token, from the float graph
  double perplexity = 0;  // per token
};

// UTF-8, and what messages call it.
struct JudgedText {
  std::string name, text;
};
JudgedText BuiltinHeldOutText();

// Not thread-safe.
class HeldOut {
 public:
  // Runs the float graph of the checkpoint at `model` on `text`, cut to
  // kMostTokens and to the model. Of `options`: source, target.soc,
  // calibration, threads, cache_dir. kUnsupported for a model without tokenizer
  // or with a context of one token, kBadInput for a text of less than two
  // tokens; errors of compiling.
  static Result<HeldOut> Open(const std::string& model,
                              const CompileOptions& options,
                              const JudgedText& text, ProgressSink& progress);

  // The float graph's.
  double float_perplexity() const { return float_perplexity_; }
  size_t tokens() const { return ids_.size(); }

  // Of the qdq stage with `recipe`. Errors of compiling it, kBadInput for
  // logits that are not finite.
  Result<HeldOutFigures> Measure(const quant::Recipe& recipe,
                                 ProgressSink& progress);

  static constexpr size_t kMostTokens = 384;

 private:
  HeldOut(std::string model, CompileOptions options, ScratchFolder cache)
      : model_(std::move(model)),
        options_(std::move(options)),
        cache_(std::move(cache)) {}
  Status RunFloat(const JudgedText& text, ProgressSink& progress);

  std::string model_;
  CompileOptions options_;
  ScratchFolder cache_;  // of calibrations, when the user names none
  std::unique_ptr<Engine> engine_;
  std::vector<int32_t> ids_;
  std::vector<std::vector<float>> rows_;  // float logits of each position
  double float_perplexity_ = 0;
};

}  // namespace hexllm::cli
