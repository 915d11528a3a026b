// Samples of what linears read: the inputs of quant/weight_search.h. Used by
// compile/weight_tools.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/file_cache.h"
#include "compile/tapped_run.h"
#include "ir/graph.h"
#include "quant/weight_search.h"

namespace hexllm {

// Up to this many tokens the rows of an input are kept. Of longer calibrations:
// the second moments of all tokens where rows are no wider than kWidestMoments,
// else rows of about this many tokens (SampledTokens).
inline constexpr int64_t kSampledTokens = 1024;
inline constexpr int64_t kWidestMoments = 2048;

// Of how many sequences the first token is sampled besides, at most.
inline constexpr size_t kMostFirstTokens = 64;

// Which of all tokens, in the sequences' order: `most` at even distances, and
// the first of each sequence, or of every so many. First tokens are what models
// use as attention sinks: weights whose inputs are great there alone would pass
// for unused without them.
std::vector<bool> SampledTokens(const TokenSequences& sequences, int64_t most);

// Each row is scaled to a mean square of 1: what follows a layer's output is
// normed again, so that its error counts beside the token's own size. Unscaled,
// the few tokens that models use as sinks, a thousand times as large as others
// in what down_proj reads, would be all that counts.
//
// Of some layers, from the taps of a run: of the
// calibration's own (Add), or where that did not run, of one more when the
// first rows are asked for. The memory is 4 bytes x the widths of all inputs
// that are not shared (0.9 MB a token of Llama 3.2 1B) x kSampledTokens, or up
// to kWidestMoments.
class SampledInputs final : public quant::LayerInputs {
 public:
  // Of the linears of `module` that `layers` names. Borrows what `run` and
  // `cache` (null = Key is never called) name, and the pool.
  SampledInputs(const ir::Module& module, const std::set<std::string>& layers,
                const TappedRun& run, const FileCache* cache,
                quant::ProductFn product, ThreadPool& pool);

  // Takes what it needs of a tap of the run's graphs, all of which come in
  // their order, and that of the tokens. That they are finite is the
  // calibration's business.
  void Add(const TapView& tap);

  const std::string& InputOf(const std::string& layer) const override;
  Result<quant::InputSample> Sample(const std::string& layer) override;
  Result<Digest> Key() override;

 private:
  // Of one input.
  struct Kept {
    std::vector<float> rows;     // those that are not in `moments` yet
    std::vector<float> moments;  // [K,K], or none
    int64_t width = 0;
    size_t seen = 0;  // rows of all tokens so far
  };
  Status Run();
  void Finish();
  void AddToMoments(Kept& kept);

  const TappedRun run_;
  const FileCache* cache_;
  const quant::ProductFn product_;
  ThreadPool& pool_;
  std::map<std::string, std::string> inputs_;  // by layer
  std::map<std::string, Kept> kept_;           // by input
  const std::vector<bool> sampled_;            // by token
  std::optional<Digest> key_;
  bool is_finished_ = false;
};

}  // namespace hexllm
