// How far one stage's logits are from another's. Used by cli/ (eval --sqnr) and
// the certificate.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace hexllm {

// Energies of a reference and of what differs from it.
struct Sqnr {
  double signal = 0;
  double noise = 0;
  void Add(std::span<const float> reference, std::span<const float> x);
  void Add(const Sqnr& other);
  // 10 log10(signal / noise), within +-kMostDecibels.
  double Decibels() const;
};
inline constexpr double kMostDecibels = 200;

// The logits of one position against the reference's.
struct PositionComparison {
  double sqnr_db = 0;
  double kld = 0;  // KL(softmax(reference) || softmax(x)), nats
  bool top1_flip = false;
};

struct LogitPair {
  float reference = 0;
  float x = 0;
};

// One inner value of the graphs, over all positions.
struct ValueComparison {
  std::string name;
  double sqnr_db = 0;
};

struct StageComparison {
  std::string stage;        // of x
  std::string reference;    // "fp"
  std::string recipe = {};  // of x
  std::vector<PositionComparison> positions = {};
  double sqnr_db = 0;   // over all positions and logits
  double mean_kld = 0;  // nats
  uint64_t flips = 0;   // positions whose likeliest token differs
  std::vector<LogitPair> scatter = {};       // a sample
  std::vector<ValueComparison> layers = {};  // residual stream after each
};

// Compares row by row.
class LogitsComparer {
 public:
  // Rows are of one size, positions in order.
  void Add(std::span<const float> reference, std::span<const float> x);
  // All rows so far.
  StageComparison Finish() &&;

 private:
  Sqnr total_;
  StageComparison out_;
};

}  // namespace hexllm
