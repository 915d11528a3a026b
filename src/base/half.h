// Scalar conversions between float and its 16-bit forms. Exact widening;
// narrowing rounds to nearest even. Used wherever single values are converted;
// rows are converted by base/dequantize.h or the CPU kernels.
#pragma once

#include <cstdint>

namespace hexllm {

inline constexpr float kMaxHalf = 65504;  // the largest finite f16

float F16ToF32(uint16_t bits);
uint16_t F32ToF16(float value);
float BF16ToF32(uint16_t bits);
uint16_t F32ToBF16(float value);

}  // namespace hexllm
