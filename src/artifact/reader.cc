#include "artifact/reader.h"

#include <fmt/format.h>

#include <cstring>
#include <utility>

#include "artifact/format.h"
#include "artifact/manifest_codec.h"
#include "artifact/validate.h"
#include "base/mapped_file.h"
#include "base/quote.h"

namespace hexllm::artifact {
namespace {

class FileArtifact final : public Artifact {
 public:
  FileArtifact(ByteSpan bytes, std::shared_ptr<const void> owner)
      : bytes_(bytes), owner_(std::move(owner)) {}

  // Sets the manifest, which must have been validated against `bytes`.
  void Fill(std::string path, Manifest manifest) {
    path_ = std::move(path);
    manifest_ = std::move(manifest);
  }

  ByteSpan Segment(uint32_t index) const override {
    HX_CHECK(index < manifest_.segments.size());
    const SegmentInfo& segment = manifest_.segments[index];
    const auto slice = Slice(bytes_, segment.offset, segment.bytes);
    HX_CHECK(slice);
    return *slice;
  }

 private:
  ByteSpan bytes_;
  std::shared_ptr<const void> owner_;
};

Status CheckFileSize(const FileHeader& header, uint64_t found) {
  if (found < header.file_bytes) {
    return Invalid(
        fmt::format("the file is truncated: expected {} bytes, "
                    "found {}; copy it again",
                    header.file_bytes, found));
  }
  if (found > header.file_bytes) {
    return Invalid(
        fmt::format("the file has foreign bytes at its end: "
                    "expected {} bytes, found {}; copy it again",
                    header.file_bytes, found));
  }
  return OkStatus();
}

Result<FileHeader> ReadHeader(ByteSpan bytes) {
  FileHeader header;
  const size_t magic_bytes = std::min(bytes.size(), kMagic.size());
  if (bytes.empty() ||
      std::memcmp(bytes.data(), kMagic.data(), magic_bytes) != 0) {
    return Invalid("header: this is no hexllm artifact (.hxl)");
  }
  if (bytes.size() < sizeof(header)) {
    return Invalid(
        fmt::format("the file is truncated: expected a header of "
                    "{} bytes, found {}; copy it again",
                    sizeof(header), bytes.size()));
  }
  std::memcpy(&header, bytes.data(), sizeof(header));
  if (HeaderChecksum(header) != header.header_checksum) {
    return Invalid(
        "header: it is damaged (wrong checksum); copy the file "
        "again");
  }
  if (header.format_version != kFormatVersion) {
    return Error{
        ErrorCode::kUnsupported,
        fmt::format("header: expected format version {}, found {}; compile "
                    "the model again with this version of hexllm",
                    kFormatVersion, header.format_version)};
  }
  HX_RETURN_IF_ERROR(CheckFileSize(header, bytes.size()));
  return header;
}

Result<ByteSpan> FindManifest(const FileHeader& header, ByteSpan bytes) {
  const auto manifest =
      Slice(bytes, header.manifest_offset, header.manifest_bytes);
  // The header's own place and checksum are right, so only its maker can be
  // wrong; but sizes from a file are never trusted.
  if (header.header_bytes != sizeof(FileHeader) || header.reserved != 0 ||
      header.manifest_offset < kSegmentAlignment ||
      header.manifest_offset % kSegmentAlignment != 0 || !manifest ||
      header.manifest_offset + header.manifest_bytes != header.file_bytes) {
    return Invalid(fmt::format(
        "header: expected the manifest at the end of the file, found {} bytes "
        "at {} of {}",
        header.manifest_bytes, header.manifest_offset, header.file_bytes));
  }
  if (Checksum(*manifest) != header.manifest_checksum) {
    return Invalid(
        "manifest: it is damaged (wrong checksum); copy the file "
        "again");
  }
  return *manifest;
}

Status CheckInFile(const Manifest& manifest, uint64_t manifest_offset) {
  // In order and without overlap, so the last one's end is the largest.
  if (manifest.segments.empty()) return OkStatus();
  const SegmentInfo& last = manifest.segments.back();
  if (last.offset + last.bytes <= manifest_offset) return OkStatus();
  return Invalid(
      fmt::format("segment {}: {} bytes at {} reach beyond the "
                  "segments' end at {}",
                  Quoted(last.name), last.bytes, last.offset, manifest_offset));
}

Result<Manifest> ReadManifest(ByteSpan bytes) {
  HX_ASSIGN_OR_RETURN(const FileHeader header, ReadHeader(bytes));
  HX_ASSIGN_OR_RETURN(const ByteSpan encoded, FindManifest(header, bytes));
  auto manifest = DecodeManifest(encoded);
  if (!manifest.ok()) return std::move(manifest).error().With("manifest");
  Status status = ValidateManifest(*manifest);
  if (!status.ok()) return std::move(status).error().With("manifest");
  HX_RETURN_IF_ERROR(CheckInFile(*manifest, header.manifest_offset));
  return manifest;
}

// Segments that are too big to be read at every start.
bool IsBig(SegmentKind kind) {
  return kind == SegmentKind::kWeights || kind == SegmentKind::kQnnContext ||
         kind == SegmentKind::kEmbedding;
}

Status CheckSmallSegments(const Artifact& artifact) {
  for (uint32_t i = 0; i < artifact.manifest().segments.size(); ++i) {
    if (IsBig(artifact.manifest().segments[i].kind)) continue;
    HX_RETURN_IF_ERROR(artifact.Verify(i));
  }
  return OkStatus();
}

}  // namespace

Result<std::shared_ptr<const Artifact>> ParseArtifact(
    ByteSpan bytes, std::string path, std::shared_ptr<const void> owner) {
  auto manifest = ReadManifest(bytes);
  if (!manifest.ok()) return std::move(manifest).error().With(path);
  auto artifact = std::make_shared<FileArtifact>(bytes, std::move(owner));
  artifact->Fill(std::move(path), std::move(manifest).value());
  HX_RETURN_IF_ERROR(CheckSmallSegments(*artifact));
  return std::shared_ptr<const Artifact>(std::move(artifact));
}

Result<std::shared_ptr<const Artifact>> Artifact::Open(
    const std::string& path) {
  HX_ASSIGN_OR_RETURN(MappedFile file, MappedFile::Open(path));
  auto owner = std::make_shared<const MappedFile>(std::move(file));
  return ParseArtifact(owner->bytes(), path, owner);
}

}  // namespace hexllm::artifact
