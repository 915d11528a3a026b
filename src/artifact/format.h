// The fixed part of an artifact file (.hxl): header, alignment, checksums. Used
// by the reader and the writer alone. What the file says about itself is in
// manifest.h; this page only says where things stand.
//
//   0        64        4096            manifest_offset  file_bytes
//   +--------+---------+-----------+---+----------------+
//   | header |  zeros  | segment 0 | . |    manifest    |
//   +--------+---------+-----------+---+----------------+
//
// Every segment and the manifest start at a multiple of 4096; segments stand in
// the order of the manifest's list, with zeros between them.
//
// The manifest stands last, so that a compiler can stream segments whose sizes
// it does not know yet; only the header is written afterwards. It is a
// FlatBuffer (manifest.fbs). All numbers are little-endian.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/bytes.h"

namespace hexllm::artifact {

// A file's first bytes. Like PNG's: a byte above 127 and both kinds of line
// end, so that a transfer as text is noticed.
inline constexpr std::array<char, 8> kMagic = {'\x89', 'H',  'X',    'L',
                                               '\r',   '\n', '\x1a', '\n'};
// Changed when an older reader would misread the file.
inline constexpr uint32_t kFormatVersion = 1;
// A page on every machine we run on: segments can be mapped or handed to a
// device one by one.
inline constexpr uint64_t kSegmentAlignment = 4096;

// Limits of the manifest. They bound what a hostile file can make a reader
// allocate; a model of 200 layers with ten graphs uses a hundredth of each.
inline constexpr uint64_t kMaxManifestBytes = uint64_t{64} << 20;
inline constexpr uint32_t kMaxManifestTables = 200'000;
inline constexpr uint32_t kMaxManifestDepth = 8;
inline constexpr size_t kMaxNameBytes = 1024;
inline constexpr size_t kMaxRank = 8;

// The first 64 bytes of the file.
struct FileHeader {
  std::array<char, 8> magic = kMagic;
  uint32_t format_version = kFormatVersion;
  uint32_t header_bytes = 64;
  uint64_t file_bytes = 0;       // size of the whole file
  uint64_t manifest_offset = 0;  // multiple of kSegmentAlignment
  uint64_t manifest_bytes = 0;  // manifest_offset + manifest_bytes = file_bytes
  uint64_t manifest_checksum = 0;  // Checksum() of the manifest
  uint64_t reserved = 0;           // zero
  uint64_t header_checksum = 0;    // Checksum() of the 56 bytes before it
};
static_assert(sizeof(FileHeader) == 64);
static_assert(offsetof(FileHeader, header_checksum) == 56);

// XXH3-64, the checksum of segments, manifest and header. Finds accidents, not
// forgers.
uint64_t Checksum(ByteSpan bytes);

// The checksum that belongs into `header.header_checksum`.
uint64_t HeaderChecksum(const FileHeader& header);

}  // namespace hexllm::artifact
