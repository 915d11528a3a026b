#include "compile/requantize.h"

#include <fmt/format.h>

#include <algorithm>

#include "backend/htp/soc_table.h"
#include "base/graph_role.h"
#include "base/json.h"
#include "compile/artifact_parts.h"
#include "quant/recipe.h"

namespace hexllm {
namespace {

constexpr std::string_view kRecipe = "recipe";
constexpr std::string_view kCalibration = "calibration";

Error Damaged(const artifact::Artifact& artifact, std::string_view expected) {
  return Error{ErrorCode::kBadInput,
               fmt::format("{}: segment {}: expected {}; compile it again",
                           artifact.path(), kCalibration, expected)};
}

// Ids are checked against the vocabulary by MakeCalibrationSet.
Result<std::vector<int32_t>> ReadIds(const Json& list) {
  const Error error{ErrorCode::kBadInput, "lists of ids"};
  if (!list.is_array() || list.empty()) return error;
  std::vector<int32_t> ids;
  for (const Json& id : list) {
    if (!id.is_number_unsigned() || id.get<uint64_t>() > INT32_MAX)
      return error;
    ids.push_back(static_cast<int32_t>(id.get<uint64_t>()));
  }
  return ids;
}

Result<QuantizationRecord> ReadRecord(const artifact::Artifact& artifact) {
  QuantizationRecord record;
  HX_ASSIGN_OR_RETURN(record.recipe, TextSegment(artifact, kRecipe));
  HX_ASSIGN_OR_RETURN(const std::string text,
                      TextSegment(artifact, kCalibration));
  const auto json = ParseJson(text);
  const Json* const sequences =
      json.ok() ? FindMember(*json, "sequences") : nullptr;
  if (sequences == nullptr || !sequences->is_array())
    return Damaged(artifact, "JSON with sequences");
  auto soc = GetString(*json, "soc");
  if (!soc.ok()) return Damaged(artifact, "JSON with soc");
  record.soc = std::move(soc).value();
  for (const Json& list : *sequences) {
    auto ids = ReadIds(list);
    if (!ids.ok()) return Damaged(artifact, ids.error().message);
    record.sequences.push_back(std::move(ids).value());
  }
  return record;
}

// The caches of all graphs, each once.
std::vector<artifact::IoSpec> CachesOf(const artifact::Artifact& artifact) {
  std::vector<artifact::IoSpec> caches;
  for (const artifact::GraphEntry& graph : artifact.manifest().graphs) {
    for (const artifact::IoSpec& input : graph.inputs) {
      const bool is_cache = input.role.kind == RoleKind::kKIn ||
                            input.role.kind == RoleKind::kVIn;
      const auto same_role = [&](const artifact::IoSpec& other) {
        return other.role == input.role;
      };
      if (is_cache && std::none_of(caches.begin(), caches.end(), same_role))
        caches.push_back(input);
    }
  }
  return caches;
}

std::string Describe(const artifact::IoSpec& value) {
  const std::string type(DTypeName(value.dtype));
  if (!value.encoding) return type;
  return fmt::format("{} of scale {}", type, value.encoding->scale);
}

}  // namespace

Status AddQuantizationRecord(const QuantizationRecord& record,
                             artifact::SegmentSink& sink) {
  const Json calibration = {{"soc", record.soc},
                            {"sequences", record.sequences}};
  HX_RETURN_IF_ERROR(
      sink.Add({std::string(kRecipe), artifact::SegmentKind::kText},
               AsBytes(record.recipe))
          .status());
  return sink
      .Add({std::string(kCalibration), artifact::SegmentKind::kText},
           AsBytes(DumpJson(calibration)))
      .status();
}

Result<CompileOptions> RequantizeOptions(const artifact::Artifact& artifact,
                                         CompileOptions options) {
  HX_ASSIGN_OR_RETURN(QuantizationRecord record, ReadRecord(artifact));
  if (!htp::FindSoc(record.soc).ok()) return Damaged(artifact, "a known soc");
  options.stage = Stage::kQdq;
  options.recipe_json = std::move(record.recipe);
  options.target.soc = std::move(record.soc);
  options.calibration = {};
  options.calibration.ids = std::move(record.sequences);
  options.max_context_len = artifact.manifest().context_tokens;
  return options;
}

Result<CompileOptions> FloatOptions(const artifact::Artifact& artifact,
                                    CompileOptions options) {
  HX_ASSIGN_OR_RETURN(QuantizationRecord record, ReadRecord(artifact));
  options.stage = Stage::kFloat;
  options.calibration = {};
  HX_ASSIGN_OR_RETURN(const Json json, ParseJson(record.recipe));
  HX_ASSIGN_OR_RETURN(const quant::Recipe recipe,
                      quant::ParseRecipe(json, artifact.path()));
  if (!options.taps && !quant::Smooths(recipe)) {
    options.recipe_json = quant::RecipeToJson(quant::FloatRecipe(recipe));
    return options;
  }
  options.recipe_json = std::move(record.recipe);
  options.calibration.ids = std::move(record.sequences);
  // Of which the context must not cut anything.
  options.max_context_len = std::max<int64_t>(
      options.max_context_len.value_or(0), artifact.manifest().context_tokens);
  return options;
}

Status CheckSameEncodings(const artifact::Artifact& artifact,
                          const artifact::Artifact& made) {
  const std::vector<artifact::IoSpec> found = CachesOf(made);
  for (const artifact::IoSpec& expected : CachesOf(artifact)) {
    const auto same = std::find_if(
        found.begin(), found.end(),
        [&](const auto& value) { return value.role == expected.role; });
    if (same != found.end() && same->dtype == expected.dtype &&
        same->encoding == expected.encoding) {
      continue;
    }
    return Error{
        ErrorCode::kBadInput,
        fmt::format("{}: {}: expected {}, found {} when quantizing its "
                    "checkpoint again; give the flags that it was compiled "
                    "with, or compile it again",
                    artifact.path(), RoleToString(expected.role),
                    Describe(expected),
                    same == found.end() ? "none" : Describe(*same))};
  }
  return OkStatus();
}

}  // namespace hexllm
