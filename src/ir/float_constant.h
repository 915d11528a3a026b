// Constants of f32 that own their numbers: what is made, not read from a
// checkpoint. Used by the quantizer and by graphs with tables of their own.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "ir/constant.h"

namespace hexllm::ir {

// f32; `values` are those of `shape`, row-major (checked), and are copied.
Constant MakeFloatConstant(std::string name, Shape shape,
                           std::span<const float> values);

// The numbers of all rows, as ReadRow gives them.
std::vector<float> ReadAllRows(const Constant& constant);

}  // namespace hexllm::ir
