#include "eval/compare.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace hexllm {
namespace {

constexpr size_t kScatterPairs = 1500;  // most
constexpr size_t kScatterPerRow = 24;

double LogOfSum(std::span<const float> logits) {
  const double best = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (const float logit : logits)
    sum += std::exp(static_cast<double>(logit) - best);
  return std::log(sum) + best;
}

// sum p (log p - log q); never below 0, which rounding could give.
double KlDivergence(std::span<const float> p, std::span<const float> q) {
  const double log_p = LogOfSum(p), log_q = LogOfSum(q);
  double sum = 0;
  for (size_t i = 0; i < p.size(); ++i) {
    const double a = static_cast<double>(p[i]) - log_p;
    sum += std::exp(a) * (a - (static_cast<double>(q[i]) - log_q));
  }
  return std::max(0.0, sum);
}

size_t IndexOfLargest(std::span<const float> values) {
  return static_cast<size_t>(std::max_element(values.begin(), values.end()) -
                             values.begin());
}

}  // namespace

void Sqnr::Add(std::span<const float> reference, std::span<const float> x) {
  HX_CHECK(reference.size() == x.size());
  for (size_t i = 0; i < x.size(); ++i) {
    const double value = reference[i];
    const double error = value - static_cast<double>(x[i]);
    signal += value * value;
    noise += error * error;
  }
}

void Sqnr::Add(const Sqnr& other) {
  signal += other.signal;
  noise += other.noise;
}

double Sqnr::Decibels() const {
  if (noise == 0) return kMostDecibels;
  if (signal == 0) return -kMostDecibels;
  const double db = 10 * std::log10(signal / noise);
  return std::isnan(db) ? -kMostDecibels
                        : std::clamp(db, -kMostDecibels, kMostDecibels);
}

void LogitsComparer::Add(std::span<const float> reference,
                         std::span<const float> x) {
  HX_CHECK(!x.empty());
  Sqnr sqnr;
  sqnr.Add(reference, x);
  total_.Add(sqnr);
  const bool flip = IndexOfLargest(reference) != IndexOfLargest(x);
  out_.positions.push_back({.sqnr_db = sqnr.Decibels(),
                            .kld = KlDivergence(reference, x),
                            .top1_flip = flip});
  const size_t step = std::max<size_t>(1, x.size() / kScatterPerRow);
  // Another part of the vocabulary in each row.
  const size_t first = out_.positions.size() % step;
  for (size_t i = first; i < x.size() && out_.scatter.size() < kScatterPairs;
       i += step)
    out_.scatter.push_back({reference[i], x[i]});
}

StageComparison LogitsComparer::Finish() && {
  HX_CHECK(!out_.positions.empty());
  out_.sqnr_db = total_.Decibels();
  for (const PositionComparison& position : out_.positions) {
    out_.mean_kld += position.kld;
    out_.flips += position.top1_flip ? 1 : 0;
  }
  out_.mean_kld /= static_cast<double>(out_.positions.size());
  return std::move(out_);
}

}  // namespace hexllm
