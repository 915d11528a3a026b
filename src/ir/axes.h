// Shape rules by axis letters: "x[T,K], w[N,K] -> [T,N]" as code. Letters stand
// for sizes that are bound at their first use and must be equal afterwards.
// Used by the ops' Infer functions and by the verifier's role checks
// (ir/roles.h).
#pragma once

#include <array>
#include <span>
#include <string>
#include <string_view>

#include "base/status.h"
#include "ir/ops.h"
#include "ir/types.h"

namespace hexllm::ir {

// Element types that an input may have.
enum class Elem : uint8_t {
  kActivation,  // f32
  kStored,      // as weights are stored: f32, f16, bf16, f64 or a block type
  kIndex,       // i32
};

// One expected tensor. `axes` has one letter per axis, outermost first; every
// axis has at least one element, but 'P' (past columns) may be empty. A leading
// '.' stands for any number of axes of any size. Lower case letters: 'r' is
// R/2.
struct TensorSpec {
  std::string_view name;  // as in the op's formula: "w"
  std::string_view axes;
  Elem elem = Elem::kActivation;
};

// What the letters stand for.
class Axes {
 public:
  // Fixes a letter before matching.
  void Bind(char axis, int64_t size);
  // The size of a bound letter (checked).
  int64_t operator[](char axis) const;
  // Matches `type`, binding letters that are new. kBadInput: "w: expected [N,K]
  // with K=576, found f16[1536,512]".
  Status Match(const TensorSpec& spec, const TensorType& type);
  // An f32 tensor of bound axes.
  TensorType Activation(std::string_view axes) const;

 private:
  Error Mismatch(const TensorSpec& spec, const TensorType& type) const;

  static constexpr int64_t kFree = -1;
  std::array<int64_t, 128> sizes_ = MakeFree();
  static constexpr std::array<int64_t, 128> MakeFree() {
    std::array<int64_t, 128> sizes{};
    sizes.fill(kFree);
    return sizes;
  }
};

// Matches the inputs of a node, which may be fewer than the specs (optional
// ones at the end). Messages name the input.
Result<Axes> MatchInputs(const OpContext& context,
                         std::span<const TensorSpec> specs);

// "f32[2,3]".
std::string TypeToString(const TensorType& type);

}  // namespace hexllm::ir
