// The names of a QNN graph's inputs and outputs: what the lowering writes and
// the engine looks for.
#pragma once

#include <string>

#include "base/graph_role.h"

namespace hexllm::htp {

// "k_in_3_" for k_in[3]: the role's text with its brackets replaced. Different
// roles have different names.
std::string TensorNameOf(const Role& role);

}  // namespace hexllm::htp
