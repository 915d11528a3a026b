// Round trips: what is written is what is read, in a file and in memory.
#include "artifact/artifact.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "artifact/artifact_testing.h"
#include "artifact/format.h"
#include "artifact/manifest_codec.h"
#include "artifact/writer.h"
#include "tests/support/temp_dir.h"

namespace hexllm::artifact {
namespace {

TEST(ArtifactTest, FileAndMemoryHaveTheSameManifestAndBytes) {
  const testing::TempDir folder;
  const std::string path = folder.Write("test.hxl", MakeTestFile());
  const auto opened = Artifact::Open(path);
  ASSERT_TRUE(opened.ok()) << opened.error().message;
  const Artifact& from_file = **opened;
  EXPECT_EQ(from_file.path(), path);
  const auto memory = MakeTestArtifact();
  EXPECT_EQ(memory->path(), memory->manifest().model_name);

  Manifest without_checksums = from_file.manifest();
  for (SegmentInfo& segment : without_checksums.segments) {
    EXPECT_TRUE(segment.checksum);
    segment.checksum.reset();
  }
  EXPECT_EQ(EncodeManifest(without_checksums),
            EncodeManifest(memory->manifest()));
  for (uint32_t i = 0; i < memory->manifest().segments.size(); ++i) {
    EXPECT_EQ(AsText(from_file.Segment(i)), AsText(memory->Segment(i)));
    const auto address = reinterpret_cast<uintptr_t>(memory->Segment(i).data());
    EXPECT_EQ(address % kSegmentAlignment, 0u);
  }
  EXPECT_TRUE(from_file.VerifyAll().ok());
  EXPECT_TRUE(memory->VerifyAll().ok());
}

TEST(ArtifactTest, CodecKeepsEveryField) {
  Manifest manifest = MakeTestArtifact()->manifest();
  manifest.generation.min_p = 0.125f;
  manifest.weight_bytes = 77;
  manifest.lookahead = {5, 8, 7};
  manifest.model_id = 0x0123456789abcdef;
  manifest.key_ropes = {0, -1};
  manifest.keys_rotated = true;
  manifest.attention_sink = {2, 3};
  manifest.rope_tables[0].long_prompts = LongRope{5, 3, 4};
  manifest.generation.repetition_penalty = 1.5f;
  const auto decoded = DecodeManifest(AsBytes(EncodeManifest(manifest)));
  ASSERT_TRUE(decoded.ok()) << decoded.error().message;
  EXPECT_EQ(decoded->producer, "hexllm test");
  EXPECT_EQ(decoded->model_name, "tiny");
  EXPECT_EQ(decoded->architecture, "llama");
  EXPECT_EQ(decoded->stage, "fp");
  EXPECT_EQ(decoded->recipe, "fp32");
  EXPECT_EQ(decoded->weight_bytes, 77u);
  EXPECT_EQ(decoded->lookahead, (LookaheadShape{5, 8, 7}));
  EXPECT_EQ(decoded->model_id, 0x0123456789abcdef);
  EXPECT_EQ(decoded->key_ropes, (std::vector<int32_t>{0, -1}));
  EXPECT_TRUE(decoded->keys_rotated);
  EXPECT_EQ(decoded->attention_sink, (SinkSettings{2, 3}));
  EXPECT_EQ(decoded->vocab_size, 11u);
  EXPECT_EQ(decoded->layers, 2u);
  EXPECT_EQ(decoded->context_tokens, 8u);
  EXPECT_EQ(decoded->mask_windows, (std::vector<uint32_t>{0, 4}));
  EXPECT_EQ(decoded->tokenizer_segment, 5u);
  EXPECT_EQ(decoded->chat_template_segment, 6u);
  EXPECT_EQ(decoded->special_tokens, manifest.special_tokens);
  EXPECT_EQ(decoded->generation.end_ids, (std::vector<int32_t>{2, 10}));
  EXPECT_EQ(decoded->generation.bos_id, 1);
  EXPECT_EQ(decoded->generation.temperature, 0.0f);
  EXPECT_EQ(decoded->generation.top_k, 20);
  EXPECT_EQ(decoded->generation.top_p, 0.75f);
  EXPECT_EQ(decoded->generation.min_p, 0.125f);
  EXPECT_EQ(decoded->generation.repetition_penalty, 1.5f);
  ASSERT_EQ(decoded->rope_tables.size(), 1u);
  EXPECT_EQ(decoded->rope_tables[0].sin_segment, 4u);
  EXPECT_EQ(decoded->rope_tables[0].half_dim, 2u);
  ASSERT_TRUE(decoded->rope_tables[0].long_prompts.has_value());
  EXPECT_EQ(decoded->rope_tables[0].long_prompts->above_tokens, 5u);
  EXPECT_EQ(decoded->rope_tables[0].long_prompts->sin_segment, 4u);
  EXPECT_EQ(decoded->segments[2].name, "weights/head");
  EXPECT_EQ(decoded->segments[2].kind, SegmentKind::kWeights);
  EXPECT_EQ(decoded->segments[2].bytes, 5000u);
}

TEST(ArtifactTest, CodecKeepsGraphs) {
  const Manifest manifest = MakeTestArtifact()->manifest();
  const auto decoded = DecodeManifest(AsBytes(EncodeManifest(manifest)));
  ASSERT_TRUE(decoded.ok()) << decoded.error().message;
  ASSERT_EQ(decoded->graphs.size(), 2u);
  const GraphEntry& kv = decoded->graphs[1];
  EXPECT_EQ(kv.name, "kv");
  EXPECT_EQ(kv.kind, GraphKind::kKv);
  EXPECT_EQ(kv.step_tokens, 1u);
  EXPECT_EQ(kv.context_tokens, 8u);
  EXPECT_EQ(kv.logits_rows, LogitsRows::kAll);
  EXPECT_EQ(kv.backend, "cpu");
  EXPECT_EQ(kv.program, 1u);
  ASSERT_EQ(kv.inputs.size(), 9u);
  EXPECT_EQ(RoleToString(kv.inputs[4].role), "mask[1]");
  EXPECT_EQ(kv.inputs[4].mask_visible, 0xffffu);
  EXPECT_EQ(kv.inputs[8].shape, (Shape{2, 7, 4}));
  EXPECT_EQ(kv.inputs[8].encoding,
            (IoEncoding{.scale = 0.5f, .zero_point = 128}));
  EXPECT_EQ(RoleToString(kv.outputs.back().role), "tap[layers.0]");
  EXPECT_EQ(kv.outputs.back().dtype, DType::kF16);
}

TEST(ArtifactTest, SameInputSameBytes) {
  EXPECT_EQ(MakeTestFile(), MakeTestFile());
}

TEST(ArtifactTest, SegmentsAreAligned) {
  const Manifest manifest = MakeTestArtifact()->manifest();
  for (const SegmentInfo& segment : manifest.segments) {
    EXPECT_EQ(segment.offset % kSegmentAlignment, 0u) << segment.name;
  }
}

TEST(ArtifactTest, BorrowedSegmentsAreNotCopied) {
  MemorySink sink;
  auto manifest = AddTestSegments(sink);
  ASSERT_TRUE(manifest.ok());
  auto checkpoint = std::make_shared<const std::string>("borrowed weights");
  const std::weak_ptr<const std::string> watch = checkpoint;
  const auto index = sink.Add({.name = "weights/borrowed",
                               .kind = SegmentKind::kWeights,
                               .lifetime = Lifetime::kArtifact},
                              AsBytes(*checkpoint));
  ASSERT_TRUE(index.ok());
  const void* address = checkpoint->data();
  auto artifact = sink.Finish(*manifest, std::move(checkpoint));
  ASSERT_TRUE(artifact.ok()) << artifact.error().message;
  EXPECT_EQ((*artifact)->Segment(*index).data(), address);
  EXPECT_FALSE(watch.expired());
  *artifact = nullptr;
  EXPECT_TRUE(watch.expired());
}

TEST(ArtifactTest, FindsByNameAndByStep) {
  const auto artifact = MakeTestArtifact();
  EXPECT_EQ(artifact->FindSegment("weights/head"), 2u);
  EXPECT_FALSE(artifact->FindSegment("weights"));
  const GraphEntry* graph = artifact->FindGraph(GraphKind::kPrefill, 4);
  ASSERT_NE(graph, nullptr);
  EXPECT_EQ(graph->name, "prefill_4");
  EXPECT_EQ(artifact->FindGraph(GraphKind::kPrefill, 8), nullptr);
}

}  // namespace
}  // namespace hexllm::artifact
