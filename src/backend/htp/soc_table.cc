#include "backend/htp/soc_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <string>
#include <vector>

#include "base/near_name.h"
#include "base/quote.h"

namespace hexllm::htp {
namespace {

// Numbers of the library (QAIRT 2.51 accepts all of them) and VTCM as
// ExecuTorch's Qualcomm backend lists them; of SC8380XP, SC8480XP, SM8950 and
// SM8975 as 2.51 writes them into a context binary. Cost models as tried
// with 2.51. No half precision: where 2.51 refuses nodes of it, and v68, where
// it does not, but Qualcomm names v69 as the first generation that has it
// (README of github.com/qualcomm/ai-hub-apps).
constexpr Soc kSocs[] = {
    {"QCM6490", 93, 68, 2, false, false},
    {"QCS9100", 77, 73, 8},
    {"SA8255", 52, 73, 8},
    {"SA8295", 39, 68, 8, true, false},
    {"SA8797", 72, 81, 16},
    {"SAR2230P", 95, 81, 4, true, false},
    {"SC8380XP", 60, 73, 8},  // Snapdragon X Elite and X Plus
    {"SC8480XP", 88, 81, 8},  // Snapdragon X2 Elite
    {"SM8350", 30, 68, 4, true, false},
    {"SM8450", 36, 69, 8},
    {"SM8475", 42, 69, 8, false},
    {"SM8550", 43, 73, 8},
    {"SM8650", 57, 75, 8},
    {"SM8750", 69, 79, 8},
    {"SM8845", 97, 81, 8},
    {"SM8850", 87, 81, 8},
    {"SM8950", 113, 85, 8},
    {"SM8975", 103, 85, 12},
    {"SSG2115P", 46, 73, 2, false, false},
    {"SSG2125P", 58, 73, 2, false, false},
    {"SW6100", 96, 81, 4, true, false},
    {"SXR1230P", 45, 73, 2, false, false},
    {"SXR2230P", 53, 69, 8},
    {"SXR2330P", 75, 79, 8},
};

struct Rule {
  Feature feature;
  uint32_t since;  // the first generation that can
  std::string_view what;
  std::string_view instead;
};
constexpr Rule kRules[] = {
    {Feature::kBlockWeights, 69, "4-bit weights in blocks (LPBQ)",
     "use a recipe with weights per channel (16a4w or 16a8w)"},
    {Feature::kWeightSharing, 73, "sharing weights between graphs",
     "compile one graph, or keep a copy of the weights in each"},
    {Feature::k16BitKv, 73, "a MatMul of two 16-bit inputs (16-bit KV cache)",
     "use a recipe with an 8-bit KV cache"},
    {Feature::k16BitWeights, 73, "16-bit weights",
     "use a recipe with 8-bit weights"},
    {Feature::k16BitLayerNorm, 73, "LayerNorm of 16-bit activations",
     "use fp16 or 8-bit activations"},
    {Feature::k2BitWeights, 73, "2-bit weights",
     "use a recipe with 4-bit weights"},
};

// Not a matter of the generation alone.
Status RequireHalf(const Soc& soc) {
  if (soc.has_half) return OkStatus();
  return Error{ErrorCode::kUnsupported,
               fmt::format("{} has an HTP v{} without arithmetic in half "
                           "precision; use a recipe with integer activations "
                           "and \"residual\": \"activations\"",
                           soc.name, soc.htp)};
}

std::string UpperCase(std::string_view text) {
  std::string upper(text);
  for (char& c : upper)
    c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return upper;
}

}  // namespace

std::span<const Soc> AllSocs() { return kSocs; }

Result<Soc> FindSoc(std::string_view name) {
  const std::string upper = UpperCase(name);
  std::vector<std::string_view> names;
  for (const Soc& soc : kSocs) {
    if (soc.name == upper) return soc;
    names.push_back(soc.name);
  }
  return Error{ErrorCode::kUsage, fmt::format("no SoC {}; {}", Quoted(name),
                                              SuggestNames(name, names))};
}

const Soc* FindSocById(uint32_t qnn_id) {
  const auto found = std::ranges::find(kSocs, qnn_id, &Soc::qnn_id);
  return found == std::end(kSocs) ? nullptr : &*found;
}

Status RequireFeature(const Soc& soc, Feature feature) {
  if (feature == Feature::kHalf) return RequireHalf(soc);
  const auto rule = std::ranges::find(kRules, feature, &Rule::feature);
  HX_CHECK(rule != std::end(kRules));
  if (soc.htp >= rule->since) return OkStatus();
  return Error{
      ErrorCode::kUnsupported,
      fmt::format("{} has an HTP v{}, but {} needs v{} or later; {}", soc.name,
                  soc.htp, rule->what, rule->since, rule->instead)};
}

Status CheckContextSize(uint64_t weight_bytes) {
  // A context also holds programs, tables and spill buffers: measured 1 to 6 %
  // of the weights (LPBQ), taken as 1/8.
  constexpr uint64_t kMaxWeights = kMaxContextBytes / 8 * 7;
  if (weight_bytes < kMaxWeights) return OkStatus();
  return Error{
      ErrorCode::kUnsupported,
      fmt::format(
          "a context of {} MB of weights: the HTP can address {} MB, of "
          "which {} for weights; cut the model into more parts with "
          "--num-sharding",
          weight_bytes >> 20, kMaxContextBytes >> 20, kMaxWeights >> 20)};
}

}  // namespace hexllm::htp
