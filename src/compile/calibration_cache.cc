#include "compile/calibration_cache.h"

namespace hexllm {

ObserverChoice ChooseObserver(const quant::ResolvedRecipe& recipe,
                              std::string_view value) {
  const quant::LayerSettings& settings = recipe.For(std::string(value));
  const bool cached =
      value.ends_with(".k_cache") || value.ends_with(".v_cache");
  const bool narrow = cached && recipe.recipe.kv_bits == 8;
  return {settings, narrow ? 8 : settings.scheme->activation_bits};
}

Digest CalibrationKey(const CalibrationJob& job) {
  Hasher key = job.cache->StartKey("calibration");
  AddToKey(job.run, key);
  for (const artifact::GraphEntry& graph : job.run.graphs->manifest().graphs) {
    for (const artifact::IoSpec& output : graph.outputs) {
      if (output.role.kind != RoleKind::kTap) continue;
      const auto [settings, bits] =
          ChooseObserver(job.recipe, output.role.name);
      key.AddNumber(settings.observer);
      key.AddNumber(settings.percentile);
      key.AddNumber(settings.momentum);
      key.AddNumber(settings.symmetric_activations);
      key.AddNumber(bits);
    }
  }
  return key.Finish();
}

std::string EncodeCalibration(const Calibration& calibration) {
  ByteWriter out;
  out.Write<uint64_t>(calibration.ranges.size());
  for (const auto& [name, seen] : calibration.ranges) {
    out.WriteString(name);
    out.Write(seen.range.min);
    out.Write(seen.range.max);
    out.Write(seen.clipped);
  }
  out.Write<uint64_t>(calibration.key_sqnr.size());
  for (const auto& [layer, sqnr] : calibration.key_sqnr) {
    out.Write<int32_t>(layer);
    out.Write(sqnr);
  }
  return std::move(out).Take();
}

Result<Calibration> DecodeCalibration(ByteSpan bytes) {
  ByteReader in(bytes);
  Calibration calibration;
  HX_ASSIGN_OR_RETURN(const uint64_t ranges, in.Read<uint64_t>());
  for (uint64_t i = 0; i < ranges; ++i) {
    HX_ASSIGN_OR_RETURN(const std::string_view name, in.ReadString());
    quant::ValueRange& seen = calibration.ranges[std::string(name)];
    HX_ASSIGN_OR_RETURN(seen.range.min, in.Read<float>());
    HX_ASSIGN_OR_RETURN(seen.range.max, in.Read<float>());
    HX_ASSIGN_OR_RETURN(seen.clipped, in.Read<double>());
  }
  HX_ASSIGN_OR_RETURN(const uint64_t layers, in.Read<uint64_t>());
  for (uint64_t i = 0; i < layers; ++i) {
    HX_ASSIGN_OR_RETURN(const int32_t layer, in.Read<int32_t>());
    HX_ASSIGN_OR_RETURN(calibration.key_sqnr[layer], in.Read<double>());
  }
  return calibration;
}

}  // namespace hexllm
