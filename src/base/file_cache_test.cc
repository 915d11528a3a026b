#include "base/file_cache.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>

#include <chrono>
#include <filesystem>

#include "tests/support/temp_dir.h"

namespace hexllm {
namespace {

namespace fs = std::filesystem;
using ::testing::AnyOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::TempDir;

class Warnings final : public ProgressSink {
 public:
  void Begin(std::string_view, std::string_view, int64_t) override {}
  void Update(int64_t) override {}
  void Warn(std::string_view message) override { lines.emplace_back(message); }
  void Note(std::string_view) override {}

  std::vector<std::string> lines;
};

class FileCacheTest : public ::testing::Test {
 protected:
  FileCache Open() const {
    auto cache = FileCache::Open(dir_.File("cache"));
    EXPECT_TRUE(cache.ok()) << cache.error().message;
    return *std::move(cache);
  }
  std::string Found(const Digest& key) {
    const auto entry = Open().Find(key, warnings_);
    return entry ? std::string(AsText(entry->bytes)) : "nothing";
  }
  std::string EntryPath(const Digest& key) const {
    return dir_.File("cache/" + DigestToHex(key) + ".bin");
  }
  Digest Stored(std::string_view content) {
    const FileCache cache = Open();
    Hasher hasher = cache.StartKey("test");
    hasher.Add(content);
    const Digest key = hasher.Finish();
    cache.Store(key, AsBytes(content), warnings_);
    return key;
  }

  const TempDir dir_;
  Warnings warnings_;
};

TEST_F(FileCacheTest, FindsWhatWasStored) {
  const Digest key = Stored("content");
  const Digest empty = Stored("");
  EXPECT_EQ(Found(key), "content");
  EXPECT_EQ(Found(empty), "");
  EXPECT_EQ(Found(DigestOf(AsBytes("another"))), "nothing");
  EXPECT_THAT(warnings_.lines, IsEmpty());
}

TEST_F(FileCacheTest, EveryAlteredByteIsFoundAndReplaced) {
  const Digest key = Stored("content");
  const std::string whole = testing::ReadWholeFile(EntryPath(key));
  std::vector<std::string> damaged;
  for (size_t i = 0; i < whole.size(); ++i) {
    damaged.push_back(whole);
    damaged.back()[i] = static_cast<char>(damaged.back()[i] ^ 0x10);
    damaged.push_back(whole.substr(0, i));
  }
  damaged.push_back(whole + "x");
  for (const std::string& bytes : damaged) {
    warnings_.lines.clear();
    dir_.Write("cache/" + DigestToHex(key) + ".bin", bytes);
    EXPECT_EQ(Found(key), "nothing");
    ASSERT_THAT(
        warnings_.lines,
        ElementsAre(AnyOf(HasSubstr(".bin: it is truncated; it is made anew"),
                          HasSubstr("checksum"))));
  }
  EXPECT_EQ(Stored("content"), key);
  EXPECT_EQ(Found(key), "content");
  // The entry of one key under the name of another.
  const Digest other = Stored("other content");
  fs::copy_file(EntryPath(key), EntryPath(other),
                fs::copy_options::overwrite_existing);
  EXPECT_EQ(Found(other), "nothing");
}

TEST_F(FileCacheTest, AFullDiskCostsTheEntryAlone) {
  const Digest kept = Stored("kept");
  ASSERT_NE(::signal(SIGXFSZ, SIG_IGN), SIG_ERR);
  struct rlimit before = {};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const struct rlimit full = {.rlim_cur = 100, .rlim_max = before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &full), 0);
  const Digest lost = Stored(std::string(1000, 'x'));
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  EXPECT_THAT(warnings_.lines, ElementsAre(HasSubstr("cannot write")));
  EXPECT_EQ(Found(lost), "nothing");
  EXPECT_EQ(Found(kept), "kept");
  EXPECT_EQ(std::distance(fs::directory_iterator(dir_.File("cache")), {}), 1);
}

TEST_F(FileCacheTest, ForgetsWhatKilledWritersLeftADayAgo) {
  const std::string path = EntryPath(Stored("content"));
  for (const char* ending : {".AbCdEf", ".123-0"}) {
    fs::copy_file(path, path + ending);
    Open();
    EXPECT_TRUE(fs::exists(path + ending)) << "it may be in use";
    fs::last_write_time(path + ending, fs::file_time_type::clock::now() -
                                           std::chrono::hours(25));
  }
  fs::last_write_time(
      path, fs::file_time_type::clock::now() - std::chrono::hours(1000));
  dir_.Write("cache/notes", "not ours");
  Open();
  EXPECT_EQ(std::distance(fs::directory_iterator(dir_.File("cache")), {}), 2);
}

TEST_F(FileCacheTest, NeedsAFolder) {
  dir_.Write("file", "");
  for (const std::string& path :
       {dir_.File("file"), dir_.File("file/below"), std::string("/proc/x")}) {
    const auto cache = FileCache::Open(path);
    ASSERT_FALSE(cache.ok()) << path;
    EXPECT_EQ(cache.error().code, ErrorCode::kEnvironment);
    EXPECT_THAT(cache.error().message, HasSubstr(path));
  }
}

TEST(Hasher, FieldsAreToldApart) {
  const auto digest = [](std::initializer_list<std::string_view> fields) {
    Hasher hasher;
    for (const std::string_view field : fields) hasher.Add(field);
    return hasher.Finish();
  };
  EXPECT_EQ(digest({"ab", "c"}), digest({"ab", "c"}));
  EXPECT_NE(digest({"ab", "c"}), digest({"a", "bc"}));
  EXPECT_NE(digest({"ab"}), digest({"ab", ""}));
  // XXH3-128 of nothing, seed 0, as its specification has it.
  EXPECT_EQ(DigestToHex(DigestOf({})), "99aa06d3014798d86001c324468d497f");
}

}  // namespace
}  // namespace hexllm
