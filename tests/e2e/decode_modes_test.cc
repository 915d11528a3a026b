// A tiny decoder on the CPU engine gives the same logits, bit for bit, and the
// same greedy tokens in every decode mode: kv alone, and hybrid with blocks
// that divide the prompt, do not, or are longer than it.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "artifact/writer.h"
#include "backend/cpu/engine.h"
#include "backend/cpu/lower.h"
#include "runtime/session.h"
#include "tests/support/tiny_decoder.h"

namespace hexllm {
namespace {

using Ids = std::vector<int32_t>;
using Rows = std::vector<std::vector<float>>;

constexpr uint32_t kContext = 40;
constexpr uint32_t kHalfDim = testing::kTinyHeadDim / 2;

Ids Prompt(size_t tokens) {
  Ids ids;
  for (size_t i = 0; i < tokens; ++i)
    ids.push_back(
        static_cast<int32_t>((i * i * 3 + 2 * i + 1) % testing::kTinyVocab));
  return ids;
}

Status AddRopeTable(artifact::MemorySink& sink, artifact::Manifest& manifest) {
  std::vector<float> cos, sin;
  for (uint32_t position = 0; position < kContext; ++position) {
    for (uint32_t i = 0; i < kHalfDim; ++i) {
      const double angle =
          position * std::pow(1e4, -static_cast<double>(i) / kHalfDim);
      cos.push_back(static_cast<float>(std::cos(angle)));
      sin.push_back(static_cast<float>(std::sin(angle)));
    }
  }
  artifact::RopeTable table{.positions = kContext, .half_dim = kHalfDim};
  HX_ASSIGN_OR_RETURN(table.cos_segment,
                      sink.Add({"rope/cos", artifact::SegmentKind::kRopeTable},
                               std::as_bytes(std::span(cos))));
  HX_ASSIGN_OR_RETURN(table.sin_segment,
                      sink.Add({"rope/sin", artifact::SegmentKind::kRopeTable},
                               std::as_bytes(std::span(sin))));
  manifest.rope_tables = {table};
  return OkStatus();
}

// The kv graph, and a prefill graph of `block` tokens unless that is 1.
Result<std::shared_ptr<const artifact::Artifact>> MakeArtifact(uint32_t block) {
  auto module = std::make_shared<ir::Module>([block] {
    testing::TinyDecoder decoder;
    decoder.AddGraph("kv", 1, kContext);
    if (block > 1) decoder.AddGraph("prefill", block, kContext);
    return std::move(decoder).Take();
  }());
  artifact::Manifest manifest;
  manifest.producer = "hexllm test";
  manifest.stage = "fp";
  manifest.vocab_size = testing::kTinyVocab;
  manifest.layers = testing::kTinyLayers;
  manifest.context_tokens = kContext;
  manifest.mask_windows = {0};
  artifact::MemorySink sink;
  NullProgress progress;
  HX_ASSIGN_OR_RETURN(manifest.graphs, cpu::Lower(*module, sink, progress));
  HX_RETURN_IF_ERROR(AddRopeTable(sink, manifest));
  return std::move(sink).Finish(std::move(manifest), module);
}

class Model {
 public:
  explicit Model(uint32_t block) {
    auto artifact = MakeArtifact(block);
    auto engine = cpu::CreateEngine({.threads = 2});
    EXPECT_TRUE(artifact.ok()) << artifact.error().message;
    EXPECT_TRUE(engine.ok()) << engine.error().message;
    engine_ = std::move(engine).value();
    auto session = Session::Create({.artifact = std::move(artifact).value(),
                                    .engine = engine_.get(),
                                    .options = {}});
    EXPECT_TRUE(session.ok()) << session.error().message;
    session_ = std::move(session).value();
  }

  Session& session() { return *session_; }

  Rows Logits(const Ids& ids) {
    Rows rows;
    EXPECT_TRUE(session_
                    ->Logits(ids,
                             [&](uint32_t, std::span<const float> row) {
                               rows.emplace_back(row.begin(), row.end());
                               return OkStatus();
                             })
                    .ok());
    return rows;
  }

  // Greedy tokens until the context is full.
  Ids Generate() {
    Ids ids;
    GenerateOptions options;
    options.sampler.temperature = 0;
    const auto result =
        session_->Generate(options, [&](int32_t id) -> Result<TokenAction> {
          ids.push_back(id);
          return TokenAction::kContinue;
        });
    EXPECT_TRUE(result.ok()) << result.error().message;
    EXPECT_EQ(result->reason, FinishReason::kContextFull);
    return ids;
  }

 private:
  std::unique_ptr<Engine> engine_;
  std::unique_ptr<Session> session_;
};

TEST(DecodeModes, LogitsAreTheSameBits) {
  Model kv(1);
  const Ids ids = Prompt(kContext);
  const Rows expected = kv.Logits(ids);
  ASSERT_EQ(expected.size(), ids.size());
  EXPECT_NE(expected[3], expected[4]);
  for (const uint32_t block : {2U, 7U, 32U, kContext}) {
    const Rows rows = Model(block).Logits(ids);
    ASSERT_EQ(rows.size(), expected.size());
    for (size_t i = 0; i < rows.size(); ++i) {
      ASSERT_EQ(0, std::memcmp(rows[i].data(), expected[i].data(),
                               rows[i].size() * sizeof(float)))
          << "T = " << block << ", position " << i;
    }
  }
}

TEST(DecodeModes, GreedyTokensAreTheSame) {
  for (const size_t tokens : {1U, 6U, 14U, 15U, 33U}) {
    Model kv(1);
    ASSERT_TRUE(kv.session().Prefill(Prompt(tokens)).ok());
    const Ids expected = kv.Generate();
    EXPECT_EQ(expected.size(), kContext - tokens);
    for (const uint32_t block : {2U, 7U, 32U}) {
      Model hybrid(block);
      ASSERT_TRUE(hybrid.session().Prefill(Prompt(tokens)).ok());
      EXPECT_EQ(hybrid.Generate(), expected)
          << "T = " << block << ", " << tokens << " prompt tokens";
    }
  }
}

TEST(DecodeModes, AReusedPrefixChangesNothing) {
  const Ids first = Prompt(20);
  Ids second(first.begin(), first.begin() + 12);
  for (const int32_t id : {10, 9, 8, 7, 6, 5}) second.push_back(id);
  Model fresh(7);
  ASSERT_TRUE(fresh.session().Prefill(second).ok());
  const Ids expected = fresh.Generate();
  for (const uint32_t block : {1U, 7U}) {
    Model model(block);
    ASSERT_TRUE(model.session().Prefill(first).ok());
    model.Generate();
    EXPECT_EQ(model.session().ReplacePrompt(second).value(), 12U);
    EXPECT_EQ(model.Generate(), expected);
  }
}

}  // namespace
}  // namespace hexllm
