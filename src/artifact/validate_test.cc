// Each rule of ValidateManifest by a manifest that breaks it, and what must
// stay legal.
#include "artifact/validate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>

#include "artifact/artifact.h"
#include "artifact/artifact_testing.h"
#include "artifact/format.h"

namespace hexllm::artifact {
namespace {

// One change to the test artifact's manifest and a part of the message that
// refuses it; an empty message: it stays legal.
struct Case {
  const char* name;
  void (*change)(Manifest& manifest);
  const char* message;
};

// The input or output with this name of graph `index`.
IoSpec& Io(Manifest& manifest, size_t index, std::string_view role) {
  GraphEntry& graph = manifest.graphs[index];
  for (auto* list : {&graph.inputs, &graph.outputs}) {
    for (IoSpec& io : *list) {
      if (RoleToString(io.role) == role) return io;
    }
  }
  HX_CHECK(false);
}

void Remove(std::vector<IoSpec>& list, std::string_view role) {
  std::erase_if(
      list, [&](const IoSpec& io) { return RoleToString(io.role) == role; });
}

// Graph 0 takes embeddings [4,width] in place of tokens.
void TakeEmbedding(Manifest& manifest, int64_t width) {
  IoSpec& io = Io(manifest, 0, "token");
  io.role.kind = RoleKind::kEmbedding;
  io.dtype = DType::kF16;
  io.shape = {4, width};
}

template <typename... Sizes>
void Reshape(Manifest& manifest, std::string_view role, Sizes... sizes) {
  Io(manifest, 0, role).shape = {int64_t{sizes}...};
}

// Keys that an evictor turns, as graph 2: all columns but one of the context of
// 8.
void AddSink(Manifest& manifest) {
  manifest.key_ropes = {0, -1};
  manifest.attention_sink = {2, 3};
  GraphEntry graph = manifest.graphs[1];
  graph.name = "evictor";
  graph.kind = GraphKind::kEvictor;
  graph.step_tokens = 7;
  const IoSpec keys = Io(manifest, 1, "k_in[0]");
  IoSpec cos = Io(manifest, 1, "rope_cos[0]");
  IoSpec sin = Io(manifest, 1, "rope_sin[0]");
  cos.shape[0] = sin.shape[0] = 7;
  graph.inputs = {keys, cos, sin};
  graph.outputs = {keys};
  graph.outputs[0].role.kind = RoleKind::kKOut;
  manifest.graphs.push_back(std::move(graph));
}

// Graph 0, of 4 tokens, with one guess.
void MakeLookahead(Manifest& m, uint32_t ngram, uint32_t window) {
  m.graphs[0].kind = GraphKind::kLookahead;
  m.lookahead = {ngram, window, 1};
}

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

const Case kCases[] = {
    {"Unchanged", [](Manifest&) {}, ""},
    // The manifest's own fields.
    {"Stage", [](Manifest& m) { m.stage = "done"; }, "stage"},
    {"NoVocabulary", [](Manifest& m) { m.vocab_size = 0; }, "vocabulary size"},
    {"HugeVocabulary", [](Manifest& m) { m.vocab_size = ~0u; },
     "vocabulary size"},
    {"NoLayers", [](Manifest& m) { m.layers = 0; }, "layers"},
    {"HugeLayers", [](Manifest& m) { m.layers = ~0u; }, "layers"},
    {"NoContext", [](Manifest& m) { m.context_tokens = 0; }, "context length"},
    {"LongName",
     [](Manifest& m) { m.model_name = std::string(kMaxNameBytes + 1, 'x'); },
     "model name"},
    {"WindowTwice", [](Manifest& m) { m.mask_windows.assign(2, 4); },
     "window 4 is listed twice"},
    {"SpecialTokenTwice",
     [](Manifest& m) { m.special_tokens[1].name = "bos_token"; },
     "special token 'bos_token'"},
    {"Lookahead", [](Manifest& m) { MakeLookahead(m, 3, 1); }, ""},
    {"LookaheadWithoutShape",
     [](Manifest& m) { m.graphs[0].kind = GraphKind::kLookahead; },
     "lookahead: n-grams of 0"},
    {"LookaheadWithoutGraph",
     [](Manifest& m) { m.lookahead.emplace().ngram = 2; },
     "a graph of 0 tokens"},
    {"LookaheadSize", [](Manifest& m) { MakeLookahead(m, 3, 2); },
     "2 columns and 1 guesses do not fit a graph of 4 tokens"},
    // The attention sink and its graphs.
    {"Sink", AddSink, ""},
    {"SinkWithoutGraph", [](Manifest& m) { AddSink(m), m.graphs.pop_back(); },
     "attention sink: keys without an evictor"},
    {"SinkWithoutRoom",
     [](Manifest& m) { AddSink(m), m.attention_sink->evict_tokens = 5; },
     "2 and 5 tokens do not fit a context of 8"},
    {"SinkOfNothing",
     [](Manifest& m) { AddSink(m), m.attention_sink->sink_tokens = 0; },
     "0 and 3 tokens"},
    {"KeyRopesOfOtherTables",
     [](Manifest& m) { AddSink(m), m.key_ropes[1] = 1; }, "one of 1 tables"},
    {"KeyRopesOfOtherLayers",
     [](Manifest& m) { AddSink(m), m.key_ropes.push_back(0); }, "of 2 layers"},
    {"EvictorOfUnknownKeys",
     [](Manifest& m) { AddSink(m), m.key_ropes.clear(); },
     "nothing is known of"},
    {"EvictorOfOtherColumns",
     [](Manifest& m) {
       AddSink(m);
       for (IoSpec& io : m.graphs[2].inputs)
         io.shape[io.role.kind == RoleKind::kKIn ? 2 : 0] = 6;
       m.graphs[2].outputs[0].shape[2] = 6;
       m.graphs[2].step_tokens = 6;
     },
     "all columns but one"},
    {"EvictorOfOtherKeys",
     [](Manifest& m) { AddSink(m), Io(m, 2, "k_out[0]").encoding->scale = 2; },
     "keys in the form of the cache"},
    {"EvictorWithoutRope",
     [](Manifest& m) { AddSink(m), Remove(m.graphs[2].inputs, "rope_sin[0]"); },
     "lacks keys or RoPE rows"},
    {"EvictorTwice",
     [](Manifest& m) { AddSink(m), AddSink(m), m.graphs[3].name = "again"; },
     "rotated twice"},
    // Segments.
    {"SegmentNameTwice",
     [](Manifest& m) { m.segments[1].name = m.segments[0].name; },
     "segment 'plan/prefill_4'"},
    {"SegmentWithoutName", [](Manifest& m) { m.segments[1].name.clear(); },
     "segment ''"},
    {"SegmentNotAligned", [](Manifest& m) { m.segments[1].offset += 8; },
     "segment 'plan/kv'"},
    {"SegmentInHeader", [](Manifest& m) { m.segments[0].offset = 0; },
     "segment 'plan/prefill_4'"},
    {"SegmentsOverlap",
     [](Manifest& m) { m.segments[2].bytes = 2 * kSegmentAlignment + 1; },
     "segment 'rope/0/cos'"},
    {"SegmentOverflows",
     [](Manifest& m) { m.segments.back().bytes = ~uint64_t{0}; },
     "exceed 64 bits"},
    {"TokenizerOutOfRange", [](Manifest& m) { m.tokenizer_segment = 8; },
     "tokenizer: expected a segment below 8"},
    {"TokenizerIsAPlan", [](Manifest& m) { m.tokenizer_segment = 0; },
     "tokenizer: expected a tokenizer segment, found 'plan/prefill_4'"},
    {"NoTokenizer", [](Manifest& m) { m.tokenizer_segment.reset(); }, ""},
    {"ChatTemplateIsWeights", [](Manifest& m) { m.chat_template_segment = 2; },
     "chat template: expected"},
    // RoPE tables.
    {"RopeSegmentKind", [](Manifest& m) { m.rope_tables[0].cos_segment = 2; },
     "RoPE table: expected a rope table segment"},
    {"RopeTooFewPositions", [](Manifest& m) { m.rope_tables[0].positions = 7; },
     "each of 8 positions"},
    {"RopeSize", [](Manifest& m) { m.rope_tables[0].positions = 9; },
     "segment 'rope/0/cos': expected f32 [9,2]"},
    {"RopeNoColumns", [](Manifest& m) { m.rope_tables[0].half_dim = 0; },
     "it has no columns"},
    {"RopeOverflows",
     [](Manifest& m) {
       m.rope_tables[0] = {3, 4, ~0u, ~0u};
     },
     "segment 'rope/0/cos'"},
    {"LongRope",
     [](Manifest& m) {
       m.rope_tables[0].long_prompts = LongRope{5, 3, 4};
     },
     ""},
    {"LongRopeSegmentKind",
     [](Manifest& m) {
       m.rope_tables[0].long_prompts = LongRope{5, 3, 2};
     },
     "RoPE table: expected a rope table segment"},
    // The embedding table.
    {"EmbeddingSegmentKind", [](Manifest& m) { m.embedding->segment = 2; },
     "embedding table: expected a embedding segment"},
    {"EmbeddingOutOfRange", [](Manifest& m) { m.embedding->segment = 8; },
     "embedding table: expected a segment below 8"},
    {"EmbeddingSize", [](Manifest& m) { m.embedding->width = 7; },
     "segment 'embedding': expected bf16 [11,7]"},
    {"EmbeddingNoColumns", [](Manifest& m) { m.embedding->width = 0; },
     "segment 'embedding': expected bf16 [11,0]"},
    {"EmbeddingOverflows",
     [](Manifest& m) {
       m.embedding->width = ~0u;
       m.embedding->dtype = DType::kF64;
     },
     "segment 'embedding'"},
    {"EmbeddingOfPartBlocks",
     [](Manifest& m) { m.embedding->dtype = DType::kQ8_0; },
     "segment 'embedding': expected q8_0 [11,6]"},
    {"EmbeddingOfCodes", [](Manifest& m) { m.embedding->dtype = DType::kU16; },
     "unexpected element type u16"},
    {"NoEmbedding", [](Manifest& m) { m.embedding.reset(); }, ""},
    {"EmbeddingAsInput", [](Manifest& m) { TakeEmbedding(m, 6); }, ""},
    {"EmbeddingOfOtherWidth", [](Manifest& m) { TakeEmbedding(m, 5); },
     "embedding: expected shape [4,6], found [4,5]"},
    {"EmbeddingWithoutTable",
     [](Manifest& m) {
       TakeEmbedding(m, 6);
       m.embedding.reset();
     },
     "embedding: the artifact has no embedding table"},
    // Generation defaults.
    {"EndIdOutOfVocabulary", [](Manifest& m) { m.generation.end_ids = {11}; },
     "end of answer"},
    {"EndIdNegative", [](Manifest& m) { m.generation.end_ids = {-1}; },
     "end of answer"},
    {"NoEndIds", [](Manifest& m) { m.generation.end_ids.clear(); }, ""},
    {"BosOutOfVocabulary", [](Manifest& m) { m.generation.bos_id = 11; },
     "begin of text"},
    {"TemperatureNegative",
     [](Manifest& m) { m.generation.temperature = -0.5f; }, "temperature"},
    {"TemperatureNan", [](Manifest& m) { m.generation.temperature = kNan; },
     "temperature"},
    {"TopKNegative", [](Manifest& m) { m.generation.top_k = -1; }, "top_k"},
    {"TopPAboveOne", [](Manifest& m) { m.generation.top_p = 1.5f; }, "top_p"},
    {"MinPNan", [](Manifest& m) { m.generation.min_p = kNan; }, "min_p"},
    {"RepetitionPenaltyZero",
     [](Manifest& m) { m.generation.repetition_penalty = 0.0f; },
     "repetition_penalty"},
    // One graph.
    {"GraphContext", [](Manifest& m) { m.graphs[1].context_tokens = 4; },
     "graph 'kv': expected the artifact's context length 8"},
    {"NoStep", [](Manifest& m) { m.graphs[1].step_tokens = 0; },
     "graph 'kv': expected steps"},
    {"StepBeyondContext", [](Manifest& m) { m.graphs[1].step_tokens = 9; },
     "graph 'kv': expected steps"},
    {"ProgramOutOfRange", [](Manifest& m) { m.graphs[0].program = ~0u; },
     "graph 'prefill_4': program: expected a segment below 8"},
    {"ProgramIsWeights", [](Manifest& m) { m.graphs[0].program = 2; },
     "program: expected a cpu plan segment"},
    {"Backend", [](Manifest& m) { m.graphs[0].backend = "gpu"; }, "backend"},
    {"HtpNeedsAContext", [](Manifest& m) { m.graphs[0].backend = "htp"; },
     "program: expected a qnn context segment"},
    {"SimulatorProgramOfTheCpu",
     [](Manifest& m) { m.graphs[0].simulator_program = 0; },
     "it has a simulator program and is for the CPU"},
    {"SimulatorProgramIsAPlan",
     [](Manifest& m) {
       m.graphs[0].backend = "htp";
       m.segments[0].kind = SegmentKind::kQnnContext;
       m.graphs[0].simulator_program = 1;
     },
     "simulator program: expected a qnn context segment"},
    {"GraphNameTwice", [](Manifest& m) { m.graphs[1].name = "prefill_4"; },
     "the name is used twice"},
    {"GraphWithoutName", [](Manifest& m) { m.graphs[1].name.clear(); },
     "graph '': the name"},
    // Inputs and outputs.
    {"OutputAsInput",
     [](Manifest& m) { m.graphs[0].inputs.push_back(Io(m, 0, "logits")); },
     "logits is no input"},
    {"InputAsOutput",
     [](Manifest& m) { m.graphs[0].outputs.push_back(Io(m, 0, "token")); },
     "token is no output"},
    {"RoleTwice",
     [](Manifest& m) { m.graphs[0].inputs.push_back(Io(m, 0, "mask[1]")); },
     "mask[1] is listed twice"},
    {"MaskIndex", [](Manifest& m) { m.mask_windows.pop_back(); },
     "mask[1]: index 1: the artifact has 1"},
    {"RopeIndex", [](Manifest& m) { Io(m, 0, "rope_sin[0]").role.index = 1; },
     "rope_sin[1]: index 1: the artifact has 1"},
    {"LayerIndex", [](Manifest& m) { Io(m, 0, "v_out[1]").role.index = 2; },
     "v_out[2]: index 2: the artifact has 2"},
    {"NegativeIndex", [](Manifest& m) { Io(m, 0, "k_in[1]").role.index = -1; },
     "k_in[-1]"},
    {"TapWithoutName",
     [](Manifest& m) { Io(m, 0, "tap[layers.0]").role.name.clear(); },
     "a tap needs a name"},
    {"NameOfAnotherRole",
     [](Manifest& m) { Io(m, 0, "token").role.name = "x"; },
     "a tap needs a name"},
    {"TokenType", [](Manifest& m) { Io(m, 0, "token").dtype = DType::kF32; },
     "token: unexpected element type f32"},
    {"BlockType", [](Manifest& m) { Io(m, 0, "logits").dtype = DType::kQ4_0; },
     "logits: unexpected element type q4_0"},
    {"FloatWithEncoding",
     [](Manifest& m) { Io(m, 0, "logits").encoding = IoEncoding{}; },
     "logits: f32 has no encoding"},
    {"CodesWithoutEncoding",
     [](Manifest& m) { Io(m, 0, "k_in[0]").encoding.reset(); },
     "k_in[0]: u8 needs an encoding"},
    {"ScaleZero", [](Manifest& m) { Io(m, 0, "k_in[0]").encoding->scale = 0; },
     "k_in[0]: bad encoding"},
    {"ScaleNan",
     [](Manifest& m) { Io(m, 0, "k_in[0]").encoding->scale = kNan; },
     "k_in[0]: bad encoding"},
    {"ZeroPoint",
     [](Manifest& m) { Io(m, 0, "k_in[0]").encoding->zero_point = 256; },
     "k_in[0]: bad encoding"},
    {"MaskCodesEqual",
     [](Manifest& m) { Io(m, 0, "mask[0]").mask_hidden = 0xffff; },
     "mask[0]: expected two different u16 codes"},
    {"MaskCodeTooWide",
     [](Manifest& m) { Io(m, 0, "mask[0]").mask_visible = 0x10000; },
     "mask[0]: expected two different u16 codes"},
    {"MaskCodesElsewhere",
     [](Manifest& m) { Io(m, 0, "token").mask_hidden = 1; },
     "token: it has mask codes"},
    // Shapes.
    {"TokenShape", [](Manifest& m) { Io(m, 0, "token").shape = {5}; },
     "token: expected shape [4], found [5]"},
    {"TokenRank", [](Manifest& m) { Reshape(m, "token", 1, 4); },
     "token: expected shape [4], found [1,4]"},
    {"MaskShape", [](Manifest& m) { Reshape(m, "mask[0]", 4, 4); },
     "mask[0]: expected shape [4,8], found [4,4]"},
    {"KShape", [](Manifest& m) { Reshape(m, "k_in[0]", 2, 4, 5); },
     "k_in[0]: expected shape [G,D,4], found [2,4,5]"},
    {"VShape", [](Manifest& m) { Reshape(m, "v_out[0]", 2, 0, 4); },
     "v_out[0]: expected shape [G,4,D], found [2,0,4]"},
    {"RopeShape", [](Manifest& m) { Reshape(m, "rope_cos[0]", 4, 3); },
     "rope_cos[0]: expected shape [4,2], found [4,3]"},
    {"LogitsShape", [](Manifest& m) { Reshape(m, "logits", 4, 10); },
     "logits: expected shape [4,11], found [4,10]"},
    {"LastLogits",
     [](Manifest& m) {
       m.graphs[0].logits_rows = LogitsRows::kLast;
       Io(m, 0, "logits").shape = {1, 11};
     },
     ""},
    {"LastLogitsShape",
     [](Manifest& m) { m.graphs[0].logits_rows = LogitsRows::kLast; },
     "logits: expected shape [1,11], found [4,11]"},
    {"NegativeSize",
     [](Manifest& m) { Io(m, 0, "tap[layers.0]").shape = {-1}; },
     "tap[layers.0]: expected shape"},
    {"HugeShape",
     [](Manifest& m) {
       Io(m, 0, "tap[layers.0]").shape = {int64_t{1} << 62, 8};
     },
     "tap[layers.0]: shape [4611686018427387904,8] is too large"},
    // Between the inputs and outputs of a step, and between steps.
    {"NoToken", [](Manifest& m) { Remove(m.graphs[0].inputs, "token"); },
     "expected one of token or embedding"},
    {"NoLogits", [](Manifest& m) { Remove(m.graphs[0].outputs, "logits"); },
     "expected logits"},
    {"NoLogitsRows",
     [](Manifest& m) {
       m.graphs[0].logits_rows = LogitsRows::kNone;
       Remove(m.graphs[0].outputs, "logits");
     },
     ""},
    {"KvOutMissing",
     [](Manifest& m) { Remove(m.graphs[0].outputs, "v_out[1]"); },
     "layer 1 has not all of"},
    {"KvInMissing", [](Manifest& m) { Remove(m.graphs[0].inputs, "k_in[0]"); },
     "layer 0 has not all of"},
    {"KvEncodingDiffers",
     [](Manifest& m) { Io(m, 0, "k_out[0]").encoding->scale = 0.25f; },
     "the KV inputs and outputs of layer 0 differ"},
    {"KvHeadsDiffer",
     [](Manifest& m) {
       Io(m, 0, "v_in[0]").shape[0] = 3;
       Io(m, 0, "v_out[0]").shape[0] = 3;
     },
     "the KV inputs and outputs of layer 0 differ"},
    {"StepsDiffer",
     [](Manifest& m) {
       Io(m, 0, "v_in[0]").shape[2] = 3;
       Io(m, 0, "v_out[0]").shape[2] = 3;
     },
     "differs from that of the other steps"},
    {"LayerMissingInOneStep",
     [](Manifest& m) {
       for (const char* role : {"k_in[1]", "v_in[1]"}) {
         Remove(m.graphs[1].inputs, role);
       }
       for (const char* role : {"k_out[1]", "v_out[1]"}) {
         Remove(m.graphs[1].outputs, role);
       }
     },
     "differs from that of the other steps"},
    {"NoMask",
     [](Manifest& m) {
       Remove(m.graphs[0].inputs, "mask[0]");
       Remove(m.graphs[0].inputs, "mask[1]");
     },
     "it has a KV cache and no mask"},
    {"SecondShardAlone", [](Manifest& m) { m.graphs[0].shard = 1; },
     "expected shard 0 of its step, found 1"},
};

class ValidateManifestTest : public ::testing::TestWithParam<Case> {};

TEST_P(ValidateManifestTest, Says) {
  Manifest manifest = MakeTestArtifact()->manifest();
  GetParam().change(manifest);
  const Status status = ValidateManifest(manifest);
  const std::string_view expected = GetParam().message;
  if (expected.empty()) {
    EXPECT_TRUE(status.ok()) << status.error().message;
    return;
  }
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code, ErrorCode::kBadInput);
  EXPECT_THAT(status.error().message,
              ::testing::HasSubstr(std::string(expected)));
}

INSTANTIATE_TEST_SUITE_P(All, ValidateManifestTest, ::testing::ValuesIn(kCases),
                         [](const auto& row) { return row.param.name; });

// Cuts the prefill graph in two: layer 0 with the tokens, layer 1 with the
// logits.
Manifest MakeSharded() {
  Manifest m = MakeTestArtifact()->manifest();
  GraphEntry second = m.graphs[0];
  GraphEntry& first = m.graphs[0];
  for (const char* role : {"k_in[1]", "v_in[1]"}) Remove(first.inputs, role);
  for (const char* role : {"k_out[1]", "v_out[1]", "logits"}) {
    Remove(first.outputs, role);
  }
  for (const char* role : {"k_in[0]", "v_in[0]", "token"}) {
    Remove(second.inputs, role);
  }
  for (const char* role : {"k_out[0]", "v_out[0]"}) {
    Remove(second.outputs, role);
  }
  IoSpec hidden;
  hidden.role.kind = RoleKind::kHiddenOut;
  hidden.shape = {4, 16};
  first.outputs.push_back(hidden);
  hidden.role.kind = RoleKind::kHiddenIn;
  second.inputs.push_back(hidden);
  second.name = "prefill_4.1";
  second.shard = 1;
  m.graphs.push_back(second);
  return m;
}

TEST(ValidateShardsTest, CompleteShardsAreLegal) {
  const Status status = ValidateManifest(MakeSharded());
  EXPECT_TRUE(status.ok()) << status.error().message;
}

TEST(ValidateShardsTest, HiddenStatesMustBeEqual) {
  Manifest m = MakeSharded();
  Io(m, 2, "hidden_in").shape = {4, 15};
  const Status status = ValidateManifest(m);
  ASSERT_FALSE(status.ok());
  EXPECT_THAT(status.error().message,
              ::testing::HasSubstr("hidden_in differs"));
}

TEST(ValidateShardsTest, ALayerBelongsToOneShard) {
  Manifest m = MakeSharded();
  m.graphs[2].inputs = m.graphs[0].inputs;
  m.graphs[2].outputs = m.graphs[0].outputs;
  Remove(m.graphs[2].inputs, "token");
  Remove(m.graphs[2].outputs, "hidden_out");
  IoSpec hidden;
  hidden.role.kind = RoleKind::kHiddenIn;
  hidden.shape = {4, 16};
  m.graphs[2].inputs.push_back(hidden);
  m.graphs[2].logits_rows = LogitsRows::kNone;
  const Status status = ValidateManifest(m);
  ASSERT_FALSE(status.ok());
  EXPECT_THAT(status.error().message,
              ::testing::HasSubstr("layer 0 is in two shards"));
}

TEST(ValidatePastTest, AStepOverTheWholeContextHasNoPast) {
  Manifest m = MakeTestArtifact()->manifest();
  m.context_tokens = 4;
  m.graphs.pop_back();
  GraphEntry& graph = m.graphs[0];
  graph.context_tokens = 4;
  Io(m, 0, "mask[0]").shape = {4, 4};
  Io(m, 0, "mask[1]").shape = {4, 4};
  for (const char* role : {"k_in[0]", "k_in[1]"}) Io(m, 0, role).shape[2] = 0;
  for (const char* role : {"v_in[0]", "v_in[1]"}) Io(m, 0, role).shape[1] = 0;
  Status status = ValidateManifest(m);
  EXPECT_TRUE(status.ok()) << status.error().message;
  for (const char* role : {"k_in[0]", "k_in[1]", "v_in[0]", "v_in[1]"}) {
    Remove(graph.inputs, role);
  }
  status = ValidateManifest(m);
  EXPECT_TRUE(status.ok()) << status.error().message;
}

}  // namespace
}  // namespace hexllm::artifact
