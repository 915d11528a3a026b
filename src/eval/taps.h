// Inner values of two stages side by side: how far apart each is, and where
// they part. Works on sessions of debug compiles (role tap), whose graphs have
// the same T and C. Used by cli/ (eval --sqnr, --bisect).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "eval/compare.h"
#include "runtime/session.h"

namespace hexllm {

// Keeps the taps of a session's last step.
class TapRecorder {
 public:
  struct Tap {
    Shape shape;
    std::vector<float> values;
  };
  // For SessionOptions::on_tap; this must outlive the session.
  TapSink Sink();
  void Clear();
  // In the order of the graph's outputs.
  const std::vector<std::string>& names() const { return names_; }
  const Tap* Find(const std::string& name) const;

 private:
  std::vector<std::string> names_;
  std::map<std::string, Tap> taps_;
};

struct TappedSession {
  Session& session;
  TapRecorder& recorder;
};

// How far a value is from the reference's.
struct TapComparison {
  std::string name;
  double sqnr_db = 0;
  // Of values [T,N]: the channel with the worst ratio of the greater of its own
  // signal and the channels' mean one to its noise. A damaged row of a weight
  // shows here, when it is lost in the whole value's ratio.
  std::optional<uint32_t> worst_channel = {};
  double worst_channel_db = 0;
  double worst_channel_share = 0;  // of the value's noise
};

// Runs `ids` on both, T = `block` tokens a step and single tokens for the rest
// (both sessions have such graphs), and compares what both have, in the order
// of the graph. Scores with hidden columns are left out. kUsage when there is
// nothing to compare: the graphs are of no debug compile; errors of the
// sessions.
Result<std::vector<TapComparison>> CompareTaps(const TappedSession& reference,
                                               const TappedSession& x,
                                               std::span<const int32_t> ids,
                                               uint32_t block);

// The first value whose SQNR, or whose worst channel's, is below
// `tolerance_db`.
std::optional<size_t> FindDeparture(std::span<const TapComparison> values,
                                    double tolerance_db);

// The layer that a value is of: 3 for "model.layers.3.mlp.up_proj".
std::optional<int> LayerOf(const std::string& name);

// The residual stream after each layer ("model.layers.3").
std::vector<ValueComparison> LayerOutputs(
    std::span<const TapComparison> values);

}  // namespace hexllm
