#include "eval/taps.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/check.h"

namespace hexllm {
namespace {

constexpr std::string_view kLayers = "model.layers.";

// Energies of one value, and of each of its channels.
struct Energies {
  Sqnr total;
  std::vector<Sqnr> channels;  // empty unless the value is [T,N]
};

void AddTo(Energies& energies, const TapRecorder::Tap& reference,
           const TapRecorder::Tap& x) {
  energies.total.Add(reference.values, x.values);
  if (reference.shape.size() != 2) return;
  const auto n = static_cast<size_t>(reference.shape[1]);
  energies.channels.resize(n);
  for (size_t i = 0; i < x.values.size(); ++i) {
    energies.channels[i % n].Add(std::span(reference.values).subspan(i, 1),
                                 std::span(x.values).subspan(i, 1));
  }
}

TapComparison Finish(const std::string& name, const Energies& energies) {
  TapComparison out{.name = name, .sqnr_db = energies.total.Decibels()};
  if (energies.channels.empty()) return out;
  const double mean =
      energies.total.signal / static_cast<double>(energies.channels.size());
  out.worst_channel_db = kMostDecibels;
  out.worst_channel = 0;
  for (size_t c = 0; c < energies.channels.size(); ++c) {
    const Sqnr& channel = energies.channels[c];
    const double db =
        Sqnr{.signal = std::max(mean, channel.signal), .noise = channel.noise}
            .Decibels();
    if (db >= out.worst_channel_db) continue;
    out.worst_channel = static_cast<uint32_t>(c);
    out.worst_channel_db = db;
    out.worst_channel_share = channel.noise / energies.total.noise;
  }
  return out;
}

// Collects over steps.
class Collector {
 public:
  void AddStep(const TapRecorder& reference, const TapRecorder& x) {
    for (const std::string& name : x.names()) {
      const TapRecorder::Tap* const a = reference.Find(name);
      const TapRecorder::Tap* const b = x.Find(name);
      if (name.ends_with(".masked_scores") || a == nullptr ||
          a->shape != b->shape) {
        continue;
      }
      const auto [at, is_new] = energies_.try_emplace(name);
      if (is_new) names_.push_back(name);
      AddTo(at->second, *a, *b);
    }
  }
  std::vector<TapComparison> Finished() const {
    std::vector<TapComparison> out;
    for (const std::string& name : names_)
      out.push_back(Finish(name, energies_.at(name)));
    return out;
  }

 private:
  std::vector<std::string> names_;
  std::map<std::string, Energies> energies_;
};

}  // namespace

TapSink TapRecorder::Sink() {
  return [this](const TapView& tap) {
    std::string name(tap.name);
    Tap& kept = taps_[name];
    kept.shape = tap.shape;
    kept.values.assign(tap.values.begin(), tap.values.end());
    names_.push_back(std::move(name));
    return OkStatus();
  };
}

void TapRecorder::Clear() {
  names_.clear();
  taps_.clear();
}

const TapRecorder::Tap* TapRecorder::Find(const std::string& name) const {
  const auto found = taps_.find(name);
  return found == taps_.end() ? nullptr : &found->second;
}

Result<std::vector<TapComparison>> CompareTaps(const TappedSession& reference,
                                               const TappedSession& x,
                                               std::span<const int32_t> ids,
                                               uint32_t block) {
  HX_CHECK(block >= 1);
  Collector collector;
  const TappedSession* const both[] = {&reference, &x};
  for (const TappedSession* one : both) one->session.Reset();
  for (size_t at = 0; at < ids.size();) {
    const size_t n = ids.size() - at >= block ? block : 1;
    for (const TappedSession* one : both) {
      one->recorder.Clear();
      HX_RETURN_IF_ERROR(one->session.Prefill(ids.subspan(at, n)));
    }
    collector.AddStep(reference.recorder, x.recorder);
    at += n;
  }
  for (const TappedSession* one : both) one->session.Reset();
  std::vector<TapComparison> values = collector.Finished();
  if (!values.empty()) return values;
  return Error{ErrorCode::kUsage,
               fmt::format("{}: expected graphs that show their inner values, "
                           "found none in common with the reference's; compile "
                           "with --taps, or give the checkpoint",
                           x.session.artifact().path())};
}

std::optional<size_t> FindDeparture(std::span<const TapComparison> values,
                                    double tolerance_db) {
  for (size_t i = 0; i < values.size(); ++i) {
    if (values[i].sqnr_db < tolerance_db ||
        (values[i].worst_channel && values[i].worst_channel_db < tolerance_db))
      return i;
  }
  return std::nullopt;
}

std::optional<int> LayerOf(const std::string& name) {
  if (!name.starts_with(kLayers)) return std::nullopt;
  int layer = 0;
  const char* const begin = name.data() + kLayers.size();
  const auto [stop, error] =
      std::from_chars(begin, name.data() + name.size(), layer);
  if (error != std::errc()) return std::nullopt;
  return layer;
}

std::vector<ValueComparison> LayerOutputs(
    std::span<const TapComparison> values) {
  std::vector<ValueComparison> layers;
  for (const TapComparison& value : values) {
    const bool is_output =
        LayerOf(value.name) &&
        value.name.find('.', kLayers.size()) == std::string::npos;
    if (is_output) layers.push_back({value.name, value.sqnr_db});
  }
  return layers;
}

}  // namespace hexllm
