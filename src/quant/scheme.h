// The quantization schemes: how many bits activations and weights get, and how
// activations get theirs. Used by recipes (which choose a scheme per layer) and
// by the quantizer. Not where ranges or scales are chosen. Adding a scheme: one
// row in scheme.cc and one recipe of its name.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace hexllm::quant {

// How the inputs and outputs of a layer are represented.
enum class ActivationKind : uint8_t {
  kFloat32,  // not rounded
  kFloat16,  // rounded to half precision
  kStatic,   // integers whose scale and zero point come from calibration
  kDynamic,  // inputs of linears are rounded at run time, per row and per block
             // of 32 along K; all else stays f32. CPU only.
};

// One row of the table. Names are an interface: they stand in recipes,
// artifacts and on the command line.
struct Scheme {
  std::string_view name;  // "16a4w_block"
  ActivationKind activations;
  int activation_bits;  // 32, 16 or 8
  int weight_bits;      // 4, 8 or 16; 0 = float (of activation_bits)
  bool block;  // LPBQ: int4 weights with an integer factor per block of input
               // channels
};

inline bool IsQuantized(const Scheme& scheme) {
  return scheme.activations != ActivationKind::kFloat32;
}

// In the order in which lists show them. Lives as long as the program.
std::span<const Scheme> AllSchemes();

// Null when there is no scheme of that name.
const Scheme* FindScheme(std::string_view name);

// What may stand together in one recipe, because it runs in one kind of graph.
enum class SchemeFamily : uint8_t {
  kPlain,   // the float graph: fp32 and the dynamic schemes
  kStatic,  // the target-lowered graph with encodings: all others
};
SchemeFamily FamilyOf(const Scheme& scheme);

}  // namespace hexllm::quant
