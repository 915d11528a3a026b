#include "runtime/kv_manager.h"

#include <gtest/gtest.h>

#include <cstring>
#include <new>
#include <random>
#include <string>
#include <tuple>
#include <vector>

namespace hexllm {
namespace {

class HeapAllocator final : public BufferAllocator {
 public:
  Result<Buffer> Allocate(size_t bytes) override {
    if (bytes > limit) return Error{ErrorCode::kEnvironment, "no memory"};
    ++buffers;
    auto* data = static_cast<std::byte*>(
        ::operator new (bytes + 1, std::align_val_t{kBufferAlignment}));
    std::memset(data, 0, bytes);
    return Buffer(data, bytes, [](std::byte* memory, size_t) {
      ::operator delete (memory, std::align_val_t{kBufferAlignment});
    });
  }
  size_t limit = SIZE_MAX;
  int buffers = 0;
};

// The content of one cache tensor as a list of columns for each outer row.
class NaiveTensor {
 public:
  explicit NaiveTensor(KvTensorShape shape)
      : shape_(shape), rows_(shape.outer) {}

  // A step's output of T columns with fresh random content.
  std::vector<std::byte> MakeStep(uint32_t step_tokens, std::mt19937& random) {
    std::vector<std::byte> step(shape_.outer * step_tokens *
                                shape_.column_bytes);
    for (std::byte& byte : step) byte = static_cast<std::byte>(random());
    return step;
  }
  void Append(std::span<const std::byte> step, uint32_t step_tokens,
              std::span<const uint32_t> columns) {
    for (size_t row = 0; row < shape_.outer; ++row) {
      for (const uint32_t column : columns) {
        const auto bytes =
            step.subspan((row * step_tokens + column) * shape_.column_bytes,
                         shape_.column_bytes);
        rows_[row].emplace_back(bytes.begin(), bytes.end());
      }
    }
  }
  void Truncate(size_t tokens) {
    for (auto& row : rows_) row.resize(tokens);
  }
  // Fails the test unless `memory`, with P columns, has our columns from column
  // `first` on.
  void Expect(std::span<const std::byte> memory, size_t past_columns,
              size_t first) const {
    ASSERT_EQ(memory.size(), shape_.outer * past_columns * shape_.column_bytes);
    for (size_t row = 0; row < rows_.size(); ++row) {
      const size_t stored = std::min(rows_[row].size(), past_columns);
      ASSERT_LE(first + stored, past_columns);
      for (size_t c = 0; c < stored; ++c) {
        const size_t column = row * past_columns + first + c;
        ASSERT_EQ(0, std::memcmp(memory.data() + column * shape_.column_bytes,
                                 rows_[row][c].data(), shape_.column_bytes))
            << "row " << row << " column " << c << " of " << past_columns;
      }
    }
  }

 private:
  KvTensorShape shape_;
  std::vector<std::vector<std::vector<std::byte>>> rows_;
};

KvManager MakeManager(HeapAllocator& allocator, const KvGeometry& geometry,
                      KvUpdate update = KvUpdate::kSmartMask) {
  return std::move(KvManager::Create(allocator, geometry, update)).value();
}

TEST(KvManager, StartsEmptyAndZeroed) {
  HeapAllocator allocator;
  KvManager kv = MakeManager(
      allocator,
      {.k = {{6, 4}, {2, 1}}, .v = {{2, 12}, {1, 2}}, .capacity = 7});
  EXPECT_EQ(kv.tokens(), 0U);
  EXPECT_EQ(kv.capacity(), 7U);
  EXPECT_EQ(kv.past_columns(), 7U);
  EXPECT_EQ(allocator.buffers, 4);
  EXPECT_EQ(kv.K(0, 7).size(), 6U * 7 * 4);
  EXPECT_EQ(kv.V(1, 5).size(), 1U * 5 * 2);
  EXPECT_EQ(kv.K(0, 7).data(), kv.K(0, 3).data());
}

TEST(KvManager, ReportsSizesThatOverflow) {
  HeapAllocator allocator;
  const auto result = KvManager::Create(
      allocator,
      {.k = {{1ULL << 40, 1ULL << 30}}, .v = {{1, 1}}, .capacity = 8});
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().code, ErrorCode::kBadInput);
}

TEST(KvManager, PassesOnTheAllocatorsError) {
  HeapAllocator allocator;
  allocator.limit = 100;
  const auto result = KvManager::Create(
      allocator, {.k = {{4, 4}}, .v = {{4, 4}}, .capacity = 8});
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().code, ErrorCode::kEnvironment);
}

// The header's drawing: columns 1 and 3 of a step of 4.
TEST(KvManager, CommitWritesTheAcceptedColumnsAlone) {
  HeapAllocator allocator;
  KvManager kv =
      MakeManager(allocator, {.k = {{2, 1}}, .v = {{1, 2}}, .capacity = 6});
  const std::string first = "abcABC";  // two rows of three
  const std::string first_v = "aAbBcC";
  StepColumns step;
  step.k = {std::as_bytes(std::span(first))};
  step.v = {std::as_bytes(std::span(first_v))};
  step.step_tokens = 3;
  kv.Commit(step, std::vector<uint32_t>{0, 1, 2});
  const std::string second = "wxyzWXYZ";
  const std::string second_v = "wWxXyYzZ";
  step.k = {std::as_bytes(std::span(second))};
  step.v = {std::as_bytes(std::span(second_v))};
  step.step_tokens = 4;
  kv.Commit(step, std::vector<uint32_t>{1, 3});
  EXPECT_EQ(kv.tokens(), 5U);
  EXPECT_EQ(AsText(kv.K(0, 6)), std::string_view("abcxz\0ABCXZ\0", 12));
  EXPECT_EQ(AsText(kv.V(0, 6)), std::string_view("aAbBcCxXzZ\0\0", 12));
}

// The same step, and the header's other drawing.
TEST(KvManager, ShiftPointerMovesTheWindow) {
  HeapAllocator allocator;
  KvManager kv =
      MakeManager(allocator, {.k = {{2, 1}}, .v = {{2, 1}}, .capacity = 6},
                  KvUpdate::kShiftPointer);
  const std::byte* start = kv.K(0, 6).data();
  const std::string first = "abcABC";
  StepColumns step;
  step.k = step.v = {std::as_bytes(std::span(first))};
  step.step_tokens = 3;
  kv.Commit(step, std::vector<uint32_t>{0, 1, 2});
  EXPECT_EQ(kv.K(0, 6).data(), start + 3);
  EXPECT_EQ(kv.first_column(), 3U);
  EXPECT_EQ(AsText(kv.K(0, 6)), std::string_view("\0\0\0abc\0\0\0ABC", 12));
  const std::string second = "wxyzWXYZ";
  step.k = step.v = {std::as_bytes(std::span(second))};
  step.step_tokens = 4;
  kv.Commit(step, std::vector<uint32_t>{1, 3});
  EXPECT_EQ(kv.K(0, 6).data(), start + 5);
  EXPECT_EQ(kv.first_column(), 1U);
  EXPECT_EQ(AsText(kv.V(0, 6)), std::string_view("\0abcxz\0ABCXZ", 12));
}

TEST(KvManager, RearrangesInPlaceBothWays) {
  HeapAllocator allocator;
  KvManager kv =
      MakeManager(allocator, {.k = {{3, 1}}, .v = {{1, 3}}, .capacity = 7});
  kv.Arrange(4);
  const std::string k = "abcABC012";
  const std::string v = "aA0bB1cC2";
  StepColumns step;
  step.k = {std::as_bytes(std::span(k))};
  step.v = {std::as_bytes(std::span(v))};
  step.step_tokens = 3;
  kv.Commit(step, std::vector<uint32_t>{0, 1, 2});
  const auto row = [&kv](uint32_t past, size_t r) {
    return AsText(kv.K(0, past)).substr(r * past, 3);
  };
  for (const uint32_t past : {4U, 7U, 3U, 5U, 7U, 4U}) {
    kv.Arrange(past);
    EXPECT_EQ(row(past, 0), "abc");
    EXPECT_EQ(row(past, 1), "ABC");
    EXPECT_EQ(row(past, 2), "012");
    EXPECT_EQ(AsText(kv.V(0, past)).substr(0, 9), "aA0bB1cC2");
  }
}

TEST(KvManager, ResetZeroesAndRewindDoesNot) {
  HeapAllocator allocator;
  KvManager kv =
      MakeManager(allocator, {.k = {{1, 1}}, .v = {{1, 1}}, .capacity = 3});
  const std::string data = "ab";
  StepColumns step;
  step.k = {std::as_bytes(std::span(data))};
  step.v = step.k;
  step.step_tokens = 2;
  kv.Commit(step, std::vector<uint32_t>{0, 1});
  kv.Rewind(1);
  EXPECT_EQ(kv.tokens(), 1U);
  EXPECT_EQ(AsText(kv.K(0, 3)), std::string_view("ab\0", 3));
  kv.Reset();
  EXPECT_EQ(kv.tokens(), 0U);
  EXPECT_EQ(AsText(kv.K(0, 3)), std::string_view("\0\0\0", 3));
}

TEST(KvManager, DropsColumnsBeyondTheCapacity) {
  HeapAllocator allocator;
  KvManager kv =
      MakeManager(allocator, {.k = {{2, 1}}, .v = {{1, 1}}, .capacity = 3});
  const std::string k = "abcdABCD";
  const std::string v = "abcd";
  StepColumns step;
  step.k = {std::as_bytes(std::span(k))};
  step.v = {std::as_bytes(std::span(v))};
  step.step_tokens = 4;
  kv.Commit(step, std::vector<uint32_t>{0, 1, 2, 3});
  EXPECT_EQ(kv.tokens(), 4U);
  EXPECT_EQ(AsText(kv.K(0, 3)), "abcABC");
  EXPECT_EQ(AsText(kv.V(0, 3)), "abc");
}

// Random steps, rearrangements and rewinds against lists of columns.
class KvManagerProperty
    : public ::testing::TestWithParam<std::tuple<uint32_t, KvUpdate>> {};

TEST_P(KvManagerProperty, MatchesANaiveModel) {
  std::mt19937 random(std::get<0>(GetParam()));
  const auto pick = [&random](uint32_t low, uint32_t high) {
    return low + static_cast<uint32_t>(random() % (high - low + 1));
  };
  const uint32_t context = pick(2, 40);
  KvGeometry geometry{.k = {}, .v = {}, .capacity = context - 1};
  std::vector<NaiveTensor> naive_k, naive_v;
  for (uint32_t l = 0; l < 2; ++l) {
    const uint32_t element = 1U << pick(0, 2);
    geometry.k.push_back({pick(1, 6), element});
    geometry.v.push_back({pick(1, 3), pick(1, 5) * element});
    naive_k.emplace_back(geometry.k[l]);
    naive_v.emplace_back(geometry.v[l]);
  }
  HeapAllocator allocator;
  KvManager kv = MakeManager(allocator, geometry, std::get<1>(GetParam()));
  for (int round = 0; round < 60; ++round) {
    const uint32_t step_tokens = pick(1, context - kv.tokens());
    kv.Arrange(context - step_tokens);
    StepColumns step;
    step.step_tokens = step_tokens;
    std::vector<std::vector<std::byte>> outputs;
    for (uint32_t l = 0; l < 2; ++l) {
      outputs.push_back(naive_k[l].MakeStep(step_tokens, random));
      outputs.push_back(naive_v[l].MakeStep(step_tokens, random));
    }
    std::vector<uint32_t> columns;
    for (uint32_t c = 0; c < step_tokens; ++c) {
      if (random() % 3 != 0) columns.push_back(c);
    }
    for (uint32_t l = 0; l < 2; ++l) {
      step.k.push_back(outputs[2 * l]);
      step.v.push_back(outputs[2 * l + 1]);
      naive_k[l].Append(step.k[l], step_tokens, columns);
      naive_v[l].Append(step.v[l], step_tokens, columns);
    }
    kv.Commit(step, columns);
    if (kv.tokens() == context || random() % 4 == 0) {
      const uint32_t keep = pick(0, kv.tokens() - (kv.tokens() > 0 ? 1 : 0));
      kv.Rewind(keep);
      for (uint32_t l = 0; l < 2; ++l) {
        naive_k[l].Truncate(keep);
        naive_v[l].Truncate(keep);
      }
    }
    for (uint32_t l = 0; l < 2; ++l) {
      naive_k[l].Expect(kv.K(l, kv.past_columns()), kv.past_columns(),
                        kv.first_column());
      naive_v[l].Expect(kv.V(l, kv.past_columns()), kv.past_columns(),
                        kv.first_column());
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Seeds, KvManagerProperty,
    ::testing::Combine(::testing::Range(1U, 31U),
                       ::testing::Values(KvUpdate::kSmartMask,
                                         KvUpdate::kShiftPointer)));

}  // namespace
}  // namespace hexllm
