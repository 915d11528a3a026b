// Plans of any bytes in otherwise valid artifacts: refused, or loaded and run
// without reading or writing outside.
#include <cstddef>
#include <cstdint>

#include "backend/cpu/engine.h"
#include "backend/cpu/plan.h"
#include "tests/support/random_encoded_graph.h"
#include "tests/support/run_graph.h"
#include "tests/support/tiny_decoder.h"

namespace hexllm::cpu {
namespace {

// Larger ones only cost time.
constexpr uint64_t kMaxArenaBytes = uint64_t{1} << 22;
constexpr size_t kMaxInstructions = 256;

// A decoder of floats, then graphs with encodings of every style.
ir::Module ModuleOf(int number) {
  // A small graph that has every instruction of encodings.
  constexpr uint64_t kSeed = 358;
  if (number == 0) {
    return testing::MakeTinyDecoder(/*step_tokens=*/4, /*context_tokens=*/8);
  }
  const auto style = static_cast<testing::EncodingStyle>(number - 1);
  return testing::MakeRandomEncodedGraph(kSeed, style).module;
}
constexpr int kModules = 4;

void RunPlan(ByteSpan bytes, const ir::Module& module) {
  const auto artifact = testing::LowerForTest(module);
  HX_CHECK(artifact.ok());
  (*artifact)->Replace((*artifact)->manifest().graphs[0].program, bytes);
  const auto engine = CreateEngine({.threads = 1});
  HX_CHECK(engine.ok());
  auto graph = testing::BoundGraph::Load(**engine, *artifact, 0);
  if (!graph.ok()) return;
  // All rows but the first, where there are several.
  const uint32_t steps = graph->graph().entry().step_tokens;
  HX_CHECK(graph->graph().Execute({.begin = steps > 1 ? 1u : 0u}).ok());
}

void RunPlan(ByteSpan bytes) {
  const auto plan = ParsePlan(bytes);
  if (!plan.ok() || plan->arena_bytes > kMaxArenaBytes ||
      plan->code.size() > kMaxInstructions) {
    return;
  }
  for (int i = 0; i < kModules; ++i) RunPlan(bytes, ModuleOf(i));
}

}  // namespace
}  // namespace hexllm::cpu

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  hexllm::cpu::RunPlan(std::as_bytes(std::span(data, size)));
  return 0;
}
