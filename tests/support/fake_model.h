// A deterministic "model" for tests of the runtime: integer hashes in place of
// arithmetic. A token's state depends on the token, its RoPE rows, and through
// all layers on exactly the visible columns of keys and values, whose content
// depends in turn on the token that made them. So a wrong mask, commit, RoPE
// row or rearrangement, or a stale column, changes the tokens that come after.
// This file: the options, the arithmetic, and the reference that runs whole
// texts without any of the runtime. The engine is fake_engine.h.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "artifact/manifest.h"
#include "base/dtype.h"
#include "base/graph_role.h"

namespace hexllm::testing {

struct FakeStep {
  GraphKind kind = GraphKind::kKv;
  uint32_t step_tokens = 1;
  LogitsRows logits_rows = LogitsRows::kAll;
};

struct FakeOptions {
  uint32_t vocab = 37;
  uint32_t layers = 3;
  uint32_t context = 64;
  int64_t groups = 2;  // G
  int64_t k_dim = 3;   // D of K
  int64_t v_dim = 2;   // D of V
  uint32_t rope_half_dim = 2;
  std::vector<uint32_t> windows = {0, 5};  // layer l has windows[l % size]
  DType kv_dtype = DType::kF32;
  DType mask_dtype = DType::kF32;
  DType rope_dtype = DType::kF32;    // or an encoded one
  DType logits_dtype = DType::kF32;  // or an encoded one
  uint32_t shards = 1;
  bool host_embedding = false;  // the first shard takes embedding, not token
  std::vector<FakeStep> steps = {{GraphKind::kPrefill, 7, LogitsRows::kAll},
                                 {GraphKind::kKv, 1, LogitsRows::kAll}};
  std::optional<artifact::LookaheadShape> lookahead = {};  // adds its graph
  artifact::GenerationDefaults generation = {};
};

inline constexpr float kFakeRopeScale = 1.0f / 1024;
inline constexpr int32_t kFakeRopeZeroPoint = 100;
inline constexpr float kFakeLogitScale = 1.0f / 64;

inline uint64_t FakeHash(uint64_t a, uint64_t b) {
  uint64_t x = (a ^ 0x243f6a8885a308d3) * 0x9e3779b97f4a7c15 + b;
  x = (x ^ (x >> 29)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 32)) * 0x94d049bb133111eb;
  return x ^ (x >> 29);
}

// The code of rope table `which` (0 cos, 1 sin) at a position.
inline uint32_t FakeRopeCode(uint32_t position, uint32_t i, uint32_t which) {
  return position * 31 + i * 7 + which * 3;
}

inline uint64_t FakeEmbed(int32_t token, std::span<const uint32_t> rope_codes) {
  uint64_t h = FakeHash(1, static_cast<uint64_t>(token));
  for (const uint32_t code : rope_codes) h = FakeHash(h, code);
  return h;
}

// Element `e` of the K (which = 0) or V (1) column that state `h` makes in a
// layer, cut to the element size.
inline uint64_t FakeKvElement(uint64_t h, uint64_t which, uint64_t e,
                              size_t bytes) {
  const uint64_t all = FakeHash(h, 2 * e + which);
  return bytes >= 8 ? all : all & ((uint64_t{1} << (8 * bytes)) - 1);
}

// The order of columns does not matter: their content tells their position.
inline uint64_t FakeAttend(uint64_t h, uint64_t sum_of_columns) {
  return FakeHash(h, sum_of_columns);
}

inline uint32_t FakeLogitCode(uint64_t h, uint32_t token) {
  return static_cast<uint32_t>(FakeHash(h, 77 + token) % 1000);
}

// Runs texts one position at a time, keeping every column.
class FakeReference {
 public:
  explicit FakeReference(FakeOptions options)
      : options_(std::move(options)), columns_(options_.layers) {}

  // Appends a token and returns the logits [V] of its row.
  std::vector<float> Append(int32_t token) {
    const auto position = static_cast<uint32_t>(columns_[0].size());
    std::vector<uint32_t> codes;
    for (uint32_t which = 0; which < 2; ++which) {
      for (uint32_t i = 0; i < options_.rope_half_dim; ++i)
        codes.push_back(FakeRopeCode(position, i, which));
    }
    uint64_t h = FakeEmbed(token, codes);
    for (uint32_t l = 0; l < options_.layers; ++l) h = Layer(l, position, h);
    std::vector<float> logits(options_.vocab);
    for (uint32_t v = 0; v < options_.vocab; ++v)
      logits[v] = kFakeLogitScale * static_cast<float>(FakeLogitCode(h, v));
    return logits;
  }

  // Logits of every position of `ids`, from an empty text.
  static std::vector<std::vector<float>> Logits(const FakeOptions& options,
                                                std::span<const int32_t> ids) {
    FakeReference reference(options);
    std::vector<std::vector<float>> rows;
    for (const int32_t id : ids) rows.push_back(reference.Append(id));
    return rows;
  }

  // The `count` greedy tokens after `prompt`; ties go to the lowest id.
  static std::vector<int32_t> Greedy(const FakeOptions& options,
                                     std::span<const int32_t> prompt,
                                     size_t count) {
    FakeReference reference(options);
    std::vector<float> logits;
    for (const int32_t id : prompt) logits = reference.Append(id);
    std::vector<int32_t> out;
    while (out.size() < count) {
      size_t best = 0;
      for (size_t v = 1; v < logits.size(); ++v)
        if (logits[v] > logits[best]) best = v;
      out.push_back(static_cast<int32_t>(best));
      if (out.size() < count) logits = reference.Append(out.back());
    }
    return out;
  }

  static uint64_t HashElements(std::span<const uint64_t> elements) {
    uint64_t h = 3;
    for (const uint64_t element : elements) h = FakeHash(h, element);
    return h;
  }

 private:
  uint64_t Layer(uint32_t layer, uint32_t position, uint64_t h) {
    const size_t bytes = GetDTypeInfo(options_.kv_dtype).block_bytes;
    std::vector<uint64_t> elements;
    for (uint64_t which = 0; which < 2; ++which) {
      const int64_t dim = which == 0 ? options_.k_dim : options_.v_dim;
      const auto count = static_cast<uint64_t>(options_.groups * dim);
      for (uint64_t e = 0; e < count; ++e)
        elements.push_back(FakeKvElement(h, which, e, bytes));
    }
    columns_[layer].push_back(HashElements(elements));
    const uint32_t window = options_.windows[layer % options_.windows.size()];
    uint64_t sum = 0;
    for (uint32_t k = 0; k <= position; ++k) {
      if (window == 0 || position - k < window) sum += columns_[layer][k];
    }
    return FakeAttend(h, sum);
  }

  FakeOptions options_;
  std::vector<std::vector<uint64_t>> columns_;  // [L][positions]
};

}  // namespace hexllm::testing
