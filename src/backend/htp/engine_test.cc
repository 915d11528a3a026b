#include "backend/htp/engine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "backend/engines.h"
#include "backend/htp/lower_testing.h"
#include "backend/htp/qnn_testing.h"
#include "ir/pseudo_random.h"

namespace hexllm::htp {
namespace {

using testing::BoundGraph;
using ::testing::HasSubstr;
using testing::TestArtifact;

constexpr int64_t kTokens = 4;
constexpr int64_t kVocab = 8;
constexpr int64_t kWidth = 16;

// Graphs "a" and "b": token[4] -> embedding, as codes of u16.
ir::Module EmbeddingModule() {
  ir::Module module;
  const ir::ConstantId table = module.constants.Add(ir::MakeRandomConstant(
      "table", {.dtype = DType::kF32, .shape = {kVocab, kWidth}}));
  for (const char* name : {"a", "b"}) {
    ir::Graph& graph = module.graphs.emplace_back();
    graph.name = name;
    graph.step_tokens = graph.context_tokens = kTokens;
    const ir::ValueId token = graph.AddInput(
        {.kind = RoleKind::kToken}, {.dtype = DType::kI32, .shape = {kTokens}});
    const ir::ValueId out = graph.AddNode(
        ir::OpKind::kEmbedding,
        {token, graph.AddConstant(table, module.constants[table])}, {}, "rows");
    graph[out].encoding = ir::Encoding{
        .dtype = DType::kU16, .scales = {1.0F / 16384}, .zero_points = {32768}};
    graph.AddOutput({.kind = RoleKind::kHiddenOut}, out);
  }
  return module;
}

void ExpectError(const Status& status, ErrorCode code, const char* text) {
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code, code) << status.error().message;
  EXPECT_THAT(status.error().message, HasSubstr(text));
  EXPECT_THAT(status.error().message, Not(HasSubstr("\n")));
}

class HtpEngine : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto folder = FindQnnFolder();
    if (!folder) GTEST_SKIP() << kNoQnn;
    auto engine = hexllm::CreateEngine("htp", {.qnn_lib_dir = *folder});
    ASSERT_TRUE(engine.ok()) << engine.error().message;
    engine_ = *std::move(engine);
    auto artifact =
        LowerForHtp(EmbeddingModule(), {.lib_dir = *folder, .vocab = kVocab});
    ASSERT_TRUE(artifact.ok()) << artifact.error().message;
    artifact_ = *std::move(artifact);
  }
  artifact::GraphEntry& entry() {
    return artifact_->manifest_for_edit().graphs[0];
  }
  Status LoadStatus() { return engine_->Load(artifact_, 0).status(); }

  std::unique_ptr<Engine> engine_;
  std::shared_ptr<TestArtifact> artifact_;
};

TEST_F(HtpEngine, RunsGraphs) {
  std::vector<float> rows[2];
  for (const size_t index : {size_t{0}, size_t{1}}) {
    auto graph = BoundGraph::Load(*engine_, artifact_, index);
    ASSERT_TRUE(graph.ok()) << graph.error().message;
    std::ranges::copy(std::vector<int32_t>{0, 7, 3, 3},
                      graph->Tokens().begin());
    const Status done = graph->graph().Execute({});
    ASSERT_TRUE(done.ok()) << done.error().message;
    rows[index] = graph->GetOutput(0).floats;
  }
  EXPECT_EQ(rows[0], rows[1]);
  const auto row = [&](int64_t i) {
    return std::vector(rows[0].begin() + i * kWidth,
                       rows[0].begin() + (i + 1) * kWidth);
  };
  EXPECT_EQ(row(2), row(3));
  EXPECT_NE(row(0), row(1));
}

TEST_F(HtpEngine, ChecksTokensOfAllRowsButPadding) {
  auto graph = BoundGraph::Load(*engine_, artifact_, 0);
  ASSERT_TRUE(graph.ok()) << graph.error().message;
  std::ranges::copy(std::vector<int32_t>{-1, 1 << 30, 3, 7},
                    graph->Tokens().begin());
  EXPECT_TRUE(graph->graph().Execute({.begin = 2}).ok());
  graph->Tokens()[1] = 1 << 30;
  ExpectError(graph->graph().Execute({.begin = 1}), ErrorCode::kUsage,
              "token id 1073741824 of row 1: expected 0 to 7");
  ExpectError(graph->graph().Execute({.begin = 4}), ErrorCode::kUsage,
              "none from row 4");
}

TEST_F(HtpEngine, ChecksWhatIsBound) {
  auto graph = engine_->Load(artifact_, 0);
  ASSERT_TRUE(graph.ok()) << graph.error().message;
  auto memory = engine_->Allocate(64);
  ASSERT_TRUE(memory.ok());
  ExpectError((*graph)->Execute({}), ErrorCode::kUsage, "token has no memory");
  ExpectError((*graph)->Bind(IoDirection::kInput, 0, memory->bytes()),
              ErrorCode::kUsage, "token needs 16 bytes");
  ExpectError(
      (*graph)->Bind(IoDirection::kInput, 0, memory->bytes().subspan(4, 16)),
      ErrorCode::kUsage, "multiple of 128");
  ExpectError((*graph)->Bind(IoDirection::kOutput, 1, memory->bytes()),
              ErrorCode::kUsage, "there is no number 1");
}

TEST_F(HtpEngine, RefusesGraphsThatAreNotIts) {
  ExpectError(engine_->Load(artifact_, 2).status(), ErrorCode::kUsage,
              "no number 2");
  entry().backend = "cpu";
  ExpectError(LoadStatus(), ErrorCode::kUnsupported, "backend 'cpu'");
  entry().backend = "htp";
  // As compiled for a device: the library crashes on such contexts on x86.
  auto& graphs = artifact_->manifest_for_edit().graphs;
  const uint32_t own = graphs[1].program;
  graphs[1].program = graphs[0].program;
  ExpectError(LoadStatus(), ErrorCode::kUnsupported, "--simulator");
  graphs[1].program = own;
  artifact_->manifest_for_edit().segments[0].kind =
      artifact::SegmentKind::kText;
  ExpectError(LoadStatus(), ErrorCode::kBadInput, "no QNN context");
}

TEST_F(HtpEngine, ComparesTheManifestWithTheContext) {
  entry().name = "c";
  ExpectError(LoadStatus(), ErrorCode::kBadInput, "no graph 'c'");
  entry().name = "a";
  const artifact::IoSpec output = entry().outputs[0];
  entry().outputs[0].shape = {kTokens, kWidth + 1};
  ExpectError(LoadStatus(), ErrorCode::kBadInput, "expected 136 bytes of u16");
  entry().outputs[0] = output;
  entry().outputs[0].role = {.kind = RoleKind::kLogits};
  ExpectError(LoadStatus(), ErrorCode::kBadInput, "no tensor 'logits'");
  entry().outputs.clear();
  ExpectError(LoadStatus(), ErrorCode::kBadInput, "has 2 inputs and outputs");
}

TEST_F(HtpEngine, TheSimulatorHasNoSharedMemoryAndNoClocks) {
  const std::string folder = FindQnnFolder().value();
  ExpectError(
      CreateEngine({.lib_dir = folder, .shared_buffer = SharedBuffer::kOn})
          .status(),
      ErrorCode::kUnsupported, "--shared-buffer on");
  ExpectError(
      CreateEngine({.lib_dir = folder, .performance = Performance::kBurst})
          .status(),
      ErrorCode::kUnsupported, "--htp-performance");
}

TEST_F(HtpEngine, RefusesAContextThatIsDamaged) {
  artifact_->Replace(0, AsBytes("no context binary"));
  ExpectError(LoadStatus(), ErrorCode::kBadInput, "segment 'context/a'");
  artifact_->manifest_for_edit().segments[0].checksum = 1;
  ExpectError(LoadStatus(), ErrorCode::kBadInput, "context/a");
}

}  // namespace
}  // namespace hexllm::htp
