// How the HTP rounds what it sums, as properties of a graph that the CPU or the
// interpreter runs in its place (the qdq stage). Each rule was measured on
// single ops in the vendor's simulator: qnn_graph_test.cc, conformance_test.cc
// hold them; docs/htp-backend.md tells of them. Used by compile/ and tests.
#pragma once

#include "backend/htp/soc_table.h"
#include "ir/graph.h"

namespace hexllm::htp {

// Gives the nodes of `module`, which has encodings, what `soc` does and no
// other attribute tells yet:
//   linear    dropped_bits  8   weights of i8 or 4 bits, with blocks or without
//             fixed_point       u8 in and out, weights of i8 or 4 bits without
//                               blocks
//   matmul    dropped_bits  8   b u8 around its middle code
//                          16   b u16 around its middle code
//   softmax   fixed_point       u16 to 1/65536, rows of three numbers or more
//   rms_norm  fast_root         f16 in and out
//             rounds_down       u16 in and out
//   scale     (factor)          a half, where the output is one
//   convert   fixed_point       to u8, where ir::FindConversion knows it
//             half_steps        from f16 to u8
// All but convert and scale from v73 on; linear and matmul when the output has
// codes. What no rule is known of (older chips, 16-bit weights, matmuls of u8,
// linears and matmuls in f16) stays exact.
// Lowering for the HTP itself does not look at these attributes.
void ModelRounding(ir::Module& module, const Soc& soc);

}  // namespace hexllm::htp
