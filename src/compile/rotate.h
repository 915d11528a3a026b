// The rotations of a recipe (SpinQuant, https://arxiv.org/abs/2405.16406) on a
// model. It computes what it did, in numbers that are easier to quantize. Used
// by compile/compiler, before anything is built. The matrices:
// quant/rotation.h.
//
//   R1 [M,M]  the residual stream is x R1: rows of the embedding table and
//             what o_proj and down_proj write are rotated, q, k, v, gate, up
//             and the head turn it back. Norms are weighted before, in the
//             linears that read them (their own weights become 1), so that the
//             embedding table and the head differ even where they were one.
//   R2 [D,D]  of each layer: value heads are rotated by v_proj, and back by
//             o_proj.
//   R3 [D,D]  query and key heads are rotated behind RoPE, in the graph; the
//             products of both stay what they are.
#pragma once

#include <optional>
#include <vector>

#include "base/dtype.h"
#include "base/progress.h"
#include "base/status.h"
#include "models/model_source.h"
#include "quant/recipe.h"
#include "quant/rotation.h"

namespace hexllm {

// kUnsupported naming what of the model cannot be rotated and the key of the
// recipe that asks for it: R1 needs RMSNorms before attention and MLP and none
// after them, R3 heads of a power of two.
Status CheckRotations(const models::DecoderConfig& config,
                      const quant::Rotations& wanted);

// `wanted` without what CheckRotations refuses.
quant::Rotations PossibleRotations(const models::DecoderConfig& config,
                                   quant::Rotations wanted);

// What is folded into weights.
struct FoldedRotations {
  std::optional<quant::Rotation> r1 = {};
  std::vector<quant::Rotation> r2 = {};  // [L], or none
  // Of a rotated embedding table, which lies in artifacts as it is: f32, f16 or
  // q8_0.
  DType table = DType::kF32;
};

// `source` with its weights rotated: f32 tensors (but for the table, and for
// what stays as it is) under Hugging Face's names in a temporary file
// (compile/rewrite_weights.h). `source` has passed CheckRotations. kBadInput
// for damaged weights, kEnvironment when there is no room for the file.
Result<models::ModelSource> FoldRotations(const models::ModelSource& source,
                                          const FoldedRotations& rotations,
                                          ProgressSink& progress);

// R1, R2 and R3 as the recipe wants; without any, `source` itself. Where the
// recipe rounds what is looked up, the table is q8_0 if the checkpoint's own
// has as few bits (8.5 an element), else f16. Errors of the above.
Result<models::ModelSource> RotateModel(models::ModelSource source,
                                        const quant::Recipe& recipe,
                                        ProgressSink& progress);

// R3 alone: what graphs without numbers differ in.
models::ModelSource RotateHeads(models::ModelSource source,
                                const quant::Rotations& wanted);

}  // namespace hexllm
