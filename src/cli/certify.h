// `hexllm compile --certify`.
#pragma once

#include <string>

#include "backend/engines.h"
#include "base/progress.h"
#include "base/status.h"
#include "compile/compiler.h"

namespace hexllm::cli {

// Compiles `model` beside `out`, runs the result and the float graph on the
// built-in text, and writes `out` with the certificate. Errors of
// CompileToFile, of the engine (an artifact for a chip needs --simulator to run
// on x86), and kUnsupported for a model without tokenizer.
Status CompileCertified(const std::string& model, const std::string& out,
                        const CompileOptions& options,
                        const BackendOptions& engine, ProgressSink& progress);

}  // namespace hexllm::cli
