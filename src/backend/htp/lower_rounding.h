// How the HTP rounds what it sums, as properties of a graph that the CPU or the
// interpreter runs in its place (the qdq stage). Each rule was measured on
// single ops in the vendor's simulator: qnn_graph_test.cc, conformance_test.cc
// hold them; docs/htp-backend.md tells of them. Used by compile/ and tests.
#pragma once

#include "backend/htp/soc_table.h"
#include "ir/graph.h"

namespace hexllm::htp {

// Gives the nodes of `module`, which has encodings, what `soc` does with u16
// codes and no other attribute tells yet:
//   linear    dropped_bits  8   weights of i8 or 4 bits, with blocks or without
//   matmul    dropped_bits  8   b u8 around its middle code
//                          16   b u16 around its middle code
//   convert   fixed_point       to u8, where ir::FindConversion knows it
// linear and matmul from v73 on, when the output has codes. What no rule is
// known of (older chips, 16-bit weights, u8 activations, f16) stays exact.
// Lowering for the HTP itself does not look at these attributes.
void ModelRounding(ir::Module& module, const Soc& soc);

}  // namespace hexllm::htp
