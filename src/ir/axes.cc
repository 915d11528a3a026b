#include "ir/axes.h"

#include <fmt/format.h>

#include "base/check.h"
#include "base/dequantize.h"

namespace hexllm::ir {
namespace {

bool Accepts(Elem elem, DType dtype) {
  switch (elem) {
    case Elem::kActivation:
      return dtype == DType::kF32;
    case Elem::kStored:
      return IsFloatLike(dtype);
    case Elem::kIndex:
      return dtype == DType::kI32;
  }
  return false;
}

std::string_view ElemText(Elem elem) {
  switch (elem) {
    case Elem::kActivation:
      return "f32";
    case Elem::kStored:
      return "float-like ";
    case Elem::kIndex:
      return "i32";
  }
  return "";
}

constexpr int64_t MinSize(char axis) { return axis == 'P' ? 0 : 1; }

}  // namespace

void Axes::Bind(char axis, int64_t size) {
  sizes_[static_cast<size_t>(axis)] = size;
}

int64_t Axes::operator[](char axis) const {
  const int64_t size = sizes_[static_cast<size_t>(axis)];
  HX_CHECK(size != kFree);
  return size;
}

Status Axes::Match(const TensorSpec& spec, const TensorType& type) {
  std::string_view axes = spec.axes;
  const bool open = axes.starts_with('.');
  if (open) axes.remove_prefix(1);
  const size_t rank = type.shape.size();
  const bool rank_fits = open ? rank >= axes.size() : rank == axes.size();
  if (!rank_fits || !Accepts(spec.elem, type.dtype)) {
    return Mismatch(spec, type);
  }
  std::array<int64_t, 128> sizes = sizes_;
  for (size_t i = 0; i < axes.size(); ++i) {
    const int64_t size = type.shape[rank - axes.size() + i];
    int64_t& bound = sizes[static_cast<size_t>(axes[i])];
    if (size < MinSize(axes[i]) || (bound != kFree && bound != size)) {
      return Mismatch(spec, type);
    }
    bound = size;
  }
  sizes_ = sizes;
  return OkStatus();
}

TensorType Axes::Activation(std::string_view axes) const {
  TensorType type{.dtype = DType::kF32, .shape = {}};
  for (const char axis : axes) type.shape.push_back((*this)[axis]);
  return type;
}

Error Axes::Mismatch(const TensorSpec& spec, const TensorType& type) const {
  std::string letters;
  std::string bound;
  for (const char axis : spec.axes) {
    if (!letters.empty()) letters += ',';
    letters += axis == '.' ? ".." : axis == 'r' ? "R/2" : std::string(1, axis);
    const int64_t size =
        axis == '.' ? kFree : sizes_[static_cast<size_t>(axis)];
    if (size == kFree) continue;
    bound += fmt::format("{}{}={}", bound.empty() ? " with " : ", ",
                         axis == 'r' ? "R/2" : std::string(1, axis), size);
  }
  return Error{
      ErrorCode::kBadInput,
      fmt::format("{}: expected {}[{}]{}, found {}", spec.name,
                  ElemText(spec.elem), letters, bound, TypeToString(type))};
}

Result<Axes> MatchInputs(const OpContext& context,
                         std::span<const TensorSpec> specs) {
  HX_CHECK(context.inputs.size() <= specs.size());
  Axes axes;
  for (size_t i = 0; i < context.inputs.size(); ++i) {
    HX_RETURN_IF_ERROR(axes.Match(specs[i], *context.inputs[i]));
  }
  return axes;
}

std::string TypeToString(const TensorType& type) {
  return std::string(DTypeName(type.dtype)) + ShapeToString(type.shape);
}

}  // namespace hexllm::ir
