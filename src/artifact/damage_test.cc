// Damaged files are refused with a message that says where, and never crash.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <vector>

#include "artifact/artifact.h"
#include "artifact/artifact_testing.h"
#include "artifact/format.h"
#include "artifact/reader.h"
#include "tests/support/temp_dir.h"

namespace hexllm::artifact {
namespace {

using ::testing::HasSubstr;

Result<std::shared_ptr<const Artifact>> Parse(const std::string& file) {
  return ParseArtifact(AsBytes(file), "x.hxl", nullptr);
}

// Expects that `file` is refused as bad input with a message that has `part`.
void ExpectRefused(const std::string& file, const std::string& part) {
  const auto artifact = Parse(file);
  ASSERT_FALSE(artifact.ok());
  EXPECT_EQ(artifact.error().code, ErrorCode::kBadInput);
  EXPECT_THAT(artifact.error().message, HasSubstr("x.hxl: "));
  EXPECT_THAT(artifact.error().message, HasSubstr(part));
}

FileHeader HeaderOf(const std::string& file) {
  FileHeader header;
  HX_CHECK(file.size() >= sizeof(header));
  std::memcpy(&header, file.data(), sizeof(header));
  return header;
}

// Replaces the header and makes its checksum right.
void SetHeader(std::string& file, FileHeader header) {
  header.header_checksum = HeaderChecksum(header);
  std::memcpy(file.data(), &header, sizeof(header));
}

// Makes the checksums of manifest and header fit again.
void Reseal(std::string& file) {
  FileHeader header = HeaderOf(file);
  header.manifest_checksum =
      Checksum(AsBytes(file).subspan(header.manifest_offset));
  SetHeader(file, header);
}

TEST(ArtifactDamageTest, UndamagedFileOpens) {
  EXPECT_TRUE(Parse(MakeTestFile()).ok());
}

TEST(ArtifactDamageTest, TruncatedFilesAreCalledTruncated) {
  const std::string file = MakeTestFile();
  for (size_t size = 1; size < file.size(); size += size < 128 ? 1 : 97) {
    SCOPED_TRACE(size);
    ExpectRefused(file.substr(0, size), "truncated");
  }
  ExpectRefused(file.substr(0, file.size() - 1), "truncated");
}

TEST(ArtifactDamageTest, EmptyAndForeignFilesAreNoArtifact) {
  ExpectRefused("", "no hexllm artifact");
  ExpectRefused("GGUF" + std::string(200, '\0'), "no hexllm artifact");
  ExpectRefused(std::string(5000, '\0'), "no hexllm artifact");
}

TEST(ArtifactDamageTest, LongerFilesAreRefused) {
  ExpectRefused(MakeTestFile() + "x", "foreign bytes");
}

TEST(ArtifactDamageTest, EveryFlippedByteOfTheHeaderIsFound) {
  const std::string file = MakeTestFile();
  for (size_t i = 0; i < sizeof(FileHeader); ++i) {
    for (const char flip : {'\x01', '\x80', '\xff'}) {
      SCOPED_TRACE(i);
      std::string damaged = file;
      damaged[i] = static_cast<char>(damaged[i] ^ flip);
      ExpectRefused(damaged, "header");
    }
  }
}

TEST(ArtifactDamageTest, EveryFlippedByteOfTheManifestIsFound) {
  const std::string file = MakeTestFile();
  for (size_t i = HeaderOf(file).manifest_offset; i < file.size(); ++i) {
    SCOPED_TRACE(i);
    std::string damaged = file;
    damaged[i] = static_cast<char>(damaged[i] ^ 0x10);
    ExpectRefused(damaged, "manifest");
  }
}

// A forged file has the right checksums, so what lies behind them must stand
// any content: it opens or is refused, and an opened one is safe to use.
TEST(ArtifactDamageTest, ForgedManifestsNeverCrash) {
  const std::string file = MakeTestFile();
  size_t refused = 0;
  for (size_t i = HeaderOf(file).manifest_offset; i < file.size(); ++i) {
    for (const char flip : {'\x01', '\x10', '\x80', '\xff'}) {
      std::string forged = file;
      forged[i] = static_cast<char>(forged[i] ^ flip);
      Reseal(forged);
      const auto artifact = Parse(forged);
      if (artifact.ok()) {
        (void)(*artifact)->VerifyAll();
      } else {
        ++refused;
        EXPECT_THAT(artifact.error().message, HasSubstr("x.hxl: "));
      }
    }
  }
  EXPECT_GT(refused, 1000u);
}

TEST(ArtifactDamageTest, SmallSegmentsAreCheckedWhenOpening) {
  const std::string file = MakeTestFile();
  const auto undamaged = MakeTestArtifact();
  for (const SegmentInfo& segment : undamaged->manifest().segments) {
    std::string damaged = file;
    damaged[segment.offset] = static_cast<char>(damaged[segment.offset] ^ 1);
    if (segment.kind != SegmentKind::kWeights &&
        segment.kind != SegmentKind::kEmbedding) {
      ExpectRefused(damaged, "segment '" + segment.name + "'");
      continue;
    }
    const auto artifact = Parse(damaged);
    ASSERT_TRUE(artifact.ok()) << artifact.error().message;
    const Status status = (*artifact)->VerifyAll();
    ASSERT_FALSE(status.ok());
    EXPECT_THAT(status.error().message,
                HasSubstr("segment '" + segment.name + "'"));
  }
}

TEST(ArtifactDamageTest, NewerFormatIsUnsupported) {
  std::string file = MakeTestFile();
  FileHeader header = HeaderOf(file);
  header.format_version = kFormatVersion + 1;
  SetHeader(file, header);
  const auto artifact = Parse(file);
  ASSERT_FALSE(artifact.ok());
  EXPECT_EQ(artifact.error().code, ErrorCode::kUnsupported);
  EXPECT_THAT(artifact.error().message, HasSubstr("format version 1, found 2"));
}

TEST(ArtifactDamageTest, ForgedHeadersAreRefused) {
  const std::string file = MakeTestFile();
  const FileHeader good = HeaderOf(file);
  const auto expect_refused = [&](FileHeader header) {
    std::string forged = file;
    SetHeader(forged, header);
    ExpectRefused(forged, "header: expected the manifest at the end");
  };
  FileHeader header = good;
  header.manifest_offset = 0;
  expect_refused(header);
  header = good;
  header.manifest_offset += 8;
  header.manifest_bytes -= 8;
  expect_refused(header);
  header = good;
  header.manifest_offset = ~uint64_t{0} - kSegmentAlignment + 1;
  expect_refused(header);
  header = good;
  header.manifest_bytes = ~uint64_t{0};
  expect_refused(header);
  header = good;
  header.manifest_bytes -= 1;
  expect_refused(header);
  header = good;
  header.header_bytes = 128;
  expect_refused(header);
}

// The segments' own ends are only known to the reader.
TEST(ArtifactDamageTest, SegmentsBeyondTheFileAreNamed) {
  const std::string file = MakeTestFile();
  const FileHeader good = HeaderOf(file);
  // Drops the last segment's page and moves the manifest forward over it.
  std::string forged = file.substr(0, good.manifest_offset - kSegmentAlignment);
  forged += file.substr(good.manifest_offset);
  FileHeader header = good;
  header.manifest_offset -= kSegmentAlignment;
  header.file_bytes -= kSegmentAlignment;
  SetHeader(forged, header);
  ExpectRefused(forged, "segment 'embedding'");
}

TEST(ArtifactDamageTest, MissingFileIsAnEnvironmentError) {
  const testing::TempDir folder;
  const auto artifact = Artifact::Open(folder.File("none.hxl"));
  ASSERT_FALSE(artifact.ok());
  EXPECT_EQ(artifact.error().code, ErrorCode::kEnvironment);
}

}  // namespace
}  // namespace hexllm::artifact
