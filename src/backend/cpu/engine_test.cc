#include "backend/cpu/engine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "artifact/writer.h"
#include "tests/support/decoder_steps.h"
#include "tests/support/run_graph.h"
#include "tests/support/tiny_decoder.h"

namespace hexllm::cpu {
namespace {

using testing::BoundGraph;
using testing::DecoderSteps;
using ::testing::HasSubstr;
using testing::kTinyVocab;
using testing::LowerForTest;
using testing::MakeTinyDecoder;
using testing::TestArtifact;

constexpr int64_t kStep = 4;
constexpr int64_t kContext = 8;

std::shared_ptr<TestArtifact> TinyArtifact() {
  auto artifact = LowerForTest(MakeTinyDecoder(kStep, kContext));
  HX_CHECK(artifact.ok());
  return *artifact;
}

std::unique_ptr<Engine> MakeEngine() {
  auto engine = CreateEngine({.threads = 1});
  HX_CHECK(engine.ok());
  return *std::move(engine);
}

BoundGraph LoadTiny(Engine& engine) {
  auto bound = BoundGraph::Load(engine, TinyArtifact(), 0);
  HX_CHECK(bound.ok());
  return *std::move(bound);
}

void ExpectUsage(const Status& status, const std::string& text) {
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code, ErrorCode::kUsage);
  EXPECT_THAT(status.error().message, HasSubstr(text));
}

TEST(CreateEngine, RefusesSenselessOptions) {
  ExpectUsage(CreateEngine({.threads = -1}).status(), "found -1");
  ExpectUsage(CreateEngine({.threads = 100000}).status(), "found 100000");
  ExpectUsage(CreateEngine({.grain_work = 0}).status(), "found 0");
}

TEST(CreateEngine, RefusesAnInstructionSetThisCpuLacks) {
#if defined(__x86_64__)
  const auto engine = CreateEngine({.isa = Isa::kNeon});
#else
  const auto engine = CreateEngine({.isa = Isa::kAvx2});
#endif
  ASSERT_FALSE(engine.ok());
  EXPECT_EQ(engine.error().code, ErrorCode::kUnsupported);
}

TEST(Engine, HandsOutAlignedZeroedMemoryOfTheExactSize) {
  const auto engine = MakeEngine();
  for (const size_t bytes : {size_t{0}, size_t{4}, size_t{1000},
                             (size_t{1} << 20) - 4, (size_t{3} << 20) + 4}) {
    auto buffer = engine->Allocate(bytes);
    ASSERT_TRUE(buffer.ok());
    ASSERT_EQ(buffer->bytes().size(), bytes);
    const auto address = reinterpret_cast<uintptr_t>(buffer->bytes().data());
    EXPECT_EQ(address % kBufferAlignment, 0u);
    const auto zero = [](std::byte byte) { return byte == std::byte{0}; };
    EXPECT_TRUE(
        std::all_of(buffer->bytes().begin(), buffer->bytes().end(), zero));
  }
}

TEST(Engine, SaysWhenThereIsNoMemory) {
  const auto buffer = MakeEngine()->Allocate(size_t{1} << 60);
  ASSERT_FALSE(buffer.ok());
  EXPECT_EQ(buffer.error().code, ErrorCode::kEnvironment);
}

TEST(Engine, RefusesGraphsThatAreNotThereOrNotForTheCpu) {
  const auto engine = MakeEngine();
  const auto artifact = TinyArtifact();
  ExpectUsage(engine->Load(artifact, 1).status(), "no number 1");
  artifact->manifest_for_edit().graphs[0].backend = "htp";
  const auto loaded = engine->Load(artifact, 0);
  ASSERT_FALSE(loaded.ok());
  EXPECT_EQ(loaded.error().code, ErrorCode::kUnsupported);
}

TEST(Graph, RefusesMemoryThatDoesNotFit) {
  const auto engine = MakeEngine();
  auto graph = engine->Load(TinyArtifact(), 0);
  ASSERT_TRUE(graph.ok());
  auto memory = engine->Allocate(1024);
  ASSERT_TRUE(memory.ok());
  const std::span<std::byte> bytes = memory->bytes();
  ExecutableGraph& tiny = **graph;
  // Input 0 is token[4] i32.
  EXPECT_TRUE(tiny.Bind(IoDirection::kInput, 0, bytes.first(16)).ok());
  ExpectUsage(tiny.Bind(IoDirection::kInput, 0, bytes.first(12)),
              "token needs 16 bytes");
  ExpectUsage(tiny.Bind(IoDirection::kInput, 0, bytes.first(20)), "16 bytes");
  ExpectUsage(tiny.Bind(IoDirection::kInput, 0, bytes.subspan(4, 16)),
              "multiple of 128");
  ExpectUsage(tiny.Bind(IoDirection::kInput, 99, bytes), "inputs");
  ExpectUsage(tiny.Bind(IoDirection::kOutput, 99, bytes), "outputs");
}

TEST(Graph, DoesNotRunBeforeEverythingIsBound) {
  const auto engine = MakeEngine();
  auto graph = engine->Load(TinyArtifact(), 0);
  ASSERT_TRUE(graph.ok());
  ExpectUsage((*graph)->Execute({}), "token has no memory bound");
}

TEST(Graph, RefusesTokensOutsideTheVocabulary) {
  const auto engine = MakeEngine();
  BoundGraph tiny = LoadTiny(*engine);
  tiny.Tokens()[2] = kTinyVocab;
  ExpectUsage(tiny.graph().Execute({}), "token id 11 of row 2");
  tiny.Tokens()[2] = -1;
  ExpectUsage(tiny.graph().Execute({.begin = 2}), "token id -1 of row 2");
  // Padding rows are not looked at.
  EXPECT_TRUE(tiny.graph().Execute({.begin = 3}).ok());
}

TEST(Graph, RefusesAStepOfPaddingOnly) {
  const auto engine = MakeEngine();
  BoundGraph tiny = LoadTiny(*engine);
  ExpectUsage(tiny.graph().Execute({.begin = 4}), "none from row 4 on");
}

// DecoderSteps fills padding with NaN and ids out of range, so that a padding
// row that is read shows.
TEST(Graph, SkipsPaddingRows) {
  const auto engine = MakeEngine();
  BoundGraph whole = LoadTiny(*engine);
  BoundGraph cut = LoadTiny(*engine);
  const std::vector<float> expected = DecoderSteps(whole).Run({3, 1, 4, 1});
  const std::vector<float> first = DecoderSteps(cut).Run({3});
  ASSERT_EQ(first.size(), static_cast<size_t>(kTinyVocab));
  EXPECT_TRUE(std::equal(first.begin(), first.end(), expected.begin()));
  // Their columns of k_out are left alone.
  const auto k_out = cut.Output({.kind = RoleKind::kKOut, .index = 1});
  for (size_t i = 0; i < k_out.size(); ++i) {
    EXPECT_EQ(k_out[i] == 0, i % kStep < kStep - 1) << i;
  }
}

TEST(Graph, ReadsRebornMemoryAfterABind) {
  const auto engine = MakeEngine();
  BoundGraph tiny = LoadTiny(*engine);
  const std::vector<float> expected = DecoderSteps(tiny).Run({3, 1, 4, 1});
  const auto& outputs = tiny.graph().entry().outputs;
  const auto logits = std::find_if(
      outputs.begin(), outputs.end(),
      [](const auto& spec) { return spec.role.kind == RoleKind::kLogits; });
  auto memory = engine->Allocate(kStep * kTinyVocab * sizeof(float));
  ASSERT_TRUE(memory.ok());
  ASSERT_TRUE(tiny.graph()
                  .Bind(IoDirection::kOutput,
                        static_cast<size_t>(logits - outputs.begin()),
                        memory->bytes())
                  .ok());
  ASSERT_TRUE(tiny.graph().Execute({}).ok());
  const auto* found = reinterpret_cast<const float*>(memory->bytes().data());
  EXPECT_TRUE(std::equal(expected.begin(), expected.end(), found));
}

TEST(Graph, OutlivesTheEngine) {
  auto engine = MakeEngine();
  BoundGraph tiny = LoadTiny(*engine);
  engine.reset();
  EXPECT_TRUE(tiny.graph().Execute({}).ok());
}

// What compile and run do: the manifest passes validation, weights are views.
TEST(Graph, RunsFromAMemoryArtifact) {
  const ir::Module module = MakeTinyDecoder(kStep, kContext);
  artifact::MemorySink sink;
  NullProgress progress;
  auto entries = Lower(module, sink, progress);
  ASSERT_TRUE(entries.ok()) << entries.error().message;
  artifact::Manifest manifest;
  manifest.architecture = "tiny";
  manifest.stage = "fp";
  manifest.vocab_size = kTinyVocab;
  manifest.layers = testing::kTinyLayers;
  manifest.context_tokens = kContext;
  manifest.mask_windows = {0};
  const std::vector<float> table(kContext * testing::kTinyHeadDim / 2);
  const ByteSpan table_bytes = std::as_bytes(std::span(table));
  const auto cos =
      sink.Add({"rope/cos", artifact::SegmentKind::kRopeTable}, table_bytes);
  const auto sin =
      sink.Add({"rope/sin", artifact::SegmentKind::kRopeTable}, table_bytes);
  manifest.rope_tables = {{*cos, *sin, kContext, testing::kTinyHeadDim / 2}};
  manifest.graphs = *entries;
  auto artifact = std::move(sink).Finish(std::move(manifest), nullptr);
  ASSERT_TRUE(artifact.ok()) << artifact.error().message;
  const auto engine = MakeEngine();
  auto bound = BoundGraph::Load(*engine, *artifact, 0);
  ASSERT_TRUE(bound.ok()) << bound.error().message;
  BoundGraph other = LoadTiny(*engine);
  EXPECT_EQ(DecoderSteps(*bound).Run({1, 2, 3, 4, 5}),
            DecoderSteps(other).Run({1, 2, 3, 4, 5}));
}

}  // namespace
}  // namespace hexllm::cpu
