// Scales and codes that are chosen by a layer's inputs, against brute force and
// against GPTQ as its paper has it.
#include "quant/weight_search.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>

#include "ir/encode.h"
#include "quant/block_scales.h"
#include "quant/cholesky.h"
#include "quant/input_moments.h"
#include "quant/product_testing.h"
#include "quant/vectors_testing.h"
#include "tests/support/temp_dir.h"

namespace hexllm::quant {
namespace {

std::vector<float> Normals(size_t count, uint32_t seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0, 1);
  std::vector<float> values(count);
  for (float& value : values) value = normal(random);
  return values;
}

// T rows of K inputs that have something to do with one another; one is loud.
std::vector<float> Inputs(size_t tokens, size_t width) {
  std::vector<float> rows = Normals(tokens * width, 5);
  for (size_t t = 0; t < tokens; ++t) {
    for (size_t k = 1; k < width; ++k)
      rows[t * width + k] += 0.8f * rows[t * width + k - 1];
    rows[t * width + width / 3] *= 9;
  }
  return rows;
}

class FixedInputs final : public LayerInputs {
 public:
  FixedInputs(size_t tokens, size_t width) : rows(Inputs(tokens, width)) {}
  const std::string& InputOf(const std::string&) const override { return name; }
  Result<InputSample> Sample(const std::string&) override {
    ++asked;
    if (!moments.empty()) return InputSample{.moments = moments};
    return InputSample{.rows = rows};
  }
  Result<Digest> Key() override { return DigestOf(AsBytes(name)); }

  std::string name = "x";
  std::vector<float> rows;
  std::vector<float> moments;  // given in place of rows, unless empty
  int asked = 0;
};

// A weight [N,K] whose layer reads T rows.
struct Problem {
  Problem(size_t n, size_t k, size_t t)
      : rows(n), width(k), inputs(t, k), values(Normals(n * k, 7)) {
    weight = Owned({static_cast<int64_t>(n), static_cast<int64_t>(k)}, values);
  }

  WeightSearch::Target Target() const { return {weight, layer, settings}; }
  ir::Encoding MinMax(std::string_view scheme) {
    settings.scheme = FindScheme(scheme);
    return Encode(weight, settings);
  }
  ir::Encoding Scales(const ir::Encoding& given) {
    auto found = WeightSearch(Context()).Scales(Target(), given);
    EXPECT_TRUE(found.ok());
    return found.ok() ? *found : given;
  }
  std::vector<int> Codes(const ir::Encoding& encoding) {
    auto found = WeightSearch(Context()).Codes(Target(), encoding);
    std::vector<int> codes;
    for (const std::byte code : found->bytes)
      codes.push_back(static_cast<int8_t>(code));
    return codes;
  }
  SearchContext Context() {
    return {.inputs = inputs,
            .product = MultiplyPlainly,
            .pool = pool,
            .progress = progress,
            .cache = cache};
  }

  // Of row `row`'s outputs, where `codes` stand for its weights.
  double OutputError(size_t row, std::span<const float> rounded) const {
    double sum = 0;
    for (size_t t = 0; t < inputs.rows.size() / width; ++t) {
      double y = 0;
      for (size_t k = 0; k < width; ++k) {
        y += static_cast<double>(inputs.rows[t * width + k]) *
             (static_cast<double>(rounded[k]) -
              static_cast<double>(values[row * width + k]));
      }
      sum += y * y;
    }
    return sum;
  }
  std::vector<double> OutputErrors(const ir::Encoding& encoding) const {
    const std::vector<float> all = Rounded(encoding, weight.type.shape, values);
    std::vector<double> errors;
    for (size_t r = 0; r < rows; ++r) {
      errors.push_back(
          OutputError(r, std::span(all).subspan(r * width, width)));
    }
    return errors;
  }

  size_t rows, width;
  FixedInputs inputs;
  std::vector<float> values;
  ir::Constant weight;
  LayerSettings settings = SettingsOf("16a4w");
  std::string layer = "layer";
  ThreadPool pool{2};
  NullProgress progress;
  const FileCache* cache = nullptr;
};

double Sum(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0);
}

// With fewer tokens than inputs errors go by X, with more by X^T X.
TEST(SeqMse, FindsTheBestOfAllCandidates) {
  for (const size_t tokens : {size_t{5}, size_t{40}}) {
    for (const char* scheme : {"16a4w", "16a8w"}) {
      Problem problem(6, 18, tokens);
      const ir::Encoding given = problem.MinMax(scheme);
      problem.settings.seq_mse_candidates = 12;
      ir::Encoding best = given;
      std::vector<double> least(problem.rows,
                                std::numeric_limits<double>::infinity());
      for (int c = 0; c < 12; ++c) {
        ir::Encoding tried = given;
        for (float& scale : tried.scales)
          scale *= 1 - 0.8f * static_cast<float>(c) / 12;
        const std::vector<double> errors = problem.OutputErrors(tried);
        for (size_t r = 0; r < problem.rows; ++r) {
          if (errors[r] >= least[r]) continue;
          least[r] = errors[r];
          best.scales[r] = tried.scales[r];
        }
      }
      EXPECT_EQ(problem.Scales(given), best) << scheme << ", " << tokens;
      // With 8 bits there is little to clip.
      if (given.bits == 4) {
        EXPECT_LT(Sum(least), Sum(problem.OutputErrors(given)));
      }
    }
  }
}

TEST(SeqMse, OneScaleForATensorIsTheBestForAllRows) {
  Problem problem(6, 18, 5);
  problem.settings.granularity = WeightGranularity::kPerTensor;
  const ir::Encoding given = problem.MinMax("16a4w");
  ASSERT_EQ(given.scales.size(), 1u);
  std::vector<double> errors;
  std::vector<float> scales;
  for (int c = 0; c < 50; ++c) {
    ir::Encoding tried = given;
    tried.scales[0] *= 1 - 0.8f * static_cast<float>(c) / 50;
    scales.push_back(tried.scales[0]);
    errors.push_back(Sum(problem.OutputErrors(tried)));
  }
  const auto best = std::ranges::min_element(errors) - errors.begin();
  EXPECT_GT(best, 0);
  EXPECT_EQ(problem.Scales(given).scales[0], scales[static_cast<size_t>(best)]);
}

// With one block there is nothing beside it: all scales and factors are tried.
TEST(SeqMse, FindsTheBestFactorOfABlock) {
  Problem problem(7, 16, 30);
  problem.settings.block = 16;
  const ir::Encoding given = problem.MinMax("16a4w_block");
  std::vector<double> least = problem.OutputErrors(given);
  for (int s = 0; s < 4; ++s) {
    for (int factor = 1; factor <= kBlockSteps; ++factor) {
      ir::Encoding tried = given;
      for (float& scale : tried.scales)
        scale *= 1 - 0.5f * static_cast<float>(s) / 4;
      std::ranges::fill(tried.block_scales, static_cast<uint8_t>(factor));
      const std::vector<double> errors = problem.OutputErrors(tried);
      for (size_t r = 0; r < problem.rows; ++r)
        least[r] = std::min(least[r], errors[r]);
    }
  }
  const std::vector<double> found = problem.OutputErrors(problem.Scales(given));
  for (size_t r = 0; r < problem.rows; ++r)
    EXPECT_NEAR(found[r], least[r], 1e-4 * least[r]) << r;
}

TEST(SeqMse, BlocksNeverGetWorseAndMostlyBetter) {
  for (const int block : {16, 32, 64}) {
    Problem problem(70, 192, 24);  // more than a tile, more than a strip
    problem.settings.block = block;
    const ir::Encoding given = problem.MinMax("16a4w_block");
    const std::vector<double> before = problem.OutputErrors(given);
    const std::vector<double> after =
        problem.OutputErrors(problem.Scales(given));
    for (size_t r = 0; r < problem.rows; ++r)
      EXPECT_LE(after[r], before[r] * 1.0001) << block << ", " << r;
    EXPECT_LT(Sum(after), 0.5 * Sum(before)) << block;
  }
}

// --- GPTQ

using Matrix = std::vector<std::vector<double>>;

Matrix Inverse(Matrix a) {
  const size_t n = a.size();
  Matrix out(n, std::vector<double>(n));
  for (size_t i = 0; i < n; ++i) out[i][i] = 1;
  for (size_t p = 0; p < n; ++p) {  // positive definite: no pivoting
    const double pivot = a[p][p];
    for (size_t j = 0; j < n; ++j) {
      a[p][j] /= pivot;
      out[p][j] /= pivot;
    }
    for (size_t i = 0; i < n; ++i) {
      const double factor = a[i][p];
      if (i == p || factor == 0) continue;
      for (size_t j = 0; j < n; ++j) {
        a[i][j] -= factor * a[p][j];
        out[i][j] -= factor * out[p][j];
      }
    }
  }
  return out;
}

// The paper's algorithm for one row, step by step: the inverse of H is brought
// up to date after each weight, in the order of falling diagonals.
std::vector<int> PlainGptq(const Problem& problem, size_t row,
                           const std::vector<float>& scales, int most) {
  const size_t n = problem.width;
  const size_t tokens = problem.inputs.rows.size() / n;
  Matrix h(n, std::vector<double>(n));
  for (size_t i = 0; i < n; ++i) {
    for (size_t j = 0; j < n; ++j) {
      for (size_t t = 0; t < tokens; ++t) {
        h[i][j] += static_cast<double>(problem.inputs.rows[t * n + i]) *
                   static_cast<double>(problem.inputs.rows[t * n + j]);
      }
    }
  }
  double mean = 0;
  for (size_t i = 0; i < n; ++i) mean += h[i][i] / static_cast<double>(n);
  std::vector<size_t> order(n);
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::sort(order,
                    [&](size_t a, size_t b) { return h[a][a] > h[b][b]; });
  for (size_t i = 0; i < n; ++i)
    h[i][i] += problem.settings.gptq_damping * mean;
  Matrix inverse = Inverse(h);
  std::vector<double> w(
      problem.values.begin() + static_cast<std::ptrdiff_t>(row * n),
      problem.values.begin() + static_cast<std::ptrdiff_t>((row + 1) * n));
  std::vector<int> codes(n);
  std::vector<bool> done(n);
  for (const size_t q : order) {
    const auto scale = static_cast<double>(scales[q]);
    codes[q] = static_cast<int>(std::clamp(std::rint(w[q] / scale),
                                           static_cast<double>(-most),
                                           static_cast<double>(most)));
    const double error = (w[q] - codes[q] * scale) / inverse[q][q];
    done[q] = true;
    for (size_t j = 0; j < n; ++j)
      if (!done[j]) w[j] -= error * inverse[q][j];
    const std::vector<double> gone = inverse[q];
    for (size_t i = 0; i < n; ++i) {
      for (size_t j = 0; j < n; ++j)
        if (!done[i] && !done[j]) inverse[i][j] -= gone[i] * gone[j] / gone[q];
    }
  }
  return codes;
}

std::vector<float> RowScales(const ir::Encoding& encoding, size_t row,
                             size_t width) {
  std::vector<float> scales(width,
                            encoding.scales[encoding.axis < 0 ? 0 : row]);
  const auto block = static_cast<size_t>(encoding.block);
  for (size_t k = 0; block > 0 && k < width; ++k)
    scales[k] *= encoding.block_scales[row * (width / block) + k / block];
  return scales;
}

// Wider than a strip, so that all ways of handing errors on are gone.
TEST(Gptq, GivesTheCodesOfThePaper) {
  for (const char* scheme : {"16a4w", "16a8w", "16a4w_block"}) {
    Problem problem(2, kFactorBlock + 32, 200);
    const ir::Encoding encoding = problem.MinMax(scheme);
    if (encoding.bits == 8) problem.settings.gptq_damping = 0.2;
    const std::vector<int> codes = problem.Codes(encoding);
    const std::vector<float> nearest =
        Rounded(encoding, problem.weight.type.shape, problem.values);
    for (size_t r = 0; r < problem.rows; ++r) {
      const std::vector<float> scales = RowScales(encoding, r, problem.width);
      const std::vector<int> expected =
          PlainGptq(problem, r, scales, ir::CodesOf(encoding).most);
      std::vector<float> rounded;
      int other = 0;
      for (size_t k = 0; k < problem.width; ++k) {
        const int code = codes[r * problem.width + k];
        other += code != expected[k];
        rounded.push_back(static_cast<float>(code) * scales[k]);
      }
      EXPECT_EQ(other, 0) << scheme << ", row " << r;
      EXPECT_LT(
          problem.OutputError(r, rounded),
          0.5 * problem.OutputError(r, std::span(nearest).subspan(
                                           r * problem.width, problem.width)));
    }
  }
}

// Of more tokens than are kept.
TEST(WeightSearch, SecondMomentsSayWhatRowsSay) {
  for (const char* scheme : {"16a4w", "16a4w_block"}) {
    Problem problem(2, 96, 200);
    const ir::Encoding start = problem.MinMax(scheme);
    const ir::Encoding scales = problem.Scales(start);
    const std::vector<int> codes = problem.Codes(start);
    const auto moments_of = [&](std::span<const size_t> ends) {
      std::vector<float> moments(96 * 96);
      size_t at = 0;
      for (const size_t end : ends) {
        AddSecondMoments(
            std::span(problem.inputs.rows).subspan(at * 96, (end - at) * 96),
            96, MultiplyPlainly, problem.pool, moments);
        at = end;
      }
      MirrorUpper(moments, 96);
      return moments;
    };
    problem.inputs.moments = moments_of(std::array<size_t, 1>{200});
    EXPECT_EQ(problem.Scales(start), scales) << scheme;
    EXPECT_EQ(problem.Codes(start), codes) << scheme;
    const std::vector<float> in_parts =
        moments_of(std::array<size_t, 3>{7, 64, 200});
    for (size_t i = 0; i < in_parts.size(); ++i)
      ASSERT_NEAR(in_parts[i], problem.inputs.moments[i], 1e-2) << i;
  }
}

TEST(Gptq, TakesFewTokensAndInputsThatAreNothing) {
  Problem problem(2, 40, 3);
  for (size_t i = 4; i < problem.inputs.rows.size(); i += 40)
    problem.inputs.rows[i] = 0;
  const ir::Encoding encoding = problem.MinMax("16a4w");
  const std::vector<int> codes = problem.Codes(encoding);
  EXPECT_EQ(codes[4], std::lrint(problem.values[4] / encoding.scales[0]));
  std::ranges::fill(problem.inputs.rows, 0.0f);
  std::vector<int32_t> nearest(40);
  ir::EncodeRow(encoding, 1, std::span(problem.values).subspan(40), nearest);
  const std::vector<int> unweighed = problem.Codes(encoding);
  EXPECT_TRUE(
      std::equal(nearest.begin(), nearest.end(), unweighed.begin() + 40));
}

// --- Both

struct Found {
  ir::Encoding encoding;
  std::vector<int> codes;
  bool operator==(const Found&) const = default;
};

Found FindAll(Problem& problem, const char* scheme) {
  Found found;
  found.encoding = problem.Scales(problem.MinMax(scheme));
  found.codes = problem.Codes(found.encoding);
  return found;
}

TEST(WeightSearch, ThreadsChangeNothing) {
  for (const char* scheme : {"16a4w", "16a4w_block"}) {
    Problem problem(150, 160, 30);
    const Found expected = FindAll(problem, scheme);
    ThreadPool one(1);
    ThreadPool three(3);
    for (ThreadPool* pool : {&one, &three}) {
      SearchContext context = {.inputs = problem.inputs,
                               .product = MultiplyPlainly,
                               .pool = *pool,
                               .progress = problem.progress};
      WeightSearch search(context);
      Found found;
      found.encoding = *search.Scales(problem.Target(), problem.MinMax(scheme));
      const auto codes = search.Codes(problem.Target(), found.encoding);
      for (const std::byte code : codes->bytes)
        found.codes.push_back(static_cast<int8_t>(code));
      EXPECT_TRUE(found == expected) << scheme << ", " << pool->threads();
    }
  }
}

TEST(WeightSearch, ACacheHasWhatWasFound) {
  const testing::TempDir dir;
  auto cache = FileCache::Open(dir.File("cache"));
  ASSERT_TRUE(cache.ok());
  Problem problem(5, 64, 12);
  const Found expected = FindAll(problem, "16a4w_block");
  problem.cache = &*cache;
  EXPECT_TRUE(FindAll(problem, "16a4w_block") == expected);
  problem.inputs.asked = 0;
  EXPECT_TRUE(FindAll(problem, "16a4w_block") == expected);
  EXPECT_EQ(problem.inputs.asked, 0);
  // Other inputs, candidates, weights: nothing that was kept.
  problem.inputs.name = "y";
  FindAll(problem, "16a4w_block");
  EXPECT_EQ(problem.inputs.asked, 2);
  problem.settings.seq_mse_candidates = 9;
  problem.Scales(problem.MinMax("16a4w_block"));
  EXPECT_EQ(problem.inputs.asked, 3);
  problem.values[3] += 0.01f;
  problem.weight = Owned({5, 64}, problem.values);
  FindAll(problem, "16a4w_block");
  EXPECT_EQ(problem.inputs.asked, 5);
}

}  // namespace
}  // namespace hexllm::quant
