// What a calibration is made of, and its result as bytes: how it is kept in a
// cache. Used by compile/calibrate.
#pragma once

#include <string>

#include "base/bytes.h"
#include "base/digest.h"
#include "base/status.h"
#include "compile/calibrate.h"

namespace hexllm {

// How one value is observed.
struct ObserverChoice {
  const quant::LayerSettings& settings;
  int bits = 16;  // of the codes that the range is for
};
ObserverChoice ChooseObserver(const quant::ResolvedRecipe& recipe,
                              std::string_view value);

// Of what runs (programs, weights, tables), on which ids, and how its taps are
// observed. job.cache is not null. Reads all weights.
Digest CalibrationKey(const CalibrationJob& job);

std::string EncodeCalibration(const Calibration& calibration);
// kBadInput for bytes that EncodeCalibration cannot have made.
Result<Calibration> DecodeCalibration(ByteSpan bytes);

}  // namespace hexllm
