// What the HTP engine asks of a device's libraries, in which order, and what is
// left when one of them refuses: a whole session against
// tests/support/fake_qnn, which computes the fake model in the memory that was
// registered.
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "backend/engines.h"
#include "backend/htp/tensor_name.h"
#include "runtime/session.h"
#include "tests/support/fake_engine.h"
#include "tests/support/fake_qnn.h"
#include "tests/support/temp_dir.h"

namespace hexllm {
namespace {

using artifact::GraphEntry;
using artifact::IoSpec;
using ::testing::ElementsAre;
using testing::FakeQnn;
using testing::FakeReference;
using ::testing::HasSubstr;
using Ids = std::vector<int32_t>;
using Lines = std::vector<std::string>;

// A row of the fake's context binary (fake_qnn.cc).
std::string TensorLine(const char* direction, const IoSpec& spec) {
  const uint32_t type = spec.dtype == DType::kF32   ? 0x232
                        : spec.dtype == DType::kI32 ? 0x032
                                                    : 0x108;
  std::string line =
      fmt::format("{} {} {} {}", direction, htp::TensorNameOf(spec.role), type,
                  spec.shape.size());
  for (const int64_t dim : spec.shape) line += fmt::format(" {}", dim);
  return line + "\n";
}

// A fake model for SM8750: the prefill and kv graphs of a shard are in one
// context.
class DeviceArtifact final : public artifact::Artifact {
 public:
  explicit DeviceArtifact(const testing::FakeOptions& options)
      : base_(testing::MakeFakeArtifact(options)),
        binaries_(options.shards, "soc 69\n") {
    path_ = "(test)";
    manifest_ = base_->manifest();
    const auto first = static_cast<uint32_t>(manifest_.segments.size());
    for (GraphEntry& graph : manifest_.graphs) {
      graph.backend = "htp";
      graph.program = first + graph.shard;
      std::string& binary = binaries_[graph.shard];
      // The last shard's prefill needs the largest spill-fill buffer.
      binary += fmt::format("graph {} {}\n", graph.name,
                            1000 * (graph.shard + 1) + graph.step_tokens);
      for (const IoSpec& spec : graph.inputs) binary += TensorLine("in", spec);
      for (const IoSpec& spec : graph.outputs)
        binary += TensorLine("out", spec);
    }
    for (const std::string& binary : binaries_) {
      manifest_.segments.push_back({.name = "context",
                                    .kind = artifact::SegmentKind::kQnnContext,
                                    .offset = 0,
                                    .bytes = binary.size(),
                                    .checksum = {}});
    }
  }
  ByteSpan Segment(uint32_t index) const override {
    const size_t own = base_->manifest().segments.size();
    return index < own ? base_->Segment(index)
                       : AsBytes(binaries_[index - own]);
  }

 private:
  std::shared_ptr<const Artifact> base_;
  std::vector<std::string> binaries_;
};

class HtpDevice : public ::testing::Test {
 protected:
  void SetUp() override {
    for (const char* name : {"libQnnHtp.so", "libQnnSystem.so"}) Link(name);
    Link("libcdsprpc.so");
    library_ = dlopen(HEXLLM_FAKE_QNN, RTLD_NOW | RTLD_LOCAL);
    ASSERT_NE(library_, nullptr) << dlerror();
    qnn_ = reinterpret_cast<testing::GetFakeQnn>(
        dlsym(library_, testing::kFakeQnnSymbol))();
    qnn_->run = [this](const std::string& graph, const auto& in,
                       const auto& out) { Compute(graph, in, out); };
    options_.kv_dtype = DType::kU8;
    options_.shards = 3;
    artifact_ = std::make_shared<DeviceArtifact>(options_);
  }
  void TearDown() override {
    session_.reset();
    engine_.reset();
    EXPECT_THAT(Names(qnn_->live), ElementsAre());
    dlclose(library_);
  }

  void Link(const char* name) {
    std::filesystem::create_symlink(HEXLLM_FAKE_QNN, folder_.File(name));
  }

  // What the device does in a run.
  void Compute(const std::string& name, const std::vector<std::byte*>& in,
               const std::vector<std::byte*>& out) {
    const auto& graphs = artifact_->manifest().graphs;
    const auto entry = std::ranges::find(graphs, name, &GraphEntry::name);
    testing::FakeFaults faults;
    testing::FakeGraph graph(
        artifact_, static_cast<size_t>(entry - graphs.begin()), &faults);
    const auto bind = [&](IoDirection direction, const auto& specs,
                          const auto& memory) {
      for (size_t i = 0; i < specs.size(); ++i) {
        const auto bytes = *StorageBytes(specs[i].dtype, specs[i].shape);
        ASSERT_TRUE(graph.Bind(direction, i, {memory.at(i), bytes}).ok());
      }
    };
    bind(IoDirection::kInput, entry->inputs, in);
    bind(IoDirection::kOutput, entry->outputs, out);
    const Status done = graph.Execute({});
    EXPECT_TRUE(done.ok()) << done.error().message;
  }

  Status Open(BackendOptions options = {}) {
    options.qnn_lib_dir = folder_.path();
    HX_ASSIGN_OR_RETURN(engine_, CreateEngine("htp", options));
    HX_ASSIGN_OR_RETURN(session_, Session::Create({.artifact = artifact_,
                                                   .engine = engine_.get(),
                                                   .options = {}}));
    return OkStatus();
  }
  // The greedy answer to kPrompt.
  Result<Ids> Answer() {
    HX_RETURN_IF_ERROR(session_->Prefill(kPrompt));
    Ids answer;
    const GenerateOptions greedy{.sampler = {.temperature = 0},
                                 .max_new_tokens = 6,
                                 .max_seq_len = {},
                                 .ignore_end_ids = true};
    auto done = session_->Generate(greedy, [&](int32_t id) {
      answer.push_back(id);
      return Result<TokenAction>(TokenAction::kContinue);
    });
    if (!done.ok()) return std::move(done).error();
    return answer;
  }
  void ExpectAnswer() {
    const auto answer = Answer();
    ASSERT_TRUE(answer.ok()) << answer.error().message;
    EXPECT_EQ(*answer, FakeReference::Greedy(options_, kPrompt, 6));
  }

  // The calls that begin with one of `names`.
  Lines Calls(const Lines& names) const {
    Lines found;
    for (const std::string& call : qnn_->calls) {
      const std::string name = call.substr(0, call.find(' '));
      if (std::ranges::count(names, name) > 0) found.push_back(call);
    }
    return found;
  }
  template <typename Map>
  static Lines Names(const Map& map) {
    Lines names;
    for (const auto& [name, value] : map) names.push_back(name);
    return names;
  }

  // Two blocks of 7 with padding, then single steps.
  const Ids kPrompt = {3, 1, 4, 1, 5, 9, 2, 6, 5, 3};

  testing::TempDir folder_;
  void* library_ = nullptr;
  FakeQnn* qnn_ = nullptr;
  testing::FakeOptions options_;
  std::shared_ptr<DeviceArtifact> artifact_;
  std::unique_ptr<Engine> engine_;
  std::unique_ptr<Session> session_;
};

TEST_F(HtpDevice, ASessionIsOneAllocationRegisteredOnce) {
  const Status opened = Open();
  ASSERT_TRUE(opened.ok()) << opened.error().message;
  ExpectAnswer();
  EXPECT_EQ(Calls({"rpcmem_alloc", "rpcmem_alloc2"}).size(), 1U);
  // A call for each graph, whatever the number of layers and steps.
  EXPECT_EQ(Calls({"memRegister"}).size(), artifact_->manifest().graphs.size());
  size_t tensors = 0;
  for (const GraphEntry& graph : artifact_->manifest().graphs)
    tensors += graph.inputs.size() + graph.outputs.size();
  size_t registered = 0;
  for (const auto& [handle, memory] : qnn_->live) {
    if (memory.context.empty()) continue;
    ++registered;
    EXPECT_EQ(memory.offset % kBufferAlignment, 0U) << handle;
  }
  EXPECT_EQ(registered, tensors);
  // All that was reserved is used.
  const std::string block = Calls({"rpcmem_alloc2"}).at(0);
  size_t end = 0;
  for (const auto& [handle, memory] : qnn_->live)
    end = std::max(end, memory.offset + memory.bytes);
  EXPECT_LE(std::stoul(block.substr(block.rfind(' '))), end + 4096 + 128);
}

TEST_F(HtpDevice, FreesInReverseOrder) {
  ASSERT_TRUE(Open().ok());
  qnn_->calls.clear();
  session_.reset();
  EXPECT_THAT(Calls({"contextFree", "rpcmem_free"}),
              ElementsAre("contextFree context 2", "contextFree context 3",
                          "contextFree context 1", "rpcmem_free"));
  // Deregistered in each context before it is freed, else the fake refuses.
  EXPECT_EQ(Calls({"memDeRegister"}).size(),
            artifact_->manifest().graphs.size());
  qnn_->calls.clear();
  engine_.reset();
  EXPECT_THAT(
      qnn_->calls,
      ElementsAre(HasSubstr("destroyPowerConfigId"), HasSubstr("deviceFree"),
                  HasSubstr("backendFree"), HasSubstr("logFree")));
}

TEST_F(HtpDevice, ShardsShareASpillFillBuffer) {
  ASSERT_TRUE(Open().ok());
  const Lines calls = Calls({"contextCreateFromBinary"});
  EXPECT_THAT(
      calls,
      ElementsAre("contextCreateFromBinary read=16 spill=3007 of null",
                  "contextCreateFromBinary read=16 spill=3007 of context 1",
                  "contextCreateFromBinary read=16 spill=3007 of context 1"));
}

TEST_F(HtpDevice, OneContextSharesNone) {
  options_.shards = 1;
  artifact_ = std::make_shared<DeviceArtifact>(options_);
  ASSERT_TRUE(Open().ok());
  EXPECT_THAT(Calls({"contextCreateFromBinary"}),
              ElementsAre("contextCreateFromBinary read=16"));
}

TEST_F(HtpDevice, ClocksAreUpWhileStepsRun) {
  ASSERT_TRUE(Open().ok());
  EXPECT_EQ(Calls({"setPowerConfig"}).size(), 0U);
  ASSERT_TRUE(Answer().ok());
  const std::string up =
      "setPowerConfig corners=a0,a0 dcvs=0 sleep=40 latency=100 polling=9999";
  const std::string down =
      "setPowerConfig corners=30,30 dcvs=1 sleep=2000 latency=0 polling=0";
  EXPECT_THAT(Calls({"setPowerConfig"}), ElementsAre(up, down, up, down));
  bool raised = false;
  for (const std::string& call : Calls({"setPowerConfig", "graphExecute"})) {
    if (call.starts_with("setPowerConfig")) {
      raised = call == up;
    } else {
      EXPECT_TRUE(raised);
    }
  }
}

TEST_F(HtpDevice, TakesAPerformanceMode) {
  ASSERT_TRUE(Open({.htp_performance = "balanced"}).ok());
  ASSERT_TRUE(session_->Prefill(kPrompt).ok());
  EXPECT_EQ(Calls({"setPowerConfig"}).at(0),
            "setPowerConfig corners=70,70 dcvs=1 sleep=1000 latency=100 "
            "polling=0");
}

TEST_F(HtpDevice, LeavesTheClocksAlone) {
  ASSERT_TRUE(Open({.htp_performance = "default"}).ok());
  ExpectAnswer();
  EXPECT_EQ(Calls({"deviceGetInfrastructure", "setPowerConfig"}).size(), 0U);
}

TEST_F(HtpDevice, CopiesWithoutSharedMemory) {
  ASSERT_TRUE(Open({.shared_buffer = "off"}).ok());
  ExpectAnswer();
  EXPECT_EQ(Calls({"rpcmem_alloc2", "memRegister"}).size(), 0U);
}

TEST_F(HtpDevice, SaysWhenThereIsNoSharedMemory) {
  std::filesystem::remove(folder_.File("libcdsprpc.so"));
  const Status opened = Open();
  ASSERT_FALSE(opened.ok());
  EXPECT_EQ(opened.error().code, ErrorCode::kEnvironment);
  EXPECT_THAT(opened.error().message, HasSubstr("--shared-buffer off"));
  EXPECT_THAT(opened.error().message, HasSubstr("libcdsprpc.so"));
}

// The shift pointer's window begins anywhere.
TEST_F(HtpDevice, RefusesACacheThatMoves) {
  ASSERT_TRUE(Open().ok());
  const auto graph = engine_->Load(artifact_, 0);
  ASSERT_TRUE(graph.ok()) << graph.error().message;
  const auto& inputs = (*graph)->entry().inputs;
  const auto cache = std::ranges::find_if(inputs, [](const IoSpec& spec) {
    return spec.role.kind == RoleKind::kKIn;
  });
  const auto bytes = *StorageBytes(cache->dtype, cache->shape);
  auto buffer = engine_->Allocate(bytes + 1);
  ASSERT_TRUE(buffer.ok()) << buffer.error().message;
  const Status bound = (*graph)->Bind(
      IoDirection::kInput, static_cast<size_t>(cache - inputs.begin()),
      buffer->bytes().subspan(1));
  ASSERT_FALSE(bound.ok());
  EXPECT_EQ(bound.error().code, ErrorCode::kUnsupported);
  EXPECT_THAT(bound.error().message, HasSubstr("--kv-updater smart-mask"));
}

struct Refusal {
  const char* call;
  uint64_t result;
  const char* message;
};
std::ostream& operator<<(std::ostream& out, const Refusal& refusal) {
  return out << refusal.call;
}

class HtpDeviceRefusal : public HtpDevice,
                         public ::testing::WithParamInterface<Refusal> {};

// TearDown finds what is left behind.
TEST_P(HtpDeviceRefusal, IsAnErrorThatLeavesNothing) {
  qnn_->failures[GetParam().call] = GetParam().result;
  Status status = Open();
  if (status.ok()) status = Answer().status();
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code, ErrorCode::kEnvironment);
  EXPECT_THAT(status.error().message, HasSubstr(GetParam().message));
  EXPECT_THAT(status.error().message, Not(HasSubstr("\n")));
}

INSTANTIATE_TEST_SUITE_P(
    All, HtpDeviceRefusal,
    ::testing::Values(
        Refusal{"rpcmem_alloc2", 1, "memory shared with the HTP"},
        Refusal{"rpcmem_to_fd", 1, "rpcmem_to_fd gave -1"},
        Refusal{"memRegister", 8003, "QNN error 8003 from memRegister"},
        Refusal{"deviceGetInfrastructure", 1000, "--htp-performance burst"},
        Refusal{"createPowerConfigId", 13001, "from createPowerConfigId"},
        Refusal{"setPowerConfig", 13002, "QNN error 13002"},
        Refusal{"graphExecute", 1100, "QNN error 1100"}),
    [](const auto& suite) { return std::string(suite.param.call); });

}  // namespace
}  // namespace hexllm
