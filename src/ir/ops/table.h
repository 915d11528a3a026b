// Declares Infer<Kind> and Interpret<Kind> of every op; each is defined in
// ir/ops/<text>.cc. Used by the table in ir/ops.cc and by ops that are made of
// others (linear_add). A row of ops.def without its file is a link error.
#pragma once

#include <span>

#include "ir/ops.h"

namespace hexllm::ir {

#define HX_IR_OP(kind, text, min_inputs, max_inputs)                    \
  Result<TensorType> Infer##kind(const OpContext& context);             \
  HostTensor Interpret##kind(const OpContext& context,                  \
                             std::span<const HostTensor* const> inputs, \
                             const TensorType& output);
#include "ir/ops.def"
#undef HX_IR_OP

}  // namespace hexllm::ir
