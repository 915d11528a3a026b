#include "quant/channel_factors.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <utility>

#include "base/check.h"
#include "ir/float_constant.h"
#include "quant/input_moments.h"
#include "quant/range.h"
#include "quant/rounding_error.h"
#include "quant/weight_encoding.h"

namespace hexllm::quant {
namespace {

constexpr int64_t kMostRows = 512;  // of a weight that is tried
constexpr int64_t kTileRows = 32;
constexpr int kExponents = 10;

double Square(float x) {
  return static_cast<double>(x) * static_cast<double>(x);
}

// exp(logs), 1 where a log is not finite, of geometric mean 1 and in bounds.
std::vector<float> FactorsOf(std::span<const double> logs) {
  double sum = 0;
  int count = 0;
  for (const double log : logs) {
    if (!std::isfinite(log)) continue;
    sum += log;
    ++count;
  }
  const double mean = count > 0 ? sum / count : 0;
  const double bound = std::log(static_cast<double>(kMostFactor));
  std::vector<float> factors(logs.size(), 1.0f);
  for (size_t k = 0; k < logs.size(); ++k) {
    if (std::isfinite(logs[k]))
      factors[k] = static_cast<float>(
          std::exp(std::clamp(logs[k] - mean, -bound, bound)));
  }
  return factors;
}

std::vector<float> GreatestInputs(const FactorTask& task) {
  const auto least = task.ranges.least();
  const auto most = task.ranges.most();
  std::vector<float> greatest(least.size());
  for (size_t k = 0; k < greatest.size(); ++k)
    greatest[k] = std::max(-least[k], most[k]);
  task.ties.TakeGreatest(greatest);
  return greatest;
}

std::vector<float> GreatestWeights(const FactorTask& task) {
  std::vector<float> greatest(task.ranges.least().size());
  std::vector<float> row(greatest.size());
  for (const FactoredLinear& linear : task.linears) {
    for (int64_t i = 0; i < ir::NumRows(linear.weight); ++i) {
      ir::ReadRow(linear.weight, i, row);
      for (size_t k = 0; k < row.size(); ++k)
        greatest[k] = std::max(greatest[k], std::abs(row[k]));
    }
  }
  task.ties.TakeGreatest(greatest);
  return greatest;
}

// One linear of a search.
class TriedLinear {
 public:
  TriedLinear(const FactoredLinear& linear, const InputMoments& moments)
      : settings_(linear.settings),
        moments_(moments),
        weight_(SampleRows(linear.weight, kMostRows)),
        values_(ir::ReadAllRows(weight_)) {
    signal_ = Sum(
        [&](int64_t first, int64_t rows) { return Energy(Rows(first, rows)); });
    const auto width = static_cast<size_t>(ir::RowElems(weight_));
    columns_.resize(width);
    for (size_t i = 0; i < values_.size(); ++i)
      columns_[i % width] += Square(values_[i]);
  }

  // Errors of rounding it as it is.
  Status Check() const { return RoundedWeight(weight_, settings_).status(); }

  // Of each column the mean square, in units of its rows' greatest.
  void AddShares(std::span<double> squares) const {
    const size_t width = squares.size();
    const auto rows = static_cast<double>(values_.size() / width);
    for (size_t at = 0; at < values_.size(); at += width) {
      float greatest = 0;
      for (size_t k = 0; k < width; ++k)
        greatest = std::max(greatest, std::abs(values_[at + k]));
      if (greatest == 0) continue;
      for (size_t k = 0; k < width; ++k)
        squares[k] += Square(values_[at + k] / greatest) / rows;
    }
  }

  // Both errors, over what it gives.
  double Error(std::span<const float> factors, const FactorTask& task,
               double tokens) const {
    if (!(signal_ > 0)) return 0;
    const double noise = Sum([&](int64_t first, int64_t rows) {
      return RoundingEnergy(first, rows, factors);
    });
    return (noise + InputNoise(factors, task, tokens)) / signal_;
  }

 private:
  std::span<const float> Rows(int64_t first, int64_t rows) const {
    const int64_t width = ir::RowElems(weight_);
    return std::span(values_).subspan(static_cast<size_t>(first * width),
                                      static_cast<size_t>(rows * width));
  }

  // visit(first, rows) of all tiles, on all threads.
  template <typename Visit>
  double Sum(const Visit& visit) const {
    const int64_t rows = ir::NumRows(weight_);
    std::vector<double> sums(
        static_cast<size_t>((rows + kTileRows - 1) / kTileRows));
    moments_.context().pool.ParallelFor(
        std::ssize(sums), 1, [&](int64_t begin, int64_t end) {
          for (int64_t i = begin; i < end; ++i) {
            const int64_t first = i * kTileRows;
            sums[static_cast<size_t>(i)] =
                visit(first, std::min(kTileRows, rows - first));
          }
        });
    double sum = 0;
    for (const double part : sums) sum += part;
    return sum;
  }

  double Energy(std::span<const float> rows) const {
    double sum = 0;
    for (const double error : moments_.Errors(rows)) sum += error;
    return sum;
  }

  double RoundingEnergy(int64_t first, int64_t rows,
                        std::span<const float> factors) const {
    const std::span<const float> plain = Rows(first, rows);
    std::vector<float> values(plain.begin(), plain.end());
    const size_t width = factors.size();
    for (size_t at = 0; at < values.size(); at += width) {
      for (size_t k = 0; k < width; ++k) values[at + k] *= factors[k];
    }
    const auto rounded =
        RoundedWeight(ir::MakeFloatConstant(
                          weight_.name, {rows, std::ssize(factors)}, values),
                      settings_);
    if (!rounded.ok()) return std::numeric_limits<double>::infinity();
    values = ir::ReadAllRows(*rounded);
    for (size_t at = 0; at < values.size(); at += width) {
      for (size_t k = 0; k < width; ++k)
        values[at + k] = values[at + k] / factors[k] - plain[at + k];
    }
    return Energy(values);
  }

  double InputNoise(std::span<const float> factors, const FactorTask& task,
                    double tokens) const {
    if (settings_.scheme->activations != ActivationKind::kStatic) return 0;
    Range range;
    double weights = 0;
    for (size_t k = 0; k < factors.size(); ++k) {
      range.min = std::min(range.min, task.ranges.least()[k] / factors[k]);
      range.max = std::max(range.max, task.ranges.most()[k] / factors[k]);
      weights += columns_[k] * Square(factors[k]);
    }
    const float step =
        ActivationScale(range, {.bits = settings_.scheme->activation_bits,
                                .zero_point = settings_.symmetric_activations
                                                  ? ZeroPoint::kMiddle
                                                  : ZeroPoint::kFree});
    return tokens * task.ranges.MeanWeight() * Square(step) / 12 * weights;
  }

  const LayerSettings& settings_;
  const InputMoments& moments_;
  ir::Constant weight_;
  std::vector<float> values_;    // of weight_
  std::vector<double> columns_;  // [K], sums of squares
  double signal_ = 0;
};

// In steps of 1 / kExponents.
struct Exponents {
  int input = 0;
  int weight = 0;
  bool IsValid() const {
    return std::min(input, weight) >= 0 &&
           std::max(input, weight) <= kExponents;
  }
  auto operator<=>(const Exponents&) const = default;
};

constexpr Exponents kSteps[] = {{1, 0}, {0, 1}, {-1, 0}, {0, -1}};

std::vector<double> LogsOf(std::span<const float> values) {
  std::vector<double> logs;
  for (const float value : values)
    logs.push_back(std::log(static_cast<double>(value)));
  return logs;
}

class FactorSearch {
 public:
  FactorSearch(const FactorTask& task, const InputSample& sample,
               const SearchContext& context)
      : task_(task), sample_(sample), moments_(sample, Width(), context) {
    moments_.PrepareErrors();
    tokens_ = sample.rows.empty()
                  ? static_cast<double>(task.ranges.tokens())
                  : static_cast<double>(std::ssize(sample.rows) / Width());
    for (const FactoredLinear& linear : task.linears) {
      // One that stays as it is has no error.
      if (TakesCodes(linear.weight, linear.settings))
        linears_.emplace_back(linear, moments_);
    }
  }

  double Error(std::span<const float> factors) const {
    double sum = 0;
    for (const TriedLinear& linear : linears_)
      sum += linear.Error(factors, task_, tokens_);
    return sum;
  }

  Result<std::vector<float>> Best() {
    for (const TriedLinear& linear : linears_)
      HX_RETURN_IF_ERROR(linear.Check());
    inputs_ = LogsOf(RootMeanSquares());
    weights_ = LogsOf(WeightShares());
    Exponents best;
    double least = Error(FactorsAt(best));
    std::set<Exponents> tried = {best};
    for (bool moved = true; moved;) {
      moved = false;
      for (const Exponents& step : kSteps) {
        const Exponents next = {best.input + step.input,
                                best.weight + step.weight};
        if (!next.IsValid() || !tried.insert(next).second) continue;
        const double error = Error(FactorsAt(next));
        if (!(error < least)) continue;
        least = error;
        best = next;
        moved = true;
      }
    }
    if (best == Exponents()) return std::vector<float>();
    return FactorsAt(best);
  }

 private:
  int64_t Width() const { return std::ssize(task_.ranges.least()); }

  std::vector<float> FactorsAt(const Exponents& exponents) const {
    std::vector<double> logs(inputs_.size());
    for (size_t k = 0; k < logs.size(); ++k)
      logs[k] =
          (inputs_[k] * exponents.input - weights_[k] * exponents.weight) /
          kExponents;
    return FactorsOf(logs);
  }

  // Of each column the root mean square, in units of its rows' greatest.
  std::vector<float> WeightShares() const {
    std::vector<double> squares(static_cast<size_t>(Width()));
    for (const TriedLinear& linear : linears_) linear.AddShares(squares);
    std::vector<float> roots;
    for (const double square : squares)
      roots.push_back(static_cast<float>(std::sqrt(square)));
    task_.ties.TakeGreatest(roots);
    return roots;
  }

  std::vector<float> RootMeanSquares() const {
    const auto width = static_cast<size_t>(Width());
    std::vector<double> squares(width);
    for (size_t i = 0; i < sample_.rows.size(); ++i)
      squares[i % width] += Square(sample_.rows[i]);
    std::vector<float> roots(width);
    for (size_t k = 0; k < width; ++k) {
      if (sample_.rows.empty())
        squares[k] = static_cast<double>(sample_.moments[k * (width + 1)]);
      roots[k] = static_cast<float>(std::sqrt(squares[k]));
    }
    task_.ties.TakeGreatest(roots);
    return roots;
  }

  const FactorTask& task_;
  const InputSample sample_;
  InputMoments moments_;
  double tokens_ = 0;
  std::vector<TriedLinear> linears_;
  std::vector<double> inputs_, weights_;  // [K], logarithms of magnitudes
};

}  // namespace

void ChannelRanges::Add(std::span<const float> rows, int64_t width) {
  const auto count = static_cast<size_t>(width);
  if (tokens_ == 0) {
    least_.assign(rows.begin(), rows.begin() + width);
    most_ = least_;
  }
  HX_CHECK(least_.size() == count && rows.size() % count == 0);
  for (size_t at = 0; at < rows.size(); at += count) {
    double squares = 0;
    for (size_t k = 0; k < count; ++k) {
      const float x = rows[at + k];
      least_[k] = std::min(least_[k], x);
      most_[k] = std::max(most_[k], x);
      squares += Square(x);
    }
    is_finite_ = is_finite_ && std::isfinite(squares);
    if (squares > 0) weights_ += static_cast<double>(width) / squares;
    ++tokens_;
  }
}

double ChannelRanges::MeanWeight() const {
  return weights_ / static_cast<double>(tokens_);
}

void ChannelTies::TakeGreatest(std::span<float> values) const {
  const auto piece = static_cast<size_t>(size);
  const auto group = static_cast<size_t>(repeats * size);
  HX_CHECK(values.size() % group == 0);
  for (size_t at = 0; at < values.size(); at += group) {
    for (size_t d = 0; d < piece; ++d) {
      float greatest = values[at + d];
      for (size_t k = d; k < group; k += piece)
        greatest = std::max(greatest, values[at + k]);
      for (size_t k = d; k < group; k += piece) values[at + k] = greatest;
    }
  }
}

std::vector<float> FactorsByAlpha(const FactorTask& task, double alpha) {
  const std::vector<float> inputs = GreatestInputs(task);
  const std::vector<float> weights = GreatestWeights(task);
  std::vector<double> logs(inputs.size());
  for (size_t k = 0; k < logs.size(); ++k) {
    // Of 0 it is infinite, and both may be.
    const double input = std::log(static_cast<double>(inputs[k]));
    const double weight = std::log(static_cast<double>(weights[k]));
    logs[k] = std::isfinite(input) && std::isfinite(weight)
                  ? alpha * input - (1 - alpha) * weight
                  : std::numeric_limits<double>::infinity();
  }
  return FactorsOf(logs);
}

Result<std::vector<float>> SearchFactors(const FactorTask& task,
                                         const InputSample& sample,
                                         const SearchContext& context) {
  return FactorSearch(task, sample, context).Best();
}

double FactorError(const FactorTask& task, const InputSample& sample,
                   const SearchContext& context,
                   std::span<const float> factors) {
  return FactorSearch(task, sample, context).Error(factors);
}

}  // namespace hexllm::quant
