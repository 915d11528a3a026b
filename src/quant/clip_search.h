// Which range to round an activation in: a narrow one has small steps and clips
// much, a wide one the reverse. Used by the histogram observer.
#pragma once

#include "quant/histogram.h"
#include "quant/range.h"

namespace hexllm::quant {

// The range within `extremes` (widened to hold 0) of least expected squared
// error when the histogram's numbers are rounded to ActivationEncoding(range,
// format): step^2 / 12 for each number inside, the squared distance for each
// outside. Tries 128 places for either end (for both at once when the zero
// point is the middle code). `histogram` is not empty.
Range FindRangeOfLeastError(const Histogram& histogram, Range extremes,
                            ActivationFormat format);

}  // namespace hexllm::quant
