#include "base/thread_pool.h"

#include <gtest/gtest.h>
#include <pthread.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <mutex>
#include <numeric>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "base/check.h"

namespace hexllm {
namespace {

using Parts = std::set<std::pair<int64_t, int64_t>>;

Parts PartsOf(ThreadPool& pool, int64_t count, int64_t grain) {
  Parts parts;
  std::mutex mutex;
  pool.ParallelFor(count, grain, [&](int64_t begin, int64_t end) {
    const std::lock_guard lock(mutex);
    parts.emplace(begin, end);
  });
  return parts;
}

TEST(ThreadPool, SplitsIntoContiguousPartsOfWholeGrains) {
  ThreadPool pool(4);
  EXPECT_EQ(pool.threads(), 4);
  EXPECT_EQ(PartsOf(pool, 100, 1),
            (Parts{{0, 25}, {25, 50}, {50, 75}, {75, 100}}));
  EXPECT_EQ(PartsOf(pool, 100, 16),
            (Parts{{0, 32}, {32, 64}, {64, 96}, {96, 100}}));
  EXPECT_EQ(PartsOf(pool, 5, 4), (Parts{{0, 4}, {4, 5}}));
  EXPECT_EQ(PartsOf(pool, 3, 8), (Parts{{0, 3}}));
  EXPECT_EQ(PartsOf(pool, 0, 1), Parts{});
  EXPECT_EQ(PartsOf(pool, -1, 1), Parts{});
}

TEST(ThreadPool, CoversEveryItemOnce) {
  for (const int threads : {1, 2, 3, 7}) {
    ThreadPool pool(threads);
    for (const int64_t count : {1, 2, 6, 7, 8, 63, 64, 65, 1000}) {
      for (const int64_t grain : {1, 3, 64}) {
        std::vector<std::atomic<int>> seen(static_cast<size_t>(count));
        pool.ParallelFor(count, grain, [&](int64_t begin, int64_t end) {
          for (int64_t i = begin; i < end; ++i) {
            seen[static_cast<size_t>(i)].fetch_add(1);
          }
        });
        for (const auto& n : seen) ASSERT_EQ(n.load(), 1);
      }
    }
  }
}

TEST(ThreadPool, SeesTheWritesOfTheBodies) {
  ThreadPool pool(4);
  std::vector<int64_t> values(64);
  for (int64_t round = 0; round < 2000; ++round) {
    pool.ParallelFor(64, 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        values[static_cast<size_t>(i)] += i;
      }
    });
  }
  EXPECT_EQ(std::accumulate(values.begin(), values.end(), int64_t{0}),
            2000 * 63 * 64 / 2);
}

TEST(ThreadPool, WakesWorkersThatSleep) {
  ThreadPool pool(3);
  for (int round = 0; round < 3; ++round) {
    std::atomic<int64_t> sum = 0;
    pool.ParallelFor(3, 1, [&](int64_t begin, int64_t) { sum += begin + 1; });
    EXPECT_EQ(sum, 6);
    // Far longer than the workers spin.
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
}

TEST(ThreadPool, RunsOnTheCallerWhenAlone) {
  ThreadPool pool(1);
  const auto caller = std::this_thread::get_id();
  std::thread::id runner;
  pool.ParallelFor(
      10, 1, [&](int64_t, int64_t) { runner = std::this_thread::get_id(); });
  EXPECT_EQ(runner, caller);
}

TEST(ThreadPool, StopsWithoutEverRunning) {
  for (int i = 0; i < 50; ++i) ThreadPool pool(4);
}

// Makes every new thread fail: no machine has room for this stack. Exits with
// the number of threads that a pool of four then has.
[[noreturn]] void CountThreadsWithoutRoom() {
  pthread_attr_t attributes;
  HX_CHECK(::pthread_attr_init(&attributes) == 0);
  HX_CHECK(::pthread_attr_setstacksize(&attributes, size_t{1} << 60) == 0);
  HX_CHECK(::pthread_setattr_default_np(&attributes) == 0);
  ThreadPool pool(4);
  int64_t items = 0;
  pool.ParallelFor(100, 1,
                   [&](int64_t begin, int64_t end) { items += end - begin; });
  HX_CHECK(items == 100);
  std::_Exit(pool.threads());
}

TEST(ThreadPool, WorksWithTheThreadsThatTheSystemGrants) {
  EXPECT_EXIT(CountThreadsWithoutRoom(), ::testing::ExitedWithCode(1), "");
}

TEST(ThreadPool, ChecksTheNumberOfThreads) {
  EXPECT_EXIT(ThreadPool(0), ::testing::ExitedWithCode(70), "");
}

}  // namespace
}  // namespace hexllm
