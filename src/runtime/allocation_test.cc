// The decode loop must not allocate: this file counts every call of the global
// operator new of the test program, but not those of the fake engine itself.
#include <gtest/gtest.h>

#include <cstdlib>
#include <new>

#include "runtime/session.h"
#include "tests/support/fake_session.h"

namespace {

int allocations = 0;
bool counting = false;

void* Allocate(std::size_t bytes, std::size_t alignment) {
  if (counting) ++allocations;
  const std::size_t rounded = (bytes + alignment) / alignment * alignment;
  void* memory = std::aligned_alloc(alignment, rounded);
  if (memory == nullptr) std::abort();
  return memory;
}

}  // namespace

// Not inlined: GCC would see new and free meet and call it a mismatch.
[[gnu::noinline]] void* operator new(std::size_t bytes) {
  return Allocate(bytes, alignof(std::max_align_t));
}
[[gnu::noinline]] void* operator new(std::size_t bytes,
                                     std::align_val_t alignment) {
  return Allocate(bytes, static_cast<std::size_t>(alignment));
}
[[gnu::noinline]] void operator delete(void* memory) noexcept {
  std::free(memory);
}
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept {
  std::free(memory);
}
[[gnu::noinline]] void operator delete(void* memory,
                                       std::align_val_t) noexcept {
  std::free(memory);
}
[[gnu::noinline]] void operator delete(void* memory, std::size_t,
                                       std::align_val_t) noexcept {
  std::free(memory);
}

namespace hexllm {
namespace {

using testing::FakeOptions;
using testing::FakeSession;
using testing::Prompt;

// Allocations from the second token on.
int CountInDecodeLoop(const GenerateOptions& options) {
  FakeSession f{FakeOptions{}};
  f.engine.faults.step_tokens.reserve(100);
  bool warm = false;
  f.engine.faults.on_execute = [&](bool inside) { counting = warm && !inside; };
  EXPECT_TRUE(f.session->Prefill(Prompt(20)).ok());
  allocations = 0;
  const auto result =
      f.session->Generate(options, [&](int32_t) -> Result<TokenAction> {
        counting = warm = true;
        return TokenAction::kContinue;
      });
  counting = false;
  EXPECT_TRUE(result.ok());
  EXPECT_GT(result->new_tokens, 30U);
  return allocations;
}

TEST(Allocation, CountingWorks) {
  counting = true;
  allocations = 0;
  ::operator delete(::operator new(4));  // unlike new int, never optimized away
  counting = false;
  EXPECT_EQ(allocations, 1);
}

TEST(Allocation, NoneInTheGreedyLoop) {
  GenerateOptions options;
  options.sampler.temperature = 0;
  EXPECT_EQ(CountInDecodeLoop(options), 0);
}

TEST(Allocation, NoneInTheSamplingLoop) {
  GenerateOptions options;
  options.sampler = {.temperature = 1,
                     .top_k = 30,
                     .top_p = 0.9f,
                     .min_p = 0.01f,
                     .repetition_penalty = 1.1f,
                     .seed = 3};
  EXPECT_EQ(CountInDecodeLoop(options), 0);
}

}  // namespace
}  // namespace hexllm
