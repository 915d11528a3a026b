// Weights that are rounded for what their layer gives, not for what they are:
// scales that leave the least error of the outputs (seq_mse), and codes that
// make up for one another's rounding (gptq), both on sampled inputs of the
// layer. Used by the encoder of constants; compile/ lends what it works with.
// Not where inputs are sampled.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "base/digest.h"
#include "base/file_cache.h"
#include "base/progress.h"
#include "base/status.h"
#include "base/thread_pool.h"
#include "ir/constant.h"
#include "quant/recipe.h"

namespace hexllm::quant {

// out[i, j] = sum over k of a[i, k] * b[j, k]. An output's value depends on its
// own row of a and of b alone. Strides in floats.
struct ProductArgs {
  const float* a;  // [m, k]
  int64_t a_stride;
  const float* b;  // [n, k]
  int64_t b_stride;
  float* out;  // [m, n]
  int64_t out_stride;
  int64_t m, n, k;
};

using ProductFn = std::function<void(const ProductArgs&)>;  // thread-safe

// What a linear read, X [T,K], finite: the rows, or where T > K is many, what
// is to be known of them.
struct InputSample {
  std::span<const float> rows = {};     // X, or none
  std::span<const float> moments = {};  // X^T X [K,K], where there are no rows
};

// What linears of a model read, on some tokens of the calibration.
class LayerInputs {
 public:
  virtual ~LayerInputs() = default;
  // The name of what linear `layer` reads: equal for layers that read the same.
  virtual const std::string& InputOf(const std::string& layer) const = 0;
  // Lives as long as this object.
  virtual Result<InputSample> Sample(const std::string& layer) = 0;
  // Of all that the samples follow from.
  virtual Result<Digest> Key() = 0;
};

// What a search works with; borrowed.
struct SearchContext {
  LayerInputs& inputs;
  ProductFn product;
  ThreadPool& pool;
  ProgressSink& progress;
  const FileCache* cache = nullptr;  // keeps what was found; null = nothing
  // Called when a weight is done, so that its pages can go; may be empty.
  std::function<void()> release = {};
};

// True when a layer of these settings is to be given to a WeightSearch.
bool WantsSearch(const LayerSettings& settings);

// Codes as ir::Constant has them.
struct ChosenCodes {
  ByteSpan bytes = {};
  std::shared_ptr<const void> owner = {};
};

class InputMoments;

// Keeps what it made of the latest layer's inputs, which the next often shares.
// Not thread-safe. Results depend neither on the number of threads nor on the
// cache.
class WeightSearch {
 public:
  explicit WeightSearch(const SearchContext& context);
  ~WeightSearch();

  // A weight [N,K] of a linear in the scheme of `settings`, and its encoding so
  // far.
  struct Target {
    const ir::Constant& weight;
    const std::string& layer;
    const LayerSettings& settings;
  };

  // For seq_mse: `encoding` (of min_max) with the scales, among
  // `seq_mse_candidates` for each weight, of the least squared error of the
  // layer's outputs; never a greater one than min_max leaves. Per channel and
  // per tensor: from the scale given down to a fifth of it, evenly. LPBQ:
  // see seq_mse_blocks.h.
  Result<ir::Encoding> Scales(const Target& target, ir::Encoding encoding);
  // For gptq: codes on the grid of `encoding`; see gptq.h.
  Result<ChosenCodes> Codes(const Target& target, const ir::Encoding& encoding);

 private:
  Result<InputMoments*> MomentsOf(const Target& target);
  Result<Hasher> KeyOf(std::string_view kind, const Target& target,
                       const ir::Encoding& encoding);

  SearchContext context_;
  std::string input_;  // whose moments they are
  std::unique_ptr<InputMoments> moments_;
};

}  // namespace hexllm::quant
