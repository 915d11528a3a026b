#include "base/thread_pool.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

#include "base/check.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace hexllm {
namespace {

// About 50 us at 3 GHz: longer than the gap between two operators, far shorter
// than a scheduler tick.
constexpr int kSpins = 4000;

void CpuRelax() {
#if defined(__x86_64__)
  _mm_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

}  // namespace

struct ThreadPool::Shared {
  // The current job; written by the caller before `generation` is advanced.
  Body body = nullptr;
  void* context = nullptr;
  int64_t count = 0;
  int64_t part = 0;  // items per thread
  std::atomic<uint64_t> generation{0};
  std::atomic<int> pending{0};
  std::atomic<bool> stop{false};
  std::mutex mutex;
  std::condition_variable wake;
  int sleepers = 0;  // guarded by mutex
  std::vector<std::thread> workers;

  void RunPart(int thread) {
    const int64_t begin = std::min(count, part * thread);
    const int64_t end = std::min(count, begin + part);
    if (begin < end) body(context, begin, end);
  }

  // Returns the next generation, or `seen` when the pool stops.
  uint64_t Await(uint64_t seen) {
    for (int i = 0; i < kSpins; ++i) {
      const uint64_t now = generation.load(std::memory_order_acquire);
      if (now != seen) return now;
      CpuRelax();
    }
    std::unique_lock lock(mutex);
    ++sleepers;
    wake.wait(lock, [&] {
      return generation.load(std::memory_order_acquire) != seen;
    });
    --sleepers;
    return generation.load(std::memory_order_acquire);
  }

  void Work(int thread) {
    uint64_t seen = 0;
    while (true) {
      seen = Await(seen);
      if (stop.load(std::memory_order_acquire)) return;
      RunPart(thread);
      pending.fetch_sub(1, std::memory_order_release);
    }
  }

  void Publish() {
    std::unique_lock lock(mutex);
    generation.fetch_add(1, std::memory_order_release);
    const bool notify = sleepers > 0;
    lock.unlock();
    if (notify) wake.notify_all();
  }
};

ThreadPool::ThreadPool(int threads)
    : threads_(threads), shared_(std::make_unique<Shared>()) {
  HX_CHECK(threads >= 1);
  for (int i = 1; i < threads; ++i) {
    try {
      shared_->workers.emplace_back(
          [shared = shared_.get(), i] { shared->Work(i); });
    } catch (const std::system_error&) {
      threads_ = i;
      return;
    }
  }
}

ThreadPool::~ThreadPool() {
  shared_->stop.store(true, std::memory_order_release);
  shared_->Publish();
  for (std::thread& worker : shared_->workers) worker.join();
}

void ThreadPool::Run(int64_t count, int64_t grain, Body body, void* context) {
  HX_DCHECK(grain >= 1);
  if (count <= 0) return;
  const int64_t grains = (count + grain - 1) / grain;
  const int64_t part = (grains + threads_ - 1) / threads_ * grain;
  if (threads_ == 1 || part >= count) {
    body(context, 0, count);
    return;
  }
  Shared& shared = *shared_;
  shared.body = body;
  shared.context = context;
  shared.count = count;
  shared.part = part;
  shared.pending.store(threads_ - 1, std::memory_order_relaxed);
  shared.Publish();
  shared.RunPart(0);
  for (int spins = 0; shared.pending.load(std::memory_order_acquire) != 0;
       ++spins) {
    if (spins < kSpins) {
      CpuRelax();
    } else {
      std::this_thread::yield();
    }
  }
}

}  // namespace hexllm
