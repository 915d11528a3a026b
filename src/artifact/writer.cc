#include "artifact/writer.h"

#include <fmt/format.h>

#include <array>
#include <cstring>
#include <new>
#include <utility>

#include "artifact/format.h"
#include "artifact/manifest_codec.h"
#include "base/quote.h"

namespace hexllm::artifact {
namespace {

class MemoryArtifact final : public Artifact {
 public:
  MemoryArtifact(Manifest manifest, std::vector<MemorySegment> segments,
                 std::shared_ptr<const void> keep_alive)
      : segments_(std::move(segments)), keep_alive_(std::move(keep_alive)) {
    manifest_ = std::move(manifest);
    path_ = manifest_.model_name;
  }

  ByteSpan Segment(uint32_t index) const override {
    HX_CHECK(index < segments_.size());
    return segments_[index].bytes;
  }

 private:
  std::vector<MemorySegment> segments_;
  std::shared_ptr<const void> keep_alive_;
};

void FreeSegment(std::byte* data) {
  ::operator delete[](data, std::align_val_t{kSegmentAlignment});
}

// A copy of `bytes` at a multiple of kSegmentAlignment.
Result<MemorySegment> CopySegment(const std::string& name, ByteSpan bytes) {
  void* memory = ::operator new[](
      bytes.size(), std::align_val_t{kSegmentAlignment}, std::nothrow);
  if (memory == nullptr) {
    return Error{ErrorCode::kEnvironment,
                 fmt::format("segment {}: no memory for {} bytes", Quoted(name),
                             bytes.size())};
  }
  auto* data = static_cast<std::byte*>(memory);
  if (!bytes.empty()) std::memcpy(data, bytes.data(), bytes.size());
  return MemorySegment{.bytes = {data, bytes.size()},
                       .owned = {data, FreeSegment}};
}

FileHeader MakeHeader(uint64_t manifest_offset, ByteSpan manifest) {
  FileHeader header;
  header.file_bytes = manifest_offset + manifest.size();
  header.manifest_offset = manifest_offset;
  header.manifest_bytes = manifest.size();
  header.manifest_checksum = Checksum(manifest);
  header.header_checksum = HeaderChecksum(header);
  return header;
}

}  // namespace

Result<FileSink> FileSink::Create(const std::string& path) {
  HX_ASSIGN_OR_RETURN(OutputFile file, OutputFile::Create(path));
  // Room for the header, which Finish fills in.
  const std::array<std::byte, sizeof(FileHeader)> blank = {};
  HX_RETURN_IF_ERROR(file.Write(blank));
  return FileSink(std::move(file));
}

Result<uint32_t> FileSink::Add(NewSegment segment, ByteSpan bytes) {
  HX_RETURN_IF_ERROR(file_.PadTo(kSegmentAlignment));
  HX_CHECK(file_.size() == segments_.next_offset());
  HX_RETURN_IF_ERROR(file_.Write(bytes));
  return segments_.Append(std::move(segment), bytes, Checksum(bytes));
}

Status FileSink::Finish(Manifest manifest) {
  manifest.segments = std::move(segments_).Take();
  HX_RETURN_IF_ERROR(ValidateManifest(manifest));
  const std::string encoded = EncodeManifest(manifest);
  // What is written must not exceed the limits of the reader.
  HX_RETURN_IF_ERROR(DecodeManifest(AsBytes(encoded)).status());
  HX_RETURN_IF_ERROR(file_.PadTo(kSegmentAlignment));
  const FileHeader header = MakeHeader(file_.size(), AsBytes(encoded));
  HX_RETURN_IF_ERROR(file_.Write(AsBytes(encoded)));
  HX_RETURN_IF_ERROR(file_.WriteAt(0, std::as_bytes(std::span(&header, 1))));
  return file_.Commit();
}

Result<uint32_t> MemorySink::Add(NewSegment segment, ByteSpan bytes) {
  MemorySegment stored{.bytes = bytes, .owned = nullptr};
  if (segment.lifetime == Lifetime::kCall) {
    HX_ASSIGN_OR_RETURN(stored, CopySegment(segment.name, bytes));
  }
  stored_.push_back(std::move(stored));
  return segments_.Append(std::move(segment), bytes, std::nullopt);
}

Result<std::shared_ptr<const Artifact>> MemorySink::Finish(
    Manifest manifest, std::shared_ptr<const void> keep_alive) {
  manifest.segments = std::move(segments_).Take();
  HX_RETURN_IF_ERROR(ValidateManifest(manifest));
  return std::shared_ptr<const Artifact>(std::make_shared<MemoryArtifact>(
      std::move(manifest), std::move(stored_), std::move(keep_alive)));
}

}  // namespace hexllm::artifact
