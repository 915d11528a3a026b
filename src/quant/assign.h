// Gives every value and weight of a module its encoding, from a recipe and the
// ranges that calibration observed. Used by compile/. Not where ranges are
// observed, nor where numbers are rounded (ir/encode.h).
//
// Static schemes and fp16, on the target-lowered graph (pipeline "htp"):
//   linear        x: a convert "<layer>.input" before it where the scheme wants
//                 another format than x has; w: WeightEncoding, its scales
//                 raised where the codes of the bias would not fit i32; bias:
//                 i32 of scale x.scale * w.scale; output: its range
//   convert       "<..>.k_cache", ".v_cache" (what k_out and v_out store): u8
//                 for kv_bits 8, but K of wide layers; else as its input, which
//                 is on a grid around 0 for that. k_in[l], v_in[l] get the same
//   reshape, transpose, slice_rows, concat: as their input
//   softmax       [0, 1) in steps of 2^-bits
//   add of a mask output: [least visible - 20, greatest visible]; the scores
//                 before it: [least visible, greatest visible], both from the
//                 range observed under the output's name; mask: visible (0.0)
//                 = the highest code, hidden = code 0 = -(widest output range
//                 in any graph), also where this graph does not read it
//   other ops     their range; constants they read: u16 per tensor, kF16 where
//                 the output is; weights of rms_norm with weight_offset added
//   embedding tables: none (the output is rounded)
// With 8-bit schemes as recipe defaults these are u8 where u16 stands above.
// fp16: kF16 throughout.
//
// Caches have the middle code as zero point. The HTP's MatMul takes a second
// input of 16 bits on no other grid, so that the whole cache would be converted
// in every step; one of 8 bits it computes with exactly on no other.
//
// With half_residual, the embeddings and all sums on the way to the last norm
// are kF16, and so are norms that read them: a convert "<layer>.input" makes
// the codes for linears, one "<sum>.term" halves of what is added.
//
// Dynamic schemes, on the graph of pipeline "cpu" or before it: only the
// weights of linears get encodings, and those whose input channels are no whole
// number of blocks of 32 stay as stored, with a warning.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/progress.h"
#include "base/status.h"
#include "ir/graph.h"
#include "quant/range.h"
#include "quant/recipe.h"
#include "quant/weight_search.h"

namespace hexllm::quant {

struct ValueRange {
  Range range;
  double clipped = 0;  // share of the observed numbers outside of it
};
using Ranges = std::map<std::string, ValueRange>;  // by value name

// Observed numbers that an encoding may clip without a warning.
inline constexpr double kMostClipped = 0.001;

// The names whose ranges AssignEncodings may ask for, in graph order: outputs
// of nodes, all f32. Of a masked score only what is visible is to be observed
// (not the -infinity of hidden columns). Ranges of graph inputs that are no
// masks or caches ("rope_cos[0]", "rope_sin[0]") are asked for as well: the
// caller knows them. Those of embedding and hidden_in are called what the value
// is called where it is made.
std::vector<std::string> ObservedValues(const ir::Graph& graph);

struct AssignOptions {
  const ResolvedRecipe* recipe = nullptr;
  const Ranges* ranges = nullptr;    // unused by dynamic schemes and fp16
  std::set<int> wide_k_layers = {};  // keep the activations' width for K
  bool half_residual = false;        // the residual stream is kF16
  // Linears whose outputs are kF16: terms of the stream so large that codes
  // would be too coarse. What they are added to is for that sum.
  std::set<std::string> half_terms = {};
  // Those of them whose inputs, products, are so large: these are kF16 as well.
  std::set<std::string> half_inputs = {};
  // What layers with seq_mse or gptq need (WantsSearch; checked).
  const SearchContext* search = nullptr;
  ProgressSink* progress = nullptr;  // null = none
};

// `module` is verified and has no encodings; it stays valid. A constant whose
// readers want different encodings (an embedding table that is the head as
// well) is given to all but the first by a constant of their own with the same
// bytes.
// Returns warnings, one line each, with the value or tensor: numbers clipped,
// values that were always 0, output channels of nothing but zeros, weights that
// a large bias makes coarser.
// kBadInput: a range that is missing or not finite; what WeightEncoding and
// the layers' inputs say; NaN or infinity in a constant that stays as stored,
// unless all do. kUnsupported: an op that has no encodings (attention must be
// decomposed). After an error the module is in an unspecified state.
Result<std::vector<std::string>> AssignEncodings(ir::Module& module,
                                                 const AssignOptions& options);

}  // namespace hexllm::quant
