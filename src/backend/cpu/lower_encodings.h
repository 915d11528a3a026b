// What encodings of values mean for a plan: which outputs are rounded, in which
// form graph inputs and outputs are. Used by cpu/lower*.
#pragma once

#include <optional>

#include "artifact/manifest.h"
#include "backend/cpu/plan.h"
#include "base/status.h"
#include "ir/graph.h"

namespace hexllm::cpu {

// kUnsupported names the first value whose encoding the engine has no form for:
// anything but half precision, or codes of 8 or 16 bits of the whole tensor.
Status CheckValueEncodings(const ir::Graph& graph);

// True when the node's op leaves numbers as they are: moves and convert.
bool OnlyMoves(const ir::Node& node);
// True when the node's output is to be rounded to its encoding: not so when its
// numbers, moved only, lie on the same grid already.
bool NeedsRounding(const ir::Graph& graph, const ir::Node& node);
// True when a sum may read rows of any number, padding too: then all rows of
// the step are computed, so that no undefined memory reaches it.
bool NeedsAllRows(const ir::Graph& graph);

// True when the node's output is its input's memory under another shape: every
// reshape, a transpose that only moves axes of size 1, a slice of all rows, a
// convert; none of which is rounded. Such nodes become no instruction.
bool IsAlias(const ir::Graph& graph, const ir::Node& node);
// The same, rounded or not.
bool KeepsMemory(const ir::Graph& graph, const ir::Node& node);

// The instruction that rounds x[rows, width] to `encoding`; operands, rows and
// name are still to be filled in.
Instruction RoundInstruction(const ir::Encoding& encoding, int64_t width);
// The same for a convert from `from` (null: none) with `attrs`. kUnsupported
// for encodings that its attribute is not for.
Result<Instruction> ConvertInstruction(const ir::Encoding* from,
                                       const ir::Encoding& to,
                                       const ir::Attrs& attrs, int64_t width);
// True for what writes numbers of its output's grid by itself: a norm that
// rounds down, and in fixed point all but converts.
bool IsNormRoundedDown(const ir::Node& node);
bool IsInFixedPoint(const ir::Node& node);
// The same for kDecode and kEncode.
Instruction CodecInstruction(PlanOp op, const ir::Encoding& encoding,
                             int64_t width);

// The codes of an encoding as numbers from 0 on: signed ones shifted.
struct UnsignedGrid {
  int64_t code_bytes = 1;
  int64_t zero_point = 0;
  float scale = 0;
};
// Nothing for an encoding without codes.
std::optional<UnsignedGrid> UnsignedGridOf(const ir::Encoding& encoding);

}  // namespace hexllm::cpu
