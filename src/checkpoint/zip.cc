#include "checkpoint/zip.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "base/quote.h"

namespace hexllm {
namespace {

constexpr uint32_t kLocalMark = 0x04034b50;
constexpr uint32_t kCentralMark = 0x02014b50;
constexpr uint32_t kEndMark = 0x06054b50;
constexpr uint32_t kEnd64Mark = 0x06064b50;
constexpr uint32_t kLocator64Mark = 0x07064b50;
constexpr uint64_t kEndBytes = 22;
constexpr uint64_t kLocator64Bytes = 20;
constexpr uint64_t kMaxComment = 0xFFFF;
constexpr uint16_t kEncryptedFlag = 1;
constexpr uint16_t kStored = 0;
constexpr uint16_t kZip64Extra = 1;
// Values of the short fields that say: look in the zip64 record.
constexpr uint16_t kIn64Short = 0xFFFF;
constexpr uint32_t kIn64 = 0xFFFFFFFF;

Error BadInput(std::string message) {
  return Error{ErrorCode::kBadInput, std::move(message)};
}

// Where the central directory stands and how many members it lists.
struct Directory {
  uint64_t entries = 0;
  uint64_t bytes = 0;
  uint64_t offset = 0;
};

// One entry of the central directory.
struct Entry {
  std::string_view name;
  uint16_t flags = 0;
  uint16_t method = 0;
  uint64_t packed_bytes = 0;
  uint64_t bytes = 0;
  uint64_t offset = 0;  // of the local header
  uint64_t data_begin = 0;
};

// The offset of the end record: the last place from which a record with its
// comment reaches exactly to the end of the archive.
std::optional<uint64_t> FindEnd(ByteSpan archive) {
  if (archive.size() < kEndBytes) return std::nullopt;
  const uint64_t last = archive.size() - kEndBytes;
  const uint64_t first = last > kMaxComment ? last - kMaxComment : 0;
  for (uint64_t at = last + 1; at-- > first;) {
    uint32_t mark = 0;
    std::memcpy(&mark, archive.data() + at, sizeof(mark));
    if (mark != kEndMark) continue;
    uint16_t comment = 0;
    std::memcpy(&comment, archive.data() + at + 20, sizeof(comment));
    if (at + kEndBytes + comment == archive.size()) return at;
  }
  return std::nullopt;
}

// The zip64 end record, found by the locator that stands before `end`.
Result<Directory> ReadEnd64(ByteSpan archive, uint64_t end) {
  const auto locator =
      end < kLocator64Bytes
          ? std::nullopt
          : Slice(archive, end - kLocator64Bytes, kLocator64Bytes);
  if (!locator) return BadInput("zip64 locator: expected one, found none");
  ByteReader in(*locator);
  HX_ASSIGN_OR_RETURN(const auto locator_mark, in.Read<uint32_t>());
  HX_RETURN_IF_ERROR(in.ReadBytes(4).status());  // disk
  HX_ASSIGN_OR_RETURN(const auto offset, in.Read<uint64_t>());
  const auto record = Slice(archive, offset, 56);
  if (locator_mark != kLocator64Mark || !record)
    return BadInput("zip64 locator: expected one, found none");
  ByteReader fields(*record);
  HX_ASSIGN_OR_RETURN(const auto mark, fields.Read<uint32_t>());
  if (mark != kEnd64Mark)
    return BadInput("zip64 end record: expected one, found none");
  HX_RETURN_IF_ERROR(fields.ReadBytes(28).status());  // sizes, versions, disks
  Directory directory;
  HX_ASSIGN_OR_RETURN(directory.entries, fields.Read<uint64_t>());
  HX_ASSIGN_OR_RETURN(directory.bytes, fields.Read<uint64_t>());
  HX_ASSIGN_OR_RETURN(directory.offset, fields.Read<uint64_t>());
  return directory;
}

Result<Directory> ReadEnd(ByteSpan archive) {
  const auto end = FindEnd(archive);
  if (!end) {
    return BadInput(fmt::format(
        "expected a zip archive that ends with its directory, found none in "
        "{} bytes (truncated file?)",
        archive.size()));
  }
  ByteReader in(archive.subspan(*end + 4, kEndBytes - 4));
  HX_ASSIGN_OR_RETURN(const auto disk, in.Read<uint16_t>());
  HX_ASSIGN_OR_RETURN(const auto directory_disk, in.Read<uint16_t>());
  HX_ASSIGN_OR_RETURN(const auto entries_here, in.Read<uint16_t>());
  HX_ASSIGN_OR_RETURN(const auto entries, in.Read<uint16_t>());
  HX_ASSIGN_OR_RETURN(const auto bytes, in.Read<uint32_t>());
  HX_ASSIGN_OR_RETURN(const auto offset, in.Read<uint32_t>());
  if (entries == kIn64Short || bytes == kIn64 || offset == kIn64)
    return ReadEnd64(archive, *end);
  if (disk != 0 || directory_disk != 0 || entries_here != entries)
    return Error{ErrorCode::kUnsupported,
                 "expected a zip archive of one part, found one of several"};
  return Directory{entries, bytes, offset};
}

// Takes the sizes and the offset from the zip64 field where the short ones say
// so.
Status ReadExtra64(ByteSpan extra, Entry& entry) {
  ByteReader in(extra);
  while (in.remaining() >= 4) {
    HX_ASSIGN_OR_RETURN(const auto id, in.Read<uint16_t>());
    HX_ASSIGN_OR_RETURN(const auto size, in.Read<uint16_t>());
    HX_ASSIGN_OR_RETURN(const ByteSpan field, in.ReadBytes(size));
    if (id != kZip64Extra) continue;
    ByteReader values(field);
    for (uint64_t* value : {&entry.bytes, &entry.packed_bytes, &entry.offset}) {
      if (*value != kIn64) continue;
      HX_ASSIGN_OR_RETURN(*value, values.Read<uint64_t>());
    }
  }
  return OkStatus();
}

Result<Entry> ReadEntry(ByteReader& in) {
  Entry entry;
  HX_ASSIGN_OR_RETURN(const auto mark, in.Read<uint32_t>());
  if (mark != kCentralMark)
    return BadInput("directory: expected an entry, found something else");
  HX_RETURN_IF_ERROR(in.ReadBytes(4).status());  // versions
  HX_ASSIGN_OR_RETURN(entry.flags, in.Read<uint16_t>());
  HX_ASSIGN_OR_RETURN(entry.method, in.Read<uint16_t>());
  HX_RETURN_IF_ERROR(in.ReadBytes(8).status());  // time, checksum
  HX_ASSIGN_OR_RETURN(entry.packed_bytes, in.Read<uint32_t>());
  HX_ASSIGN_OR_RETURN(entry.bytes, in.Read<uint32_t>());
  HX_ASSIGN_OR_RETURN(const auto name_bytes, in.Read<uint16_t>());
  HX_ASSIGN_OR_RETURN(const auto extra_bytes, in.Read<uint16_t>());
  HX_ASSIGN_OR_RETURN(const auto comment_bytes, in.Read<uint16_t>());
  HX_RETURN_IF_ERROR(in.ReadBytes(8).status());  // disk, attributes
  HX_ASSIGN_OR_RETURN(entry.offset, in.Read<uint32_t>());
  HX_ASSIGN_OR_RETURN(const ByteSpan name, in.ReadBytes(name_bytes));
  HX_ASSIGN_OR_RETURN(const ByteSpan extra, in.ReadBytes(extra_bytes));
  HX_RETURN_IF_ERROR(in.ReadBytes(comment_bytes).status());
  entry.name = AsText(name);
  HX_RETURN_IF_ERROR(ReadExtra64(extra, entry));
  return entry;
}

Status CheckStored(const Entry& entry) {
  if ((entry.flags & kEncryptedFlag) != 0)
    return Error{ErrorCode::kUnsupported,
                 "expected a readable member, found an encrypted one"};
  if (entry.method != kStored)
    return Error{
        ErrorCode::kUnsupported,
        fmt::format("expected a stored member, as torch.save writes "
                    "them, found a compressed one (method {}, {} bytes "
                    "that expand to {})",
                    entry.method, entry.packed_bytes, entry.bytes)};
  if (entry.packed_bytes != entry.bytes)
    return BadInput(fmt::format("expected {} stored bytes, found {}",
                                entry.bytes, entry.packed_bytes));
  return OkStatus();
}

// The member's bytes, which stand behind its local header.
Result<ByteSpan> MemberData(ByteSpan members, Entry& entry) {
  HX_RETURN_IF_ERROR(CheckStored(entry));
  const auto header = Slice(members, entry.offset, 30);
  if (!header)
    return BadInput(
        fmt::format("expected a header before byte {} of the members, found "
                    "offset {} (truncated file?)",
                    members.size(), entry.offset));
  ByteReader in(*header);
  HX_ASSIGN_OR_RETURN(const auto mark, in.Read<uint32_t>());
  HX_RETURN_IF_ERROR(in.ReadBytes(22).status());
  HX_ASSIGN_OR_RETURN(const auto name_bytes, in.Read<uint16_t>());
  HX_ASSIGN_OR_RETURN(const auto extra_bytes, in.Read<uint16_t>());
  const auto name = Slice(members, entry.offset + 30, name_bytes);
  if (mark != kLocalMark || !name || AsText(*name) != entry.name)
    return BadInput("expected its header where the directory says, found none");
  entry.data_begin = entry.offset + 30 + name_bytes + extra_bytes;
  const auto data = Slice(members, entry.data_begin, entry.bytes);
  if (!data)
    return BadInput(fmt::format(
        "expected {} bytes from byte {}, found {} up to the directory "
        "(truncated member)",
        entry.bytes, entry.data_begin,
        members.size() - std::min<uint64_t>(members.size(), entry.data_begin)));
  return *data;
}

// No member may begin inside another: such archives say more than they hold.
Status CheckApart(std::vector<Entry> entries) {
  std::sort(entries.begin(), entries.end(),
            [](const Entry& a, const Entry& b) { return a.offset < b.offset; });
  for (size_t i = 1; i < entries.size(); ++i) {
    const Entry& before = entries[i - 1];
    if (entries[i].offset >= before.data_begin + before.bytes) continue;
    return BadInput(fmt::format("member {} overlaps member {}",
                                Quoted(entries[i].name), Quoted(before.name)));
  }
  return OkStatus();
}

}  // namespace

Result<std::vector<ZipMember>> ParseZip(ByteSpan archive) {
  HX_ASSIGN_OR_RETURN(const Directory directory, ReadEnd(archive));
  const auto listed = Slice(archive, directory.offset, directory.bytes);
  if (!listed)
    return BadInput(
        fmt::format("directory: expected it inside the {} bytes of "
                    "the archive, found {} bytes at {}",
                    archive.size(), directory.bytes, directory.offset));
  const ByteSpan before_directory = archive.first(directory.offset);
  ByteReader in(*listed);
  std::vector<Entry> entries;
  std::vector<ZipMember> members;
  for (uint64_t i = 0; i < directory.entries; ++i) {
    auto entry = ReadEntry(in);
    if (!entry.ok())
      return std::move(entry).error().With(
          fmt::format("directory entry {} of {}", i + 1, directory.entries));
    auto data = MemberData(before_directory, *entry);
    if (!data.ok())
      return std::move(data).error().With(
          fmt::format("member {}", Quoted(entry->name)));
    members.push_back({entry->name, *data});
    entries.push_back(*std::move(entry));
  }
  HX_RETURN_IF_ERROR(CheckApart(std::move(entries)));
  std::sort(members.begin(), members.end(),
            [](const auto& a, const auto& b) { return a.name < b.name; });
  const auto twice = std::adjacent_find(
      members.begin(), members.end(),
      [](const auto& a, const auto& b) { return a.name == b.name; });
  if (twice != members.end())
    return BadInput(fmt::format("member {}: expected once, found twice",
                                Quoted(twice->name)));
  return members;
}

}  // namespace hexllm
