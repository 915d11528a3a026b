// Turns IR graphs with encodings into QNN graphs, and these, with the vendor's
// compiler, into context binaries. Host only.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "artifact/manifest.h"
#include "artifact/segment_sink.h"
#include "backend/htp/lower_contexts.h"
#include "backend/htp/lower_heads.h"
#include "base/file_cache.h"
#include "base/progress.h"
#include "base/status.h"
#include "ir/graph.h"

namespace hexllm::htp {

struct LowerOptions {
  std::string soc;      // "SM8750" (soc_table.h)
  std::string lib_dir;  // the folder of libQnnHtp.so
  ContextUse use = ContextUse::kDevice;
  // The effort of the vendor's compiler, 1 to 3; unset = 3 for graphs of
  // several tokens, 2 for others. By the estimates, prefill is up to 18% faster
  // with 3 than with 2, decoding slower; 1 decodes 8% slower than 2 and saves a
  // third of the compilation.
  std::optional<uint32_t> optimization = {};
  // Where the compiler writes its predicted schedule of each graph, as
  // "<folder>/<graph>.json" (estimate.h); empty = nowhere. The binary keeps the
  // keys: not for what is shipped. kUnsupported for SoCs without a cost model.
  std::string trace_dir = {};
  // How attention is computed; unset = FasterForm of each
  // graph.
  std::optional<AttentionForm> attention = {};
  // Ops of the library that are not to be used, as if it were an older version:
  // "RotaryEmbedding".
  std::vector<std::string> absent_ops = {};
  // Where contexts are looked for before they are compiled, and kept
  // afterwards; null = nowhere. Borrowed. Not used with trace_dir.
  const FileCache* cache = nullptr;
  // Contexts that are compiled at once, at most; 0 = one per processor.
  int processes = 0;
  // What their compilation may take together, in bytes, with what this process
  // has of its own. Unset = three quarters of what is free, and one context in
  // any case.
  std::optional<uint64_t> max_memory = {};
  // Called in the process of a context when the weights of a graph were handed
  // over: lets go of pages of mapped files that they were read from. May be
  // empty.
  std::function<void()> release_weights = {};
};

// `module` is verified, of pipeline "htp", with encodings of a static scheme or
// fp16 (quant/assign.h). Makes the contexts of lower_contexts.h (lower_queue.h
// says how), writes each as one segment, in their order, and returns the
// manifest's entries in module order. Inputs
// and outputs have the form of their value's encoding, and are tensors of the
// binary named by TensorNameOf (tensor_name.h); an input without elements is
// none. Same input, same bytes.
//
// kUnsupported: what the HTP, this generation or this version of the library
// does not have, with graph, node and reason; and as CheckSize.
// kUsage for an unknown SoC; kEnvironment when the library is missing or fails;
// kBadInput for weights that are not finite. Weights are read, rounded, handed
// over and dropped one by one; the library holds its copy until the end.
Result<std::vector<artifact::GraphEntry>> Lower(const ir::Module& module,
                                                const LowerOptions& options,
                                                artifact::SegmentSink& sink,
                                                ProgressSink& progress);

// Whether the contexts of `module` can be loaded on the chip, and compiled in
// options.max_memory where that is set. Looks at shapes and formats of
// constants alone, not at numbers: a module whose encodings have no scales yet
// will do. kUnsupported naming the first context that is too large, and kUsage
// as above.
Status CheckSize(const ir::Module& module, const LowerOptions& options);

// Of all that the compilation hangs on beside the module: the library's file,
// the chip, how graphs are lowered. For keys of caches. kUsage for an unknown
// SoC; kEnvironment when there is no library.
Result<Digest> TargetDigest(const LowerOptions& options);

// Opens the library for the chip of `options`, in a process of its own. Errors
// as Lower's.
Status CheckTarget(const LowerOptions& options);

}  // namespace hexllm::htp
