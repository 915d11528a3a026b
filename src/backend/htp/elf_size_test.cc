#include "backend/htp/elf_size.h"

#include <elf.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <string>

#include "backend/htp/dynamic_library.h"
#include "tests/support/temp_dir.h"

namespace hexllm::htp {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr size_t kTablesEnd = sizeof(Elf64_Ehdr) + 2 * sizeof(Elf64_Phdr);

// Two segments, the first of which is loaded.
struct Headers {
  Headers() {
    std::memcpy(file.e_ident, ELFMAG, SELFMAG);
    file.e_ident[EI_CLASS] = ELFCLASS64;
    file.e_ident[EI_DATA] = ELFDATA2LSB;
    file.e_ident[EI_VERSION] = EV_CURRENT;
    file.e_type = ET_DYN;
    file.e_machine = EM_X86_64;
    file.e_version = EV_CURRENT;
    file.e_ehsize = sizeof(Elf64_Ehdr);
    file.e_phoff = sizeof(Elf64_Ehdr);
    file.e_phnum = 2;
    file.e_phentsize = sizeof(Elf64_Phdr);
    file.e_shentsize = sizeof(Elf64_Shdr);
    segments[0].p_type = PT_LOAD;
    segments[1].p_type = PT_NOTE;
  }
  std::string Bytes() const {
    std::string bytes(kTablesEnd, '\0');
    std::memcpy(bytes.data(), &file, sizeof(file));
    std::memcpy(bytes.data() + sizeof(file), segments, sizeof(segments));
    return bytes;
  }
  uint64_t Least() const { return LeastElfBytes(AsBytes(Bytes())); }

  Elf64_Ehdr file = {};
  Elf64_Phdr segments[2] = {};
};

TEST(ElfSizeTest, ReachesToTheEndOfWhatIsNamed) {
  Headers headers;
  EXPECT_EQ(headers.Least(), kTablesEnd);
  headers.segments[0].p_offset = 0x1000;
  headers.segments[0].p_filesz = 0x234;
  EXPECT_EQ(headers.Least(), 0x1234u);
  headers.segments[1].p_offset = 0x9000;  // of a kind that is not loaded
  EXPECT_EQ(headers.Least(), 0x1234u);
  headers.file.e_shoff = 0x2000;
  headers.file.e_shnum = 2;
  EXPECT_EQ(headers.Least(), 0x2000 + 2 * sizeof(Elf64_Shdr));
}

TEST(ElfSizeTest, NoNumberLeadsOutside) {
  Headers headers;
  headers.segments[0].p_offset = UINT64_MAX;
  headers.segments[0].p_filesz = 2;
  EXPECT_EQ(headers.Least(), UINT64_MAX);
  headers = {};
  headers.file.e_phnum = 3;  // one is missing
  EXPECT_EQ(headers.Least(), kTablesEnd + sizeof(Elf64_Phdr));
  headers.file.e_phoff = UINT64_MAX - 1;
  EXPECT_EQ(headers.Least(), UINT64_MAX);
  headers = {};
  headers.file.e_phentsize = 1;  // the loader refuses that
  headers.segments[0].p_filesz = 0x9000;
  EXPECT_EQ(headers.Least(), sizeof(Elf64_Ehdr) + 2);
}

TEST(ElfSizeTest, HeadersThatAreCut) {
  const std::string bytes = Headers().Bytes();
  for (size_t n = 0; n < bytes.size(); ++n) {
    const uint64_t least = LeastElfBytes(AsBytes(bytes.substr(0, n)));
    if (n <= EI_DATA)
      EXPECT_EQ(least, 0u) << n;
    else
      EXPECT_GT(least, n);
  }
  std::string other = bytes;
  other[EI_CLASS] = ELFCLASS32;
  EXPECT_EQ(LeastElfBytes(AsBytes(other)), 0u);
}

TEST(DynamicLibraryTest, RefusesAFileThatIsCut) {
  const testing::TempDir folder;
  Headers headers;
  headers.segments[0].p_filesz = 0x5000;
  const std::string path = folder.Write("libcut.so", headers.Bytes());
  const auto library = DynamicLibrary::Load(folder.path(), "libcut.so");
  ASSERT_FALSE(library.ok());
  EXPECT_EQ(library.error().code, ErrorCode::kEnvironment);
  EXPECT_THAT(
      library.error().message,
      AllOf(HasSubstr(path), HasSubstr("at least 20480 bytes, found 176"),
            HasSubstr("truncated; fetch it again with scripts/setup-qnn")));
}

}  // namespace
}  // namespace hexllm::htp
