#include "artifact/artifact_testing.h"

#include <vector>

#include "artifact/writer.h"
#include "tests/support/temp_dir.h"

namespace hexllm::artifact {
namespace {

constexpr uint32_t kLayers = 2;
constexpr uint32_t kContext = 8;
constexpr uint32_t kVocab = 11;
constexpr int64_t kHeads = 2;
constexpr int64_t kHeadDim = 4;
constexpr uint32_t kHalfDim = 2;
constexpr uint32_t kWidth = 6;

IoSpec Io(Role role, DType dtype, Shape shape) {
  IoSpec io;
  io.role = std::move(role);
  io.dtype = dtype;
  io.shape = std::move(shape);
  return io;
}

IoSpec Cache(RoleKind kind, int32_t layer, Shape shape) {
  IoSpec io = Io({.kind = kind, .index = layer}, DType::kU8, std::move(shape));
  io.encoding = IoEncoding{.scale = 0.5f, .zero_point = 128};
  return io;
}

GraphEntry MakeGraph(std::string name, GraphKind kind, uint32_t step) {
  GraphEntry graph;
  graph.name = std::move(name);
  graph.kind = kind;
  graph.step_tokens = step;
  graph.context_tokens = kContext;
  graph.backend = "cpu";
  const int64_t t = step;
  const int64_t past = kContext - t;
  graph.inputs.push_back(Io({RoleKind::kToken}, DType::kI32, {t}));
  for (const RoleKind kind_of_rope : {RoleKind::kRopeCos, RoleKind::kRopeSin}) {
    graph.inputs.push_back(Io({kind_of_rope}, DType::kF32, {t, kHalfDim}));
  }
  for (int32_t window = 0; window < 2; ++window) {
    IoSpec mask =
        Io({RoleKind::kMask, window}, DType::kU16, {t, int64_t{kContext}});
    mask.mask_visible = 0xffff;
    graph.inputs.push_back(std::move(mask));
  }
  for (int32_t layer = 0; layer < int32_t{kLayers}; ++layer) {
    graph.inputs.push_back(
        Cache(RoleKind::kKIn, layer, {kHeads, kHeadDim, past}));
    graph.inputs.push_back(
        Cache(RoleKind::kVIn, layer, {kHeads, past, kHeadDim}));
    graph.outputs.push_back(
        Cache(RoleKind::kKOut, layer, {kHeads, kHeadDim, t}));
    graph.outputs.push_back(
        Cache(RoleKind::kVOut, layer, {kHeads, t, kHeadDim}));
  }
  graph.outputs.push_back(Io({RoleKind::kLogits}, DType::kF32, {t, kVocab}));
  graph.outputs.push_back(
      Io({.kind = RoleKind::kTap, .name = "layers.0"}, DType::kF16, {t, 6}));
  return graph;
}

GenerationDefaults MakeGeneration() {
  GenerationDefaults generation;
  generation.end_ids = {2, 10};
  generation.bos_id = 1;
  generation.temperature = 0.0f;
  generation.top_k = 20;
  generation.top_p = 0.75f;
  return generation;
}

Manifest MakeHead() {
  Manifest manifest;
  manifest.producer = "hexllm test";
  manifest.model_name = "tiny";
  manifest.architecture = "llama";
  manifest.stage = "fp";
  manifest.recipe = "fp32";
  manifest.vocab_size = kVocab;
  manifest.layers = kLayers;
  manifest.context_tokens = kContext;
  manifest.mask_windows = {0, 4};
  manifest.special_tokens = {{"bos_token", "<s>"}, {"eos_token", "</s>"}};
  manifest.generation = MakeGeneration();
  return manifest;
}

}  // namespace

Result<Manifest> AddTestSegments(SegmentSink& sink) {
  Manifest manifest = MakeHead();
  manifest.graphs.push_back(MakeGraph("prefill_4", GraphKind::kPrefill, 4));
  manifest.graphs.push_back(MakeGraph("kv", GraphKind::kKv, 1));
  HX_ASSIGN_OR_RETURN(manifest.graphs[0].program,
                      sink.Add({"plan/prefill_4", SegmentKind::kCpuPlan},
                               AsBytes("the plan of prefill")));
  HX_ASSIGN_OR_RETURN(
      manifest.graphs[1].program,
      sink.Add({"plan/kv", SegmentKind::kCpuPlan}, AsBytes("the plan of kv")));
  const std::vector<std::byte> weights(5000, std::byte{7});
  HX_RETURN_IF_ERROR(
      sink.Add({"weights/head", SegmentKind::kWeights}, weights).status());
  const std::vector<float> table(size_t{kContext} * kHalfDim, 0.25f);
  RopeTable rope{.positions = kContext, .half_dim = kHalfDim};
  HX_ASSIGN_OR_RETURN(rope.cos_segment,
                      sink.Add({"rope/0/cos", SegmentKind::kRopeTable},
                               std::as_bytes(std::span(table))));
  HX_ASSIGN_OR_RETURN(rope.sin_segment,
                      sink.Add({"rope/0/sin", SegmentKind::kRopeTable},
                               std::as_bytes(std::span(table))));
  manifest.rope_tables = {rope};
  HX_ASSIGN_OR_RETURN(
      manifest.tokenizer_segment,
      sink.Add({"tokenizer", SegmentKind::kTokenizer}, AsBytes("words")));
  HX_ASSIGN_OR_RETURN(manifest.chat_template_segment,
                      sink.Add({"chat_template", SegmentKind::kChatTemplate},
                               AsBytes("{{ messages }}")));
  const std::vector<std::byte> rows(size_t{kVocab} * kWidth * 2, std::byte{1});
  manifest.embedding = {.dtype = DType::kBF16, .width = kWidth};
  HX_ASSIGN_OR_RETURN(manifest.embedding->segment,
                      sink.Add({"embedding", SegmentKind::kEmbedding}, rows));
  return manifest;
}

std::shared_ptr<const Artifact> MakeTestArtifact() {
  MemorySink sink;
  auto manifest = AddTestSegments(sink);
  HX_CHECK(manifest.ok());
  auto artifact = sink.Finish(std::move(manifest).value(), nullptr);
  HX_CHECK(artifact.ok());
  return std::move(artifact).value();
}

std::string MakeTestFile() {
  const testing::TempDir folder;
  const std::string path = folder.File("test.hxl");
  auto sink = FileSink::Create(path);
  HX_CHECK(sink.ok());
  auto manifest = AddTestSegments(*sink);
  HX_CHECK(manifest.ok());
  HX_CHECK(sink->Finish(std::move(manifest).value()).ok());
  return testing::ReadWholeFile(path);
}

}  // namespace hexllm::artifact
