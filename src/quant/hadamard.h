// Hadamard rotations, which spread outliers over all elements of a vector and
// leave scalar products as they are. Used on heads of queries and keys (R3 of
// SpinQuant, https://arxiv.org/abs/2405.16406) and on weights.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace hexllm::quant {

// Sylvester's construction knows powers of two.
bool HasHadamard(int64_t size);

// The orthogonal matrix [size, size], row-major: Sylvester's H (entry i, j is
// -1 to the number of common bits of i and j) over sqrt(size). Its own inverse
// and transpose. HasHadamard(size) (checked).
std::vector<float> HadamardMatrix(int64_t size);

// x * HadamardMatrix(size) in place in size * log2(size) additions, in f32.
// HasHadamard(x.size()) (checked).
void HadamardTransform(std::span<float> x);

}  // namespace hexllm::quant
