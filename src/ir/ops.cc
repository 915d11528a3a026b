#include "ir/ops.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <vector>

#include "base/check.h"
#include "ir/ops/table.h"

namespace hexllm::ir {
namespace {

using AttrSpecs = std::span<const AttrSpec>;

constexpr AttrSpec kLinearSpecs[] = {
    {AttrName::kDroppedBits, AttrType::kInt, /*optional=*/true},
    {AttrName::kFixedPoint, AttrType::kInt, /*optional=*/true}};
constexpr AttrSpec kRmsNormSpecs[] = {
    {AttrName::kEps, AttrType::kFloat},
    {AttrName::kWeightOffset, AttrType::kFloat},
    {AttrName::kFastRoot, AttrType::kInt, /*optional=*/true},
    {AttrName::kRoundsDown, AttrType::kInt, /*optional=*/true}};
constexpr AttrSpec kAttentionSpecs[] = {{AttrName::kScale, AttrType::kFloat},
                                        {AttrName::kSoftcap, AttrType::kFloat}};
constexpr AttrSpec kReshapeSpecs[] = {{AttrName::kShape, AttrType::kInts}};
constexpr AttrSpec kTransposeSpecs[] = {{AttrName::kPerm, AttrType::kInts}};
constexpr AttrSpec kSliceRowsSpecs[] = {{AttrName::kBegin, AttrType::kInt},
                                        {AttrName::kCount, AttrType::kInt}};
constexpr AttrSpec kScaleSpecs[] = {{AttrName::kFactor, AttrType::kFloat}};
constexpr AttrSpec kGeluSpecs[] = {{AttrName::kApproximate, AttrType::kInt}};
constexpr AttrSpec kSoftcapSpecs[] = {{AttrName::kCap, AttrType::kFloat}};
constexpr AttrSpec kGatedMulSpecs[] = {{AttrName::kActivation, AttrType::kInt}};
constexpr AttrSpec kMatMulSpecs[] = {
    {AttrName::kScale, AttrType::kFloat},
    {AttrName::kDroppedBits, AttrType::kInt, /*optional=*/true}};
constexpr AttrSpec kConvertSpecs[] = {
    {AttrName::kFixedPoint, AttrType::kInt, /*optional=*/true},
    {AttrName::kHalfSteps, AttrType::kInt, /*optional=*/true}};
constexpr AttrSpec kSoftmaxSpecs[] = {
    {AttrName::kFixedPoint, AttrType::kInt, /*optional=*/true}};
constexpr AttrSpec kConcatSpecs[] = {{AttrName::kAxis, AttrType::kInt}};
constexpr AttrSpec kLayerNormSpecs[] = {{AttrName::kEps, AttrType::kFloat}};

// The attributes of each op, one name per row of ops.def.
constexpr AttrSpecs kEmbeddingAttrs = {};
constexpr AttrSpecs kLinearAttrs = kLinearSpecs;
constexpr AttrSpecs kRmsNormAttrs = kRmsNormSpecs;
constexpr AttrSpecs kRopeAttrs = {};
constexpr AttrSpecs kAttentionAttrs = kAttentionSpecs;
constexpr AttrSpecs kReshapeAttrs = kReshapeSpecs;
constexpr AttrSpecs kTransposeAttrs = kTransposeSpecs;
constexpr AttrSpecs kSliceRowsAttrs = kSliceRowsSpecs;
constexpr AttrSpecs kAddAttrs = {};
constexpr AttrSpecs kMulAttrs = {};
constexpr AttrSpecs kScaleAttrs = kScaleSpecs;
constexpr AttrSpecs kSiluAttrs = {};
constexpr AttrSpecs kGeluAttrs = kGeluSpecs;
constexpr AttrSpecs kSoftcapAttrs = kSoftcapSpecs;
constexpr AttrSpecs kGatedMulAttrs = kGatedMulSpecs;
constexpr AttrSpecs kLinearAddAttrs = {};
constexpr AttrSpecs kMatMulAttrs = kMatMulSpecs;
constexpr AttrSpecs kConcatAttrs = kConcatSpecs;
constexpr AttrSpecs kSoftmaxAttrs = kSoftmaxSpecs;
constexpr AttrSpecs kConvertAttrs = kConvertSpecs;
constexpr AttrSpecs kLayerNormAttrs = kLayerNormSpecs;

constexpr OpInfo kOps[] = {
#define HX_IR_OP(kind, text, min_inputs, max_inputs)           \
  {OpKind::k##kind, text,         min_inputs,      max_inputs, \
   k##kind##Attrs,  &Infer##kind, &Interpret##kind},
#include "ir/ops.def"
#undef HX_IR_OP
};

constexpr std::string_view kAttrTexts[] = {
    "eps",        "weight_offset", "scale",      "softcap",      "shape",
    "perm",       "begin",         "count",      "factor",       "approximate",
    "cap",        "activation",    "axis",       "dropped_bits", "fixed_point",
    "half_steps", "fast_root",     "rounds_down"};
static_assert(std::size(kAttrTexts) ==
              static_cast<size_t>(AttrName::kRoundsDown) + 1);

constexpr std::string_view AttrTypeText(AttrType type) {
  switch (type) {
    case AttrType::kInt:
      return "an integer";
    case AttrType::kFloat:
      return "a finite number";
    case AttrType::kInts:
      return "a list of integers";
  }
  return "";
}

bool HasType(const AttrValue& value, AttrType type) {
  switch (type) {
    case AttrType::kInt:
      return std::holds_alternative<int64_t>(value);
    case AttrType::kFloat: {
      const double* number = std::get_if<double>(&value);
      return number != nullptr && std::isfinite(*number);
    }
    case AttrType::kInts:
      return std::holds_alternative<std::vector<int64_t>>(value);
  }
  return false;
}

// The attributes that a node with `attrs` should have: of the optional ones
// those that it has.
std::vector<AttrSpec> SpecsFor(const OpInfo& info, const Attrs& attrs) {
  std::vector<AttrSpec> specs(info.attrs.begin(), info.attrs.end());
  std::erase_if(specs, [&](const AttrSpec& spec) {
    return spec.optional &&
           std::ranges::find(attrs, spec.name, &Attr::name) == attrs.end();
  });
  return specs;
}

// Optional attributes are left out rather than 0.
Status CheckOptional(AttrName name, int64_t value) {
  const int64_t most = name == AttrName::kDroppedBits ? 31 : 1;
  if (value >= 1 && value <= most) return OkStatus();
  return Error{ErrorCode::kBadInput,
               fmt::format("{}: expected 1 to {}, found {}", AttrText(name),
                           most, value)};
}

Status CheckAttrs(const OpInfo& info, const Attrs& attrs) {
  const std::vector<AttrSpec> specs = SpecsFor(info, attrs);
  if (attrs.size() != specs.size()) {
    return Error{ErrorCode::kBadInput,
                 fmt::format("expected {} attributes, found {}", specs.size(),
                             attrs.size())};
  }
  for (size_t i = 0; i < attrs.size(); ++i) {
    const AttrSpec& spec = specs[i];
    if (attrs[i].name != spec.name) {
      return Error{ErrorCode::kBadInput,
                   fmt::format("attribute {}: expected {}, found {}", i,
                               AttrText(spec.name), AttrText(attrs[i].name))};
    }
    if (!HasType(attrs[i].value, spec.type)) {
      return Error{ErrorCode::kBadInput,
                   fmt::format("attribute {}: expected {}", AttrText(spec.name),
                               AttrTypeText(spec.type))};
    }
    if (spec.optional)
      HX_RETURN_IF_ERROR(
          CheckOptional(spec.name, std::get<int64_t>(attrs[i].value)));
  }
  return OkStatus();
}

Status CheckArity(const OpInfo& info, size_t inputs) {
  if (inputs >= static_cast<size_t>(info.min_inputs) &&
      inputs <= static_cast<size_t>(info.max_inputs)) {
    return OkStatus();
  }
  return Error{ErrorCode::kBadInput,
               fmt::format("expected {} to {} inputs, found {}",
                           info.min_inputs, info.max_inputs, inputs)};
}

template <typename T>
const T& FindAttrValue(const Attrs& attrs, AttrName name) {
  for (const Attr& attr : attrs) {
    if (attr.name != name) continue;
    const T* value = std::get_if<T>(&attr.value);
    HX_CHECK(value != nullptr);
    return *value;
  }
  CheckFailed(__FILE__, __LINE__, AttrText(name).data());
}

}  // namespace

std::span<const OpInfo> AllOps() { return kOps; }

const OpInfo& GetOpInfo(OpKind kind) {
  HX_CHECK(static_cast<size_t>(kind) < std::size(kOps));
  return kOps[static_cast<size_t>(kind)];
}

const OpInfo* FindOp(std::string_view name) {
  for (const OpInfo& info : kOps) {
    if (info.name == name) return &info;
  }
  return nullptr;
}

std::string_view AttrText(AttrName name) {
  HX_CHECK(static_cast<size_t>(name) < std::size(kAttrTexts));
  return kAttrTexts[static_cast<size_t>(name)];
}

std::optional<AttrName> FindAttr(std::string_view text) {
  for (size_t i = 0; i < std::size(kAttrTexts); ++i) {
    if (kAttrTexts[i] == text) return static_cast<AttrName>(i);
  }
  return std::nullopt;
}

Result<TensorType> InferType(OpKind kind, const OpContext& context) {
  const OpInfo& info = GetOpInfo(kind);
  auto infer = [&]() -> Result<TensorType> {
    HX_RETURN_IF_ERROR(CheckArity(info, context.inputs.size()));
    HX_RETURN_IF_ERROR(CheckAttrs(info, context.attrs));
    HX_ASSIGN_OR_RETURN(TensorType type, info.infer(context));
    if (!StorageBytes(type.dtype, type.shape)) {
      return Error{
          ErrorCode::kBadInput,
          fmt::format("output {} is too large", ShapeToString(type.shape))};
    }
    return type;
  };
  auto type = infer();
  if (!type.ok()) return std::move(type).error().With(std::string(info.name));
  return type;
}

int64_t IntAttr(const Attrs& attrs, AttrName name) {
  return FindAttrValue<int64_t>(attrs, name);
}

double FloatAttr(const Attrs& attrs, AttrName name) {
  return FindAttrValue<double>(attrs, name);
}

int64_t OptionalIntAttr(const Attrs& attrs, AttrName name) {
  const auto found = std::ranges::find(attrs, name, &Attr::name);
  return found == attrs.end() ? 0 : IntAttr(attrs, name);
}

const std::vector<int64_t>& IntsAttr(const Attrs& attrs, AttrName name) {
  return FindAttrValue<std::vector<int64_t>>(attrs, name);
}

}  // namespace hexllm::ir
