#include "backend/htp/context_info.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "backend/htp/qnn_graph.h"
#include "backend/htp/qnn_testing.h"

namespace hexllm::htp {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TensorSpec Codes(std::string name, TensorUse use) {
  return {.name = std::move(name),
          .use = use,
          .dtype = DType::kU16,
          .shape = {1, 4, 64},
          .encoding = TensorEncoding{.scales = {0.5F}, .zero_points = {100}}};
}

// Adds a graph y = a + b to `context`.
void AddSum(std::shared_ptr<QnnContext> context, const std::string& name) {
  auto graph = QnnGraph::Create(std::move(context), name, {.optimization = 2});
  ASSERT_TRUE(graph.ok()) << graph.error().message;
  const auto a = (*graph)->AddTensor(Codes("a", TensorUse::kInput));
  const auto b = (*graph)->AddTensor(Codes("b", TensorUse::kInput));
  const auto y = (*graph)->AddTensor(Codes("y", TensorUse::kOutput));
  ASSERT_TRUE(a.ok() && b.ok() && y.ok());
  const Status added = (*graph)->AddNode({.name = "sum",
                                          .op = "ElementWiseAdd",
                                          .inputs = {*a, *b},
                                          .outputs = {*y}});
  ASSERT_TRUE(added.ok()) << added.error().message;
  const Status finalized = (*graph)->Finalize();
  ASSERT_TRUE(finalized.ok()) << finalized.error().message;
}

class ContextInfoTest : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = FindQnnFolder().value_or("");
    if (folder_.empty()) GTEST_SKIP() << kNoQnn;
    auto system = QnnSystemLibrary::Open(folder_);
    ASSERT_TRUE(system.ok()) << system.error().message;
    system_ = *system;
  }

  void Compile(const std::string& soc, WeightSharing sharing) {
    const auto session = OpenSessionForTests(folder_, soc);
    ASSERT_NE(session, nullptr);
    auto context = QnnContext::Create(session, sharing).value();
    ASSERT_NO_FATAL_FAILURE(AddSum(context, "kv"));
    ASSERT_NO_FATAL_FAILURE(AddSum(context, "prefill"));
    auto binary = context->Serialize();
    ASSERT_TRUE(binary.ok()) << binary.error().message;
    binary_ = *std::move(binary);
  }

  std::string folder_;
  std::shared_ptr<const QnnSystemLibrary> system_;
  std::vector<std::byte> binary_;
};

TEST_F(ContextInfoTest, ReadsWhatWasCompiled) {
  ASSERT_NO_FATAL_FAILURE(Compile("SM8550", WeightSharing::kOff));
  const auto info = system_->Read(binary_);
  ASSERT_TRUE(info.ok()) << info.error().message;
  EXPECT_EQ(info->soc_id, 43U);
  EXPECT_EQ(info->htp, 73U);
  EXPECT_EQ(info->core_version.major, kCoreMajor);
  ASSERT_EQ(info->graphs.size(), 2U);
  const ContextGraph& graph = info->graphs[1];
  EXPECT_EQ(graph.info.name, "prefill");
  EXPECT_EQ(graph.optimization, 2U);
  EXPECT_EQ(graph.vtcm_bytes, 8U << 20);
  ASSERT_EQ(graph.info.inputs.size(), 2U);
  EXPECT_EQ(graph.info.inputs[1].bytes, 512U);
  TensorSpec b = Codes("b", TensorUse::kInput);
  EXPECT_EQ(DescribeTensor(graph.info.inputs[1].spec), DescribeTensor(b));
  EXPECT_EQ(graph.info.inputs[1].spec.encoding, b.encoding);
  ASSERT_EQ(graph.info.outputs.size(), 1U);
  EXPECT_EQ(graph.info.outputs[0].spec.name, "y");
  EXPECT_EQ(graph.info.outputs[0].spec.use, TensorUse::kOutput);
}

TEST_F(ContextInfoTest, DescribesForPeople) {
  ASSERT_NO_FATAL_FAILURE(Compile("SM8750", WeightSharing::kOn));
  const auto info = system_->Read(binary_);
  ASSERT_TRUE(info.ok()) << info.error().message;
  EXPECT_THAT(
      DescribeContext(*info),
      AllOf(HasSubstr("for SM8750 (HTP v79)"),
            HasSubstr("graph kv, optimization 2, VTCM 8 MB, spill buffer 0"),
            HasSubstr("in  a u16[1,4,64] scale 0.5 zero point 100\n")));
}

TEST_F(ContextInfoTest, RefusesWhatIsNoContextBinary) {
  EXPECT_EQ(system_->Read({}).error().code, ErrorCode::kBadInput);
  const std::vector<std::byte> junk(5000, std::byte{0x42});
  EXPECT_EQ(system_->Read(junk).error().code, ErrorCode::kBadInput);
  ASSERT_NO_FATAL_FAILURE(Compile("SM8750", WeightSharing::kOff));
  const auto session = OpenSessionForTests(folder_, "SM8750");
  for (const size_t bytes : {size_t{1}, size_t{64}, binary_.size() / 2}) {
    const auto half = std::span(binary_).first(bytes);
    const auto info = system_->Read(half);
    ASSERT_FALSE(info.ok()) << bytes;
    EXPECT_EQ(info.error().code, ErrorCode::kBadInput);
    const auto context = QnnContext::FromBinary(session, half);
    ASSERT_FALSE(context.ok()) << bytes;
    EXPECT_EQ(context.error().code, ErrorCode::kBadInput);
  }
}

TEST(QnnSystemLibraryTest, NamesTheMissingFile) {
  const auto system = QnnSystemLibrary::Open("/no/such/folder");
  ASSERT_FALSE(system.ok());
  EXPECT_EQ(system.error().code, ErrorCode::kEnvironment);
  EXPECT_THAT(system.error().message,
              AllOf(HasSubstr("/no/such/folder/libQnnSystem.so"),
                    HasSubstr("scripts/setup-qnn")));
}

}  // namespace
}  // namespace hexllm::htp
