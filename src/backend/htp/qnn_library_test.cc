#include "backend/htp/qnn_library.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <thread>

#include "backend/htp/qnn_log.h"
#include "backend/htp/qnn_testing.h"
#include "tests/support/temp_dir.h"

namespace hexllm::htp {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

abi::Provider MakeProvider(uint32_t backend, abi::Version core) {
  abi::Provider provider = {};
  provider.backend = backend;
  provider.core_version = core;
  return provider;
}

TEST(ChooseProviderTest, TakesTheHtpOfAUsableVersion) {
  const abi::Provider cpu = MakeProvider(3, {2, 40, 0});
  const abi::Provider old = MakeProvider(abi::kBackendHtp, {2, 31, 9});
  const abi::Provider oldest = MakeProvider(abi::kBackendHtp, {2, 32, 0});
  const abi::Provider* list[] = {nullptr, &cpu, &old, &oldest};
  const auto chosen = ChooseProvider(list);
  ASSERT_TRUE(chosen.ok()) << chosen.error().message;
  EXPECT_EQ(*chosen, &oldest);
}

TEST(ChooseProviderTest, NamesBothVersions) {
  for (const abi::Version version : {abi::Version{2, 31, 9}, {3, 0, 0}}) {
    const abi::Provider provider = MakeProvider(abi::kBackendHtp, version);
    const abi::Provider* list[] = {&provider};
    const auto chosen = ChooseProvider(list);
    ASSERT_FALSE(chosen.ok());
    EXPECT_EQ(chosen.error().code, ErrorCode::kUnsupported);
    EXPECT_THAT(chosen.error().message,
                AllOf(HasSubstr(version.major == 2 ? "2.31.9" : "3.0.0"),
                      HasSubstr("needs 2.32"), HasSubstr("tested with 2.40")));
  }
}

TEST(ChooseProviderTest, WantsAnHtp) {
  const abi::Provider gpu = MakeProvider(4, {2, 40, 0});
  const abi::Provider* list[] = {&gpu};
  EXPECT_EQ(ChooseProvider(list).error().code, ErrorCode::kEnvironment);
  EXPECT_EQ(ChooseProvider({}).error().code, ErrorCode::kEnvironment);
}

TEST(QnnLibraryTest, SaysWhatToDoWithoutTheLibrary) {
  const auto library = QnnLibrary::Open("/no/such/folder");
  ASSERT_FALSE(library.ok());
  EXPECT_EQ(library.error().code, ErrorCode::kEnvironment);
  EXPECT_THAT(library.error().message,
              AllOf(HasSubstr("/no/such/folder/libQnnHtp.so"),
                    HasSubstr("scripts/setup-qnn")));
}

TEST(QnnLibraryTest, RefusesAFileThatIsNoLibrary) {
  const std::string folder = ::testing::TempDir() + "/no_library";
  std::filesystem::create_directories(folder);
  std::ofstream(folder + "/libQnnHtp.so") << "no ELF at all";
  const auto library = QnnLibrary::Open(folder);
  ASSERT_FALSE(library.ok());
  EXPECT_EQ(library.error().code, ErrorCode::kEnvironment);
  EXPECT_THAT(library.error().message, HasSubstr("cannot be loaded"));
  std::filesystem::remove_all(folder);
}

void Log(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  CollectLogLine(format, 1, 0, arguments);
  va_end(arguments);
}

TEST(QnnLogTest, KeepsTheFirstLinesInPrintableForm) {
  TakeLogLines();
  Log(" <E> op %d\n", 7);
  Log(" <E> op %d\n", 7);
  Log(" <E> unexpected GraphHtpSettings option 66");
  Log("bell\a");
  EXPECT_EQ(TakeLogLines(), "op 7; bell\\x07");
  EXPECT_EQ(TakeLogLines(), "");
  for (int i = 0; i < 100; ++i) Log("%d", i);
  EXPECT_EQ(TakeLogLines(), "0; 1; 2; 3");
}

class QnnTest : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = FindQnnFolder().value_or("");
    if (folder_.empty()) GTEST_SKIP() << kNoQnn;
  }
  std::string folder_;
};

TEST_F(QnnTest, OpensAndSaysItsVersion) {
  const auto library = QnnLibrary::Open(folder_);
  ASSERT_TRUE(library.ok()) << library.error().message;
  EXPECT_EQ((*library)->core_version().major, kCoreMajor);
  EXPECT_GE((*library)->core_version().minor, kOldestCoreMinor);
  EXPECT_THAT((*library)->build_id(), HasSubstr("v2."));
  EXPECT_THAT((*library)->ErrorText("graphFinalize", 0x100000000 + 1002),
              HasSubstr("QNN error 1002 from graphFinalize"));
}

// As a download that broke off leaves it: the first pages alone, or all but the
// last ones (holes stand for what lies between).
TEST_F(QnnTest, RefusesALibraryThatIsTruncated) {
  const hexllm::testing::TempDir folder;
  const std::string whole = folder_ + "/libQnnHtp.so";
  std::string start(size_t{1} << 16, '\0');
  std::ifstream(whole, std::ios::binary)
      .read(start.data(), static_cast<std::streamsize>(start.size()));
  const std::string path = folder.Write("libQnnHtp.so", start);
  for (const uintmax_t size :
       {uintmax_t{start.size()}, std::filesystem::file_size(whole) - 4096}) {
    std::filesystem::resize_file(path, size);
    const auto library = QnnLibrary::Open(folder.path());
    ASSERT_FALSE(library.ok()) << size;
    EXPECT_EQ(library.error().code, ErrorCode::kEnvironment);
    EXPECT_THAT(library.error().message,
                AllOf(HasSubstr(path), HasSubstr("truncated")));
  }
}

TEST_F(QnnTest, SessionsOfAllSocsOpenOneAfterTheOther) {
  for (const Soc& soc : AllSocs()) {
    const auto session = OpenSessionForTests(folder_, std::string(soc.name));
    ASSERT_NE(session, nullptr);
    EXPECT_NE(session->device(), nullptr);
    EXPECT_TRUE(session->HasOp("Conv2d"));
    EXPECT_FALSE(session->HasOp("MaskedSoftmax"));
  }
}

TEST_F(QnnTest, AnUnknownSocIsRefused) {
  const auto library = QnnLibrary::Open(folder_);
  ASSERT_TRUE(library.ok()) << library.error().message;
  const Soc unknown{"SM9999", 9999, 79, 8};
  const auto session = QnnSession::Open(*library, unknown);
  ASSERT_FALSE(session.ok());
  EXPECT_EQ(session.error().code, ErrorCode::kUnsupported);
  EXPECT_THAT(session.error().message,
              AllOf(HasSubstr("SM9999"), HasSubstr("14001")));
}

// The library prints a line on stdout when it is loaded, and errors when it
// has no log. None of it may come through, nor may loading lose what other
// threads print.
TEST_F(QnnTest, PrintsNothingAndLosesNothing) {
  ::testing::internal::CaptureStdout();
  ::testing::internal::CaptureStderr();
  std::atomic<bool> stop = false;
  size_t printed = 0;
  std::thread other([&] {
    for (; !stop; ++printed) std::fputs("x", stdout);
  });
  for (int i = 0; i < 3; ++i) {
    const auto session = OpenSessionForTests(folder_, "SM8750");
    const std::byte junk[100] = {};
    if (session) (void)QnnContext::FromBinary(session, junk);
  }
  stop = true;
  other.join();
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
  const std::string out = ::testing::internal::GetCapturedStdout();
  EXPECT_EQ(out.size(), printed);
  EXPECT_EQ(out.find_first_not_of('x'), out.npos);
}

}  // namespace
}  // namespace hexllm::htp
