// A fixed set of worker threads for fork-join loops. One pool per engine or
// compile job, passed explicitly. Not a task queue: one ParallelFor at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <type_traits>

namespace hexllm {

class ThreadPool {
 public:
  // `threads` >= 1 counts the calling thread. Workers spin briefly before they
  // sleep, so that back-to-back loops (one per operator of a decode step) cost
  // about a microsecond. When the system refuses a worker (a limit on threads),
  // the pool works with those it has: threads() tells. Results do not depend on
  // it.
  explicit ThreadPool(int threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int threads() const { return threads_; }

  // The body of a loop: called with a context and a half-open part [begin, end)
  // of [0, count).
  using Body = void (*)(void* context, int64_t begin, int64_t end);

  // Splits [0, count) into one contiguous part per thread, each a multiple of
  // `grain` but the last, and runs `body` on each; returns when all are done.
  // Does not allocate. Not reentrant; one caller at a time.
  void Run(int64_t count, int64_t grain, Body body, void* context);

  template <typename F>
  void ParallelFor(int64_t count, int64_t grain, F&& f) {
    Run(
        count, grain,
        [](void* c, int64_t begin, int64_t end) {
          (*static_cast<std::remove_reference_t<F>*>(c))(begin, end);
        },
        &f);
  }

 private:
  struct Shared;
  int threads_;
  std::unique_ptr<Shared> shared_;
};

}  // namespace hexllm
