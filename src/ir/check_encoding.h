// What makes an encoding valid for a tensor. Part of the verifier
// (ir/verify.h); also for those who read encodings from files.
#pragma once

#include "base/status.h"
#include "ir/types.h"

namespace hexllm::ir {

// Checks type of the codes, bits, axis, block, and numbers and values of
// scales, zero points and block factors against a tensor of `type`, which must
// be valid (dimensions >= 0). Where the encoding stands is the verifier's
// business. kBadInput: "encoding: expected 2 scales, found 1".
Status CheckEncoding(const Encoding& encoding, const TensorType& type);

}  // namespace hexllm::ir
