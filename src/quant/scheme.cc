#include "quant/scheme.h"

#include <algorithm>

namespace hexllm::quant {
namespace {

using enum ActivationKind;

constexpr Scheme kSchemes[] = {
    {"fp32", kFloat32, 32, 0, false},    {"fp16", kFloat16, 16, 0, false},
    {"16a16w", kStatic, 16, 16, false},  {"16a8w", kStatic, 16, 8, false},
    {"16a4w", kStatic, 16, 4, false},    {"16a4w_block", kStatic, 16, 4, true},
    {"8a8w", kStatic, 8, 8, false},      {"8a4w", kStatic, 8, 4, false},
    {"cpu-w8a8", kDynamic, 8, 8, false}, {"cpu-w4a8", kDynamic, 8, 4, false},
};

}  // namespace

std::span<const Scheme> AllSchemes() { return kSchemes; }

const Scheme* FindScheme(std::string_view name) {
  const auto* found = std::ranges::find(kSchemes, name, &Scheme::name);
  return found == std::end(kSchemes) ? nullptr : found;
}

SchemeFamily FamilyOf(const Scheme& scheme) {
  switch (scheme.activations) {
    case kFloat32:
    case kDynamic:
      return SchemeFamily::kPlain;
    case kFloat16:
    case kStatic:
      break;
  }
  return SchemeFamily::kStatic;
}

}  // namespace hexllm::quant
