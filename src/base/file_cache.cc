#include "base/file_cache.h"

#include <fmt/format.h>

#include <array>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <string_view>
#include <utility>

#include "base/output_file.h"
#include "base/quote.h"

namespace hexllm {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kEnding = ".bin";
constexpr auto kOld = std::chrono::hours(24);

// An entry's first bytes; its content follows. Little-endian.
struct EntryHeader {
  std::array<char, 8> magic = {'H', 'X', 'L', 'C', 'A', 'C', 'H', '1'};
  Digest key;
  uint64_t content_bytes = 0;
  Digest checksum;  // of key and content
};
static_assert(sizeof(EntryHeader) == 48);

EntryHeader HeaderOf(const Digest& key, ByteSpan content) {
  Hasher hasher;
  hasher.Add(key);
  hasher.Add(content);
  return {
      .key = key, .content_bytes = content.size(), .checksum = hasher.Finish()};
}

// What is wrong with a file that should be the entry of `key`; empty = nothing.
std::string_view DamageOf(ByteSpan file, const Digest& key) {
  if (file.size() < sizeof(EntryHeader)) return "it is truncated";
  EntryHeader found;
  std::memcpy(&found, file.data(), sizeof(found));
  const ByteSpan content = file.subspan(sizeof(EntryHeader));
  if (found.content_bytes != content.size()) return "it is truncated";
  const EntryHeader expected = HeaderOf(key, content);
  if (std::memcmp(&found, &expected, sizeof(found)) != 0)
    return "its checksum does not fit its content";
  return "";
}

// "<key>.bin.XXXXXX" or "<key>.bin.<pid>-<n>": an entry that was being written
// (base/output_file.cc).
bool IsTemporary(std::string_view name) {
  constexpr std::string_view kDigits = "0123456789";
  const size_t digits = DigestToHex({}).size();
  if (name.find_first_not_of("0123456789abcdef") != digits ||
      name.substr(digits, kEnding.size()) != kEnding)
    return false;
  const std::string_view rest = name.substr(digits + kEnding.size());
  const size_t dash = rest.find_first_not_of(kDigits, 1);
  const bool numbers = dash != rest.npos && rest[dash] == '-' &&
                       rest.find_first_not_of(kDigits, dash + 1) == rest.npos;
  const bool random = rest.size() == 7 && rest.find('.', 1) == rest.npos;
  return rest.starts_with('.') && (numbers || random);
}

void RemoveOldTemporaries(const std::string& folder) {
  std::error_code ignored;
  for (fs::directory_iterator at(folder, ignored), end; !ignored && at != end;
       at.increment(ignored)) {
    if (!at->is_regular_file(ignored) ||
        !IsTemporary(at->path().filename().string()))
      continue;
    const auto written = at->last_write_time(ignored);
    if (!ignored && fs::file_time_type::clock::now() - written > kOld)
      fs::remove(at->path(), ignored);
  }
}

}  // namespace

Result<FileCache> FileCache::Open(const std::string& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error || !fs::is_directory(folder, error)) {
    return Error{ErrorCode::kEnvironment,
                 fmt::format("{}: cannot be a cache: {}", Printable(folder),
                             error ? error.message() : "it is no folder")};
  }
  if (const auto probe = OutputFile::Create(folder + "/probe"); !probe.ok())
    return Error(probe.error()).With("a cache that nothing can be kept in");
  RemoveOldTemporaries(folder);
  HX_ASSIGN_OR_RETURN(const MappedFile program,
                      MappedFile::Open("/proc/self/exe"));
  return FileCache(folder, DigestOf(program.bytes()));
}

Hasher FileCache::StartKey(std::string_view kind) const {
  Hasher hasher;
  hasher.Add(kind);
  hasher.Add(program_);
  return hasher;
}

std::string FileCache::PathOf(const Digest& key) const {
  return (fs::path(folder_) / DigestToHex(key)).string() + std::string(kEnding);
}

std::optional<FileCache::Entry> FileCache::Find(const Digest& key,
                                                ProgressSink& progress) const {
  const std::string path = PathOf(key);
  std::error_code error;
  if (!fs::exists(path, error)) return std::nullopt;
  auto file = MappedFile::Open(path);
  if (!file.ok()) {
    progress.Warn("cache entry " + file.error().message + "; it is made anew");
    return std::nullopt;
  }
  const std::string_view damage = DamageOf(file->bytes(), key);
  if (!damage.empty()) {
    progress.Warn(fmt::format("cache entry {}: {}; it is made anew",
                              Printable(path), damage));
    return std::nullopt;
  }
  Entry entry{.file = *std::move(file), .bytes = {}};
  entry.bytes = entry.file.bytes().subspan(sizeof(EntryHeader));
  return entry;
}

void FileCache::Store(const Digest& key, ByteSpan bytes,
                      ProgressSink& progress) const {
  const EntryHeader header = HeaderOf(key, bytes);
  const auto write = [&]() -> Status {
    HX_ASSIGN_OR_RETURN(OutputFile file, OutputFile::Create(PathOf(key)));
    HX_RETURN_IF_ERROR(file.Write(std::as_bytes(std::span(&header, 1))));
    HX_RETURN_IF_ERROR(file.Write(bytes));
    return file.Commit();
  };
  const Status stored = write();
  if (!stored.ok()) progress.Warn("cache entry " + stored.error().message);
}

}  // namespace hexllm
