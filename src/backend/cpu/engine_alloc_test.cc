// A step allocates nothing: counted by the allocation functions of this
// program.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <new>

#include "backend/cpu/engine.h"
#include "tests/support/random_encoded_graph.h"
#include "tests/support/run_graph.h"
#include "tests/support/tiny_decoder.h"

namespace {

std::atomic<int64_t> allocations = 0;

void* Allocate(size_t bytes) {
  ++allocations;
  return std::malloc(bytes > 0 ? bytes : 1);
}

}  // namespace

// Not inlined, or the compiler takes malloc and free for a mismatched pair.
[[gnu::noinline]] void* operator new(size_t bytes) {
  void* memory = Allocate(bytes);
  if (memory == nullptr) std::abort();
  return memory;
}
[[gnu::noinline]] void* operator new(size_t bytes,
                                     const std::nothrow_t&) noexcept {
  return Allocate(bytes);
}
[[gnu::noinline]] void operator delete(void* memory) noexcept {
  std::free(memory);
}
[[gnu::noinline]] void operator delete(void* memory, size_t) noexcept {
  std::free(memory);
}

namespace hexllm::cpu {
namespace {

void ExpectNoAllocations(const ir::Module& module) {
  const auto artifact = testing::LowerForTest(module);
  ASSERT_TRUE(artifact.ok());
  auto engine = CreateEngine({.threads = 2, .grain_work = 1});
  ASSERT_TRUE(engine.ok());
  auto bound = testing::BoundGraph::Load(**engine, *artifact, 0);
  ASSERT_TRUE(bound.ok());
  const int64_t before = allocations.load();
  ASSERT_GT(before, 0) << "allocations are not counted";
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(bound->graph().Execute({}).ok());
  }
  EXPECT_EQ(allocations.load(), before);
}

TEST(EngineAllocations, ExecuteMakesNone) {
  for (const int64_t step : {1, 8}) {
    SCOPED_TRACE("T = " + std::to_string(step));
    ExpectNoAllocations(testing::MakeTinyDecoder(step, /*context_tokens=*/16));
  }
}

TEST(EngineAllocations, NorWithEncodings) {
  using testing::EncodingStyle;
  for (const EncodingStyle style :
       {EncodingStyle::kStatic, EncodingStyle::kHalf,
        EncodingStyle::kDynamic}) {
    // Attention, linears of all kinds.
    ExpectNoAllocations(
        testing::MakeRandomEncodedGraph(/*seed=*/358, style).module);
  }
}

}  // namespace
}  // namespace hexllm::cpu
