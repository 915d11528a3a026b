// The operator table: what each op takes, which attributes it has, what it
// means. One row in ops.def, one file in ir/ops/. Used by the verifier, the
// text form, the interpreter and every pass.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <variant>
#include <vector>

#include "base/status.h"
#include "ir/types.h"

namespace hexllm::ir {

struct Constant;  // ir/constant.h

enum class OpKind : uint8_t {
#define HX_IR_OP(kind, text, min_inputs, max_inputs) k##kind,
#include "ir/ops.def"
#undef HX_IR_OP
};

// Names of attributes. Ints, floats and int lists; which op has which:
// OpInfo::attrs.
enum class AttrName : uint8_t {
  kEps,
  kWeightOffset,
  kScale,
  kSoftcap,
  kShape,
  kPerm,
  kBegin,
  kCount,
  kFactor,
  kApproximate,
  kCap,
  kActivation,
  kAxis,
  kDroppedBits,
  kFixedPoint,
  kHalfSteps,
  kFastRoot,
  kRoundsDown
};
enum class AttrType : uint8_t { kInt, kFloat, kInts };
using AttrValue = std::variant<int64_t, double, std::vector<int64_t>>;

struct AttrSpec {
  AttrName name;
  AttrType type;
  bool optional = false;  // may be left out
};

// Attribute values of one node: those of its op's OpInfo::attrs, in that order
// (the verifier checks).
struct Attr {
  AttrName name;
  AttrValue value;
  bool operator==(const Attr&) const = default;
};
using Attrs = std::vector<Attr>;

// A value of the interpreter: floats for float types, whole numbers for integer
// ones.
struct HostTensor {
  TensorType type;
  std::vector<float> floats = {};
  std::vector<int64_t> ints = {};
};

// What an interpretation may know of an input beyond its numbers.
struct Operand {
  const Encoding* encoding = nullptr;  // null = none
  const Constant* constant = nullptr;  // null = computed, or a graph input
};

// What an op's functions see of a node.
struct OpContext {
  std::span<const TensorType* const>
      inputs;  // absent optional inputs are left out at the end
  const Attrs& attrs;
  std::span<const Operand> operands = {};  // as inputs; empty = nothing known
  const Encoding* output = nullptr;        // null = none, or nothing known
};

using InferFn = Result<TensorType> (*)(const OpContext&);
using InterpretFn = HostTensor (*)(const OpContext&,
                                   std::span<const HostTensor* const> inputs,
                                   const TensorType& output);

struct OpInfo {
  OpKind kind;
  std::string_view name;
  int min_inputs;
  int max_inputs;
  std::span<const AttrSpec> attrs;
  InferFn infer;  // output type, or kBadInput saying which input or attribute
                  // is wrong
  // Inputs are of the types that infer accepted, and rounded to their
  // encodings; the caller rounds the output to its own.
  InterpretFn interpret;
};

std::span<const OpInfo> AllOps();
const OpInfo& GetOpInfo(OpKind kind);
const OpInfo* FindOp(std::string_view name);
std::string_view AttrText(AttrName name);  // "eps", "weight_offset", ...
std::optional<AttrName> FindAttr(std::string_view text);

// Checks number of inputs and attributes of a node, then infers its output
// type. kBadInput saying which input or attribute is wrong, what was expected
// and found. Input types must be valid (dimensions >= 0, element counts that
// fit int64); the result then is.
Result<TensorType> InferType(OpKind kind, const OpContext& context);

// Attribute access for verified nodes; a missing or mistyped one is a bug of
// ours.
int64_t IntAttr(const Attrs& attrs, AttrName name);
double FloatAttr(const Attrs& attrs, AttrName name);
// 0 when the attribute is left out.
int64_t OptionalIntAttr(const Attrs& attrs, AttrName name);
const std::vector<int64_t>& IntsAttr(const Attrs& attrs, AttrName name);

}  // namespace hexllm::ir
