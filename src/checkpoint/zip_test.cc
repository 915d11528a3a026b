#include "checkpoint/zip.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/pytorch_builder.h"

namespace hexllm {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::ZipBuilder;

std::string ErrorOf(const std::string& archive,
                    ErrorCode code = ErrorCode::kBadInput) {
  const auto members = ParseZip(AsBytes(archive));
  if (members.ok()) return "no error";
  EXPECT_EQ(members.error().code, code) << members.error().message;
  EXPECT_EQ(members.error().message.find('\n'), std::string::npos);
  return members.error().message;
}

void ExpectBoth(const std::string& archive) {
  const auto members = ParseZip(AsBytes(archive));
  ASSERT_TRUE(members.ok()) << members.error().message;
  ASSERT_EQ(members->size(), 2u);
  EXPECT_EQ((*members)[0].name, "a");
  EXPECT_EQ(AsText((*members)[0].data), "");
  EXPECT_EQ((*members)[1].name, "b");
  EXPECT_EQ(AsText((*members)[1].data), "bytes");
  // No copy.
  EXPECT_GE(AsText((*members)[1].data).data(), archive.data());
  EXPECT_LE(AsText((*members)[1].data).data() + 5,
            archive.data() + archive.size());
}

TEST(ParseZip, GivesSortedViews) {
  ExpectBoth(ZipBuilder().Add("b", "bytes").Add("a", "").Build());
}

TEST(ParseZip, ReadsZip64) {
  ExpectBoth(ZipBuilder().Zip64().Add("b", "bytes").Add("a", "").Build());
}

TEST(ParseZip, RefusesWhatExpands) {
  // 100 bytes that claim to be 4 GB.
  EXPECT_THAT(ErrorOf(ZipBuilder()
                          .Add("bomb", std::string(100, 'x'),
                               {.method = 8, .bytes = 0xFFFFFFF0})
                          .Build(),
                      ErrorCode::kUnsupported),
              AllOf(HasSubstr("'bomb'"), HasSubstr("compressed"),
                    HasSubstr("method 8"), HasSubstr("4294967280")));
  EXPECT_THAT(ErrorOf(ZipBuilder().Add("m", "four", {.bytes = 1000}).Build()),
              AllOf(HasSubstr("'m'"), HasSubstr("1000 stored bytes, found 4")));
}

TEST(ParseZip, RefusesOverlaps) {
  // Both entries show the same bytes.
  EXPECT_THAT(ErrorOf(ZipBuilder()
                          .Add("a", "bytes")
                          .Add("a", "bytes", {.offset = 0})
                          .Build()),
              HasSubstr("overlaps"));
}

TEST(ParseZip, RefusesNamesTwice) {
  EXPECT_THAT(ErrorOf(ZipBuilder().Add("a", "1").Add("a", "2").Build()),
              HasSubstr("'a': expected once"));
}

TEST(ParseZip, RefusesEncryptedMembers) {
  EXPECT_THAT(ErrorOf(ZipBuilder().Add("a", "1", {.flags = 1}).Build(),
                      ErrorCode::kUnsupported),
              HasSubstr("encrypted"));
}

TEST(ParseZip, RefusesMembersOutsideTheArchive) {
  EXPECT_THAT(ErrorOf(ZipBuilder()
                          .Add("a", "1", {.packed_bytes = 500, .bytes = 500})
                          .Build()),
              HasSubstr("truncated member"));
  EXPECT_THAT(ErrorOf(ZipBuilder().Add("a", "1", {.offset = 1 << 20}).Build()),
              HasSubstr("truncated file"));
  EXPECT_THAT(
      ErrorOf(ZipBuilder().Add("a", "0123456789", {.offset = 3}).Build()),
      HasSubstr("expected its header"));
}

TEST(ParseZip, EveryTruncationIsAnError) {
  for (const bool zip64 : {false, true}) {
    ZipBuilder builder;
    if (zip64) builder.Zip64();
    const std::string archive = builder.Add("a", "1234").Build();
    ASSERT_TRUE(ParseZip(AsBytes(archive)).ok());
    for (size_t size = 0; size < archive.size(); ++size)
      EXPECT_NE(ErrorOf(archive.substr(0, size)), "no error") << size;
  }
}

TEST(ParseZip, EveryChangedByteIsHarmless) {
  const std::string archive =
      ZipBuilder().Zip64().Add("a", "1234").Add("b", "5").Build();
  for (size_t at = 0; at < archive.size(); ++at) {
    for (const int bit : {0, 3, 7}) {
      std::string changed = archive;
      changed[at] = static_cast<char>(changed[at] ^ (1 << bit));
      const auto members = ParseZip(AsBytes(changed));
      if (!members.ok()) continue;
      for (const ZipMember& member : *members) {
        EXPECT_GE(AsText(member.data).data(), changed.data());
        EXPECT_LE(AsText(member.data).data() + member.data.size(),
                  changed.data() + changed.size());
      }
    }
  }
}

}  // namespace
}  // namespace hexllm
