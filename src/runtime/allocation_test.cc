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

void* Allocate(std::size_t bytes) {
  if (counting) ++allocations;
  return std::malloc(bytes > 0 ? bytes : 1);
}

}  // namespace

// Not inlined, or GCC sees malloc and delete meet and calls it a mismatch.
[[gnu::noinline]] void* operator new(std::size_t bytes) {
  void* memory = Allocate(bytes);
  if (memory == nullptr) std::abort();
  return memory;
}
[[gnu::noinline]] void* operator new(std::size_t bytes,
                                     const std::nothrow_t&) noexcept {
  return Allocate(bytes);
}
[[gnu::noinline]] void operator delete(void* memory) noexcept {
  std::free(memory);
}
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept {
  std::free(memory);
}

namespace hexllm {
namespace {

using testing::FakeOptions;
using testing::FakeSession;
using testing::Prompt;

// Allocations from the second token on.
int CountInDecodeLoop(const GenerateOptions& options,
                      const FakeOptions& fake = {},
                      const SessionOptions& session = {}) {
  FakeSession f(fake, session);
  f.engine.faults.step_tokens.reserve(100);
  f.engine.faults.first_rows.reserve(100);
  bool warm = false;
  f.engine.faults.on_execute = [&](bool inside) { counting = warm && !inside; };
  EXPECT_TRUE(f.session->Prefill(Prompt(20, fake.vocab)).ok());
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

TEST(Allocation, NoneInTheLookaheadLoop) {
  GenerateOptions options;
  options.sampler.temperature = 1;
  FakeOptions fake;
  fake.vocab = 3;  // guesses come true
  fake.lookahead = {3, 2, 2};
  for (const auto mode : {LookaheadMode::kOn, LookaheadMode::kAuto}) {
    for (const auto update : {KvUpdate::kSmartMask, KvUpdate::kShiftPointer}) {
      EXPECT_EQ(CountInDecodeLoop(options, fake,
                                  {.kv_update = update, .lookahead = mode}),
                0);
    }
  }
}

}  // namespace
}  // namespace hexllm
