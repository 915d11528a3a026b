// One self-contained HTML page about an evaluation: tables over stages, plots
// as inline SVG, recipes. No scripts, nothing is loaded. Used by cli/.
#pragma once

#include <string>

#include "eval/results.h"

namespace hexllm {

// All text of models and tasks is escaped.
std::string ResultToHtml(const EvalResult& result);

}  // namespace hexllm
