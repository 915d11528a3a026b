// Evictor graphs on the CPU engine, driven by the runtime's attention sink:
// keys at new positions against float references.
#include "compile/evictor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <numeric>
#include <random>
#include <vector>

#include "artifact/writer.h"
#include "backend/cpu/engine.h"
#include "runtime/attention_sink.h"
#include "runtime/io_codec.h"
#include "tests/support/golden_tensors.h"
#include "tests/support/io_spec.h"

namespace hexllm {
namespace {

using artifact::IoSpec;
using artifact::Manifest;
using artifact::SinkSettings;
using testing::MakeIo;

constexpr int64_t kHeads = 2;  // G
constexpr int64_t kDim = 16;   // D
constexpr uint32_t kContext = 41;
constexpr uint32_t kCapacity = kContext - 1;
constexpr uint32_t kHalf = kDim / 2;
constexpr int64_t kRows = kHeads * kDim;

// The form of the key cache.
struct Form {
  DType dtype = DType::kF32;
  std::optional<artifact::IoEncoding> encoding = {};
};

double Angle(int64_t position, int64_t i) {
  return static_cast<double>(position) *
         std::pow(1e4, -static_cast<double>(i) / kHalf);
}

void AddRope(artifact::MemorySink& sink, Manifest& manifest, double factor) {
  std::vector<float> cos, sin;
  for (uint32_t p = 0; p < kContext; ++p) {
    for (uint32_t i = 0; i < kHalf; ++i) {
      cos.push_back(static_cast<float>(factor * std::cos(Angle(p, i))));
      sin.push_back(static_cast<float>(factor * std::sin(Angle(p, i))));
    }
  }
  const auto add = [&](const char* name, const std::vector<float>& values) {
    return sink
        .Add({name, artifact::SegmentKind::kRopeTable},
             std::as_bytes(std::span(values)))
        .value();
  };
  manifest.rope_tables = {{.cos_segment = add("cos", cos),
                           .sin_segment = add("sin", sin),
                           .positions = kContext,
                           .half_dim = kHalf}};
}

IoSpec Cache(const Form& form, RoleKind kind, Shape shape) {
  IoSpec spec = MakeIo({kind, 0}, form.dtype, std::move(shape));
  spec.encoding = form.encoding;
  return spec;
}

// One layer, whose kv graph nobody runs.
std::shared_ptr<const artifact::Artifact> MakeArtifact(
    const Form& form, const SinkSettings& settings, double rope_factor = 1) {
  artifact::MemorySink sink;
  Manifest manifest;
  manifest.producer = "hexllm test";
  manifest.stage = "fp";
  manifest.vocab_size = 4;
  manifest.layers = 1;
  manifest.context_tokens = kContext;
  manifest.mask_windows = {0};
  manifest.key_ropes = {0};
  AddRope(sink, manifest, rope_factor);
  artifact::GraphEntry kv;
  kv.name = "kv";
  kv.context_tokens = kContext;
  kv.backend = "cpu";
  kv.program =
      sink.Add({"plan/kv", artifact::SegmentKind::kCpuPlan}, AsBytes("none"))
          .value();
  kv.inputs = {MakeIo({RoleKind::kToken}, DType::kI32, {1}),
               testing::MakeMaskIo(0, DType::kF32, {1, kContext}),
               Cache(form, RoleKind::kKIn, {kHeads, kDim, kCapacity}),
               Cache({}, RoleKind::kVIn, {kHeads, kCapacity, 1})};
  kv.outputs = {MakeIo({RoleKind::kLogits}, DType::kF32, {1, 4}),
                Cache(form, RoleKind::kKOut, {kHeads, kDim, 1}),
                Cache({}, RoleKind::kVOut, {kHeads, 1, 1})};
  manifest.graphs = {kv};
  const Status added = AddEvictor({}, settings, sink, manifest);
  EXPECT_TRUE(added.ok()) << added.error().message;
  auto made = std::move(sink).Finish(std::move(manifest), nullptr);
  EXPECT_TRUE(made.ok()) << made.error().message;
  return std::move(made).value();
}

// A cache with a sink, and the keys before their rotation. Value [g] of a token
// is its number.
class Cached {
 public:
  Cached(const Form& form, const SinkSettings& settings, double factor = 1,
         KvUpdate update = KvUpdate::kSmartMask)
      : artifact_(MakeArtifact(form, settings, factor)),
        factor_(factor),
        spec_(Cache(form, RoleKind::kKOut, {kHeads, kDim, 1})),
        engine_(cpu::CreateEngine({.threads = 1}).value()),
        kv_(KvManager::Create(
                *engine_,
                {.k = {{static_cast<uint64_t>(kRows),
                        ElementBytes(form.dtype)}},
                 .v = {{static_cast<uint64_t>(kHeads), sizeof(float)}},
                 .capacity = kCapacity},
                update)
                .value()) {
    auto sink = AttentionSink::Create({artifact_, engine_.get(), &kv_});
    EXPECT_TRUE(sink.ok()) << sink.error().message;
    sink_ = std::move(sink).value();
  }

  KvManager& kv() { return kv_; }
  AttentionSink& sink() { return *sink_; }

  // Appends a token with the given key [G*D] before rotation.
  void Append(std::vector<float> raw) {
    const std::vector<float> turned = Turned(raw, kv_.tokens());
    std::vector<std::byte> k(turned.size() * ElementBytes(spec_.dtype));
    EncodeFloats(turned, spec_, k);
    const std::vector<float> v(kHeads, static_cast<float>(appended_++));
    StepColumns step;
    step.k = {k};
    step.v = {std::as_bytes(std::span(v))};
    step.step_tokens = 1;
    const uint32_t column = 0;
    kv_.Commit(step, {&column, 1});
    raw_.push_back(std::move(raw));
  }

  void Evict() {
    const Status status = sink_->Evict();
    ASSERT_TRUE(status.ok()) << status.error().message;
    const auto first = raw_.begin() + sink_->sink_tokens();
    raw_.erase(first, first + sink_->evict_tokens());
  }

  // Row `row` of column `column` of the cache.
  float Key(int64_t row, uint32_t column) {
    const size_t size = ElementBytes(spec_.dtype);
    const auto bytes = kv_.Positions(RoleKind::kKIn, 0);
    const auto at = static_cast<size_t>(row) * kv_.past_columns() + column;
    float value = 0;
    DecodeFloats(bytes.subspan(at * size, size), spec_, {&value, 1});
    return value;
  }
  float Value(uint32_t column) {
    float value = 0;
    std::memcpy(
        &value,
        kv_.Positions(RoleKind::kVIn, 0).data() + column * sizeof(value),
        sizeof(value));
    return value;
  }

  // The largest difference between a cached key and what it should be.
  double WorstError() {
    double worst = 0;
    for (uint32_t c = 0; c < kv_.tokens(); ++c) {
      const std::vector<float> wanted = Turned(raw_[c], c);
      for (int64_t r = 0; r < kRows; ++r) {
        worst = std::max<double>(
            worst, std::abs(Key(r, c) - wanted[static_cast<size_t>(r)]));
      }
    }
    return worst;
  }

 private:
  std::vector<float> Turned(const std::vector<float>& raw, int64_t position) {
    std::vector<float> out(raw.size());
    for (int64_t g = 0; g < kHeads; ++g) {
      for (int64_t i = 0; i < kHalf; ++i) {
        const auto a = static_cast<size_t>(g * kDim + i);
        const size_t b = a + kHalf;
        const double c = factor_ * std::cos(Angle(position, i));
        const double s = factor_ * std::sin(Angle(position, i));
        out[a] = static_cast<float>(raw[a] * c - raw[b] * s);
        out[b] = static_cast<float>(raw[b] * c + raw[a] * s);
      }
    }
    return out;
  }

  std::shared_ptr<const artifact::Artifact> artifact_;
  double factor_;
  IoSpec spec_;
  std::unique_ptr<Engine> engine_;
  KvManager kv_;
  std::unique_ptr<AttentionSink> sink_;
  std::vector<std::vector<float>> raw_;  // of the tokens in the cache
  int appended_ = 0;
};

// The reference values of tests/data: 40 keys, 12 evicted after 4.
TEST(Evictor, EqualsTheReference) {
  const testing::GoldenTensors golden(
      testing::DataPath("quant/attention_sink.safetensors"));
  const auto settings = golden.Ints("sink_evict");
  const auto keep = golden.Ints("keep");
  const auto raw = golden.Floats("k_raw");           // [G,N,D]
  const auto after = golden.Floats("half.k_after");  // [G,N',D]
  ASSERT_EQ(raw.size(), static_cast<size_t>(kRows) * kCapacity);
  for (const KvUpdate update :
       {KvUpdate::kSmartMask, KvUpdate::kShiftPointer}) {
    Cached cached({},
                  {static_cast<uint32_t>(settings[0]),
                   static_cast<uint32_t>(settings[1])},
                  1, update);
    const auto at = [&](const std::vector<float>& from, int64_t row,
                        size_t column, size_t columns) {
      const auto g = static_cast<size_t>(row / kDim);
      const auto d = static_cast<size_t>(row % kDim);
      return from[(g * columns + column) * kDim + d];
    };
    for (uint32_t c = 0; c < kCapacity; ++c) {
      std::vector<float> key;
      for (int64_t r = 0; r < kRows; ++r)
        key.push_back(at(raw, r, c, kCapacity));
      cached.Append(std::move(key));
    }
    cached.Evict();
    ASSERT_EQ(cached.kv().tokens(), keep.size());
    for (uint32_t c = 0; c < keep.size(); ++c) {
      EXPECT_EQ(cached.Value(c), static_cast<float>(keep[c]));
      for (int64_t r = 0; r < kRows; ++r)
        ASSERT_NEAR(cached.Key(r, c), at(after, r, c, keep.size()), 1e-5);
    }
  }
}

class Drift : public ::testing::TestWithParam<Form> {};

// 50 evictions with few tokens each, so that a key is turned many times.
TEST_P(Drift, KeysStayAsGoodAsTheyWere) {
  const Form& form = GetParam();
  const SinkSettings settings{3, 2};
  // Attention factors of longrope are in the tables and in the keys.
  Cached cached(form, settings, 1.25);
  std::mt19937 random(5);
  std::normal_distribution<float> normal(0.0f, 0.7f);
  const auto append = [&] {
    std::vector<float> key(kRows);
    for (float& x : key) x = std::clamp(normal(random), -2.0f, 2.0f);
    cached.Append(std::move(key));
  };
  // Rounded once when stored and once when turned; turning a pair of numbers
  // makes the first error sqrt(2) times as large at most. The RoPE rows of
  // encoded graphs have 16 bits.
  const double scale = form.encoding ? form.encoding->scale : 4e-6;
  const double most =
      scale * (0.5 * std::sqrt(2.0) + 0.5 + 0.02) + (form.encoding ? 8e-5 : 0);
  for (int eviction = 0; eviction < 50; ++eviction) {
    while (cached.kv().tokens() < kCapacity) append();
    cached.Evict();
    ASSERT_LE(cached.WorstError(), most) << "eviction " << eviction;
  }
  EXPECT_EQ(cached.sink().evictions(), 50U);
}

INSTANTIATE_TEST_SUITE_P(
    Forms, Drift,
    ::testing::Values(Form{},
                      Form{DType::kU8, artifact::IoEncoding{0.03f, 130}},
                      Form{DType::kU16, artifact::IoEncoding{1.2e-4f, 32768}}),
    [](const auto& test) { return std::string(DTypeName(test.param.dtype)); });

TEST(Evictor, RefusesSettingsWithoutRoom) {
  EXPECT_TRUE(CheckSink({4, 35}, kContext).ok());
  for (const SinkSettings& bad :
       {SinkSettings{4, 36}, SinkSettings{0, 4}, SinkSettings{4, 0},
        SinkSettings{UINT32_MAX, UINT32_MAX}}) {
    EXPECT_EQ(CheckSink(bad, kContext).error().code, ErrorCode::kUsage);
  }
}

}  // namespace
}  // namespace hexllm
