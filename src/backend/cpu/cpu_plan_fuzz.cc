// Plans of any bytes in an otherwise valid artifact: refused, or loaded and run
// without reading or writing outside.
#include <cstddef>
#include <cstdint>

#include "backend/cpu/engine.h"
#include "backend/cpu/plan.h"
#include "tests/support/run_graph.h"
#include "tests/support/tiny_decoder.h"

namespace hexllm::cpu {
namespace {

// Larger ones only cost time.
constexpr uint64_t kMaxArenaBytes = uint64_t{1} << 22;
constexpr size_t kMaxInstructions = 256;

void RunPlan(ByteSpan bytes) {
  const auto plan = ParsePlan(bytes);
  if (!plan.ok() || plan->arena_bytes > kMaxArenaBytes ||
      plan->code.size() > kMaxInstructions) {
    return;
  }
  const auto artifact = testing::LowerForTest(
      testing::MakeTinyDecoder(/*step_tokens=*/4, /*context_tokens=*/8));
  HX_CHECK(artifact.ok());
  (*artifact)->Replace((*artifact)->manifest().graphs[0].program, bytes);
  const auto engine = CreateEngine({.threads = 1});
  HX_CHECK(engine.ok());
  auto graph = testing::BoundGraph::Load(**engine, *artifact, 0);
  if (!graph.ok()) return;
  HX_CHECK(graph->graph().Execute({.begin = 1}).ok());
}

}  // namespace
}  // namespace hexllm::cpu

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  hexllm::cpu::RunPlan(std::as_bytes(std::span(data, size)));
  return 0;
}
