// The driver: a checkpoint in, an artifact out, in a file or in memory. Used by
// cli/ (compile, and run/logits on a checkpoint). Works in the order source ->
// graphs -> passes -> lowering -> artifact; one step's memory is one tensor.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "artifact/artifact.h"
#include "base/graph_role.h"
#include "base/progress.h"
#include "base/status.h"
#include "compile/calibration_set.h"
#include "compile/stand_in.h"
#include "compile/targets.h"
#include "ir/graph.h"
#include "models/decoder.h"
#include "models/model_source.h"
#include "quant/recipe.h"

namespace hexllm {

// Which graphs a decoder gets. Names are ExecuTorch's --model_mode.
enum class ModelMode : uint8_t {
  kKv,         // T = 1 for prompt and answer
  kHybrid,     // T = prefill_ar_len for the prompt, T = 1 for the answer
  kLookahead,  // and T = (window + gcap)(ngram - 1) for lookahead decoding
};

// Of lookahead decoding (runtime/lookahead.h), with ExecuTorch's names.
struct LookaheadOptions {
  std::optional<int64_t> ngram = {};   // tokens of an n-gram; default 5
  std::optional<int64_t> window = {};  // columns of the lookahead branch; 8
  std::optional<int64_t> gcap = {};    // n-grams verified in a step; 8
};

// Which graphs of a model are meant.
enum class Stage : uint8_t {
  kTarget,  // what the target runs with the recipe
  kFloat,   // the float graphs: recipe fp32
  kQdq,     // quantized graphs on the CPU
  kDevice,  // compiled for the HTP, run on the device or its simulator
};

inline constexpr int64_t kDefaultContextLen = 1024;
inline constexpr int64_t kDefaultPrefillArLen = 128;

struct CompileOptions {
  models::SourceOptions source = {};
  TargetOptions target = {};
  Stage stage = Stage::kTarget;
  // A built-in recipe or a JSON file; empty = the default of target ("fp32" for
  // the CPU, the model's static recipe for the HTP) and stage (qdq: the same),
  // made to fit the model's layers.
  // Recipes whose ranges are static give the qdq stage: the graphs as the HTP
  // gets them, run on the CPU.
  std::string recipe = {};
  // The recipe itself, in the place of a name, when not empty: an artifact's.
  // With kFloat its rotations and factors alone.
  std::string recipe_json = {};
  CalibrationOptions calibration = {};
  int threads = 0;  // of calibration; 0 = one per physical core
  // When not empty: CompileToFile writes the encodings there as JSON.
  std::string quant_attrs_path = {};
  ModelMode mode = ModelMode::kHybrid;
  // Unset: kDefaultContextLen and kDefaultPrefillArLen, or less where the model
  // is shorter.
  std::optional<int64_t> max_context_len = {};
  std::optional<int64_t> prefill_ar_len = {};
  LogitsRows prefill_logits = LogitsRows::kLast;
  LookaheadOptions lookahead = {};  // with kLookahead only
  // What a full context drops, with graphs for it (compile/evictor.h); unset:
  // it ends the text.
  std::optional<artifact::SinkSettings> attention_sink = {};
  // Who looks tokens up. Unset: the target's default (compile/targets.h).
  std::optional<models::EmbeddingPlace> embedding = {};
  // Parts that a step is cut into, each a graph (and on the HTP a context) of
  // its own: at most as many as the model has layers.
  int64_t num_sharding = 1;
  // A debug compile: the graphs also have the outputs of compile/taps.h, and
  // float graphs are in the form that static recipes are for, with kFloat also
  // with the rotations and factors of the recipe, so that values can be
  // matched.
  bool taps = false;
  std::string dump_ir_dir = {};  // when not empty: the module before and after
                                 // each pass goes there as text
  // When not empty: a folder where the results of long steps are looked for and
  // kept, a calibration's and the htp's contexts (base/file_cache.h). kUsage
  // where target and recipe have no such steps; kEnvironment where nothing can
  // be kept.
  std::string cache_dir = {};
  // htp: when not empty, the artifact also gets the estimates of its graphs
  // (compile/estimate.h); a folder for the compiler's schedules meanwhile.
  std::string estimate_scratch = {};
};

// Compiles the checkpoint at `model_path` into the file `out_path`, whole or
// not at all. kUnsupported for an architecture that hexllm lacks; kUsage for
// the name of a target or recipe that there is not and for lengths that do not
// fit each other or the model; kBadInput for damaged files; kEnvironment when
// the disk refuses.
Status CompileToFile(const std::string& model_path, const std::string& out_path,
                     const CompileOptions& options, ProgressSink& progress);

// The same without a file: weights stay in the mapped checkpoint, which the
// artifact keeps alive; quantized ones are the artifact's own.
Result<std::shared_ptr<const artifact::Artifact>> CompileToMemory(
    const std::string& model_path, const CompileOptions& options,
    ProgressSink& progress);

// What CompileToMemory would refuse, as far as model, recipe, calibration and
// target say it before the model runs; a second of work. The model's id
// (Manifest::model_id).
Result<uint64_t> CheckCompile(const std::string& model_path,
                              const CompileOptions& options);

// The graphs of a model as the HTP's compiler gets them, but for ranges.
struct HtpGraphs {
  ir::Module module;
  // Model, recipe, context and weights; no graphs.
  artifact::Manifest manifest;
  quant::Recipe recipe;
  std::shared_ptr<const Checkpoint> checkpoint;  // the module points into it
};

// Builds them without calibrating, which takes a second: for what asks about
// programs and not about numbers. With Stage::kQdq for the target of the
// options, which needs no libraries for the CPU. Errors as above.
Result<HtpGraphs> BuildWithStandIns(const std::string& model_path,
                                    const CompileOptions& options,
                                    const StandIns& stand_ins,
                                    ProgressSink& progress);

}  // namespace hexllm
