// Flags of a compilation that its target and recipe have no use for: each is
// kUsage. Used by compile/compiler.
#pragma once

#include "base/status.h"
#include "compile/compiler.h"
#include "quant/recipe.h"

namespace hexllm {

Status CheckMaxMemory(const CompileOptions& options);
Status CheckSoc(const CompileOptions& options, const quant::Recipe& recipe);
Status CheckCacheDir(const CompileOptions& options,
                     const quant::Recipe& recipe);

}  // namespace hexllm
