#include "base/child_process.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <cstring>

#include "base/machine_memory.h"

namespace hexllm {
namespace {

using ::testing::HasSubstr;

TEST(ChildProcess, GivesBackBytesAndSteps) {
  int here = 0;
  auto child = ChildProcess::Start([&](const ChildChannel& channel) -> Status {
    here = 1;
    channel.Step();
    channel.Step();
    HX_ASSIGN_OR_RETURN(const std::span<std::byte> memory,
                        channel.Allocate(10));
    std::memcpy(memory.data(), "content...", 10);
    return channel.Shorten(7);
  });
  ASSERT_TRUE(child.ok()) << child.error().message;
  while (child->Read()) {
  }
  EXPECT_EQ(child->steps(), 2);
  const auto outcome = (*std::move(child)).Finish();
  ASSERT_TRUE(outcome.ok()) << outcome.error().message;
  EXPECT_EQ(AsText(outcome->bytes.bytes()), "content");
  EXPECT_GT(outcome->peak_rss_bytes, 100'000u);
  EXPECT_EQ(here, 0);
}

TEST(ChildProcess, ErrorsComeBackAsTheyAre) {
  const auto outcome = ChildProcess::Run([](const ChildChannel& channel) {
    channel.Step();
    return Error{ErrorCode::kUnsupported, "graph 'x': no such 7 op.."};
  });
  ASSERT_FALSE(outcome.ok());
  EXPECT_EQ(outcome.error().code, ErrorCode::kUnsupported);
  EXPECT_EQ(outcome.error().message, "graph 'x': no such 7 op..");
}

TEST(ChildProcess, ACrashIsAnError) {
  const std::pair<int, const char*> cases[] = {{SIGSEGV, "Segmentation fault"},
                                               {SIGKILL, "was memory short?"}};
  for (const auto& crash : cases) {
    const auto outcome = ChildProcess::Run([&](const ChildChannel&) -> Status {
      ::signal(crash.first, SIG_DFL);
      ::raise(crash.first);
      return OkStatus();
    });
    ASSERT_FALSE(outcome.ok());
    EXPECT_EQ(outcome.error().code, ErrorCode::kEnvironment);
    EXPECT_THAT(outcome.error().message, HasSubstr(crash.second));
  }
  const auto ended =
      ChildProcess::Run([](const ChildChannel&) -> Status { ::_exit(0); });
  ASSERT_FALSE(ended.ok());
  EXPECT_THAT(ended.error().message, HasSubstr("ended before it was done"));
}

TEST(ChildProcess, EndsWithItsOwner) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  {
    auto child = ChildProcess::Start([](const ChildChannel&) -> Status {
      while (true) ::pause();
    });
    ASSERT_TRUE(child.ok()) << child.error().message;
    ::close(ends[1]);  // the child has it now
    pollfd end = {.fd = ends[0], .events = POLLIN, .revents = 0};
    EXPECT_EQ(::poll(&end, 1, 0), 0) << "the child runs";
  }
  char byte = 0;
  EXPECT_EQ(::read(ends[0], &byte, 1), 0) << "the child is gone";
  ::close(ends[0]);
}

TEST(MemorySize, IsReadAndShown) {
  EXPECT_EQ(ParseMemorySize("8G").value(), uint64_t{8} << 30);
  EXPECT_EQ(ParseMemorySize("1.5GiB").value(), uint64_t{3} << 29);
  EXPECT_EQ(ParseMemorySize("500MB").value(), uint64_t{500} << 20);
  for (const char* text :
       {"", "8", "G", "-1G", "0G", "1e30G", "8 G", "8Gx", "nanG", "infG"}) {
    const auto size = ParseMemorySize(text);
    ASSERT_FALSE(size.ok()) << text;
    EXPECT_EQ(size.error().code, ErrorCode::kUsage);
  }
  EXPECT_EQ(MemorySizeText(uint64_t{3} << 29), "1.50 GB");
  EXPECT_EQ(MemorySizeText(uint64_t{500} << 20), "500 MB");
}

TEST(MachineMemory, IsSomeNumber) {
  EXPECT_GT(AvailableMemory().value_or(0), uint64_t{1} << 20);
  EXPECT_GT(OwnMemory(), uint64_t{1} << 18);
  EXPECT_LT(OwnMemory(), uint64_t{1} << 40);
}

}  // namespace
}  // namespace hexllm
