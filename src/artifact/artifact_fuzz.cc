// Opens hostile artifacts: the input as it is; the input with its checksums
// made right, so that what lies behind them is reached; and the input as a
// manifest alone.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>

#include "artifact/artifact.h"
#include "artifact/format.h"
#include "artifact/inspect.h"
#include "artifact/manifest_codec.h"
#include "artifact/reader.h"

namespace hexllm::artifact {
namespace {

void Open(const std::string& file) {
  const auto artifact = ParseArtifact(AsBytes(file), "fuzz", nullptr);
  if (!artifact.ok()) return;
  // A failure is fine, a crash is not.
  (void)(*artifact)->VerifyAll();
  HX_CHECK(!DescribeArtifact(**artifact).empty());
  HX_CHECK(!DumpJson(ArtifactToJson(**artifact)).empty());
}

// Makes magic, version, sizes and checksums of `file` fit its bytes.
void Seal(std::string& file) {
  FileHeader header;
  if (file.size() < sizeof(header)) return;
  std::memcpy(&header, file.data(), sizeof(header));
  const FileHeader fresh;
  header.magic = fresh.magic;
  header.format_version = fresh.format_version;
  header.header_bytes = fresh.header_bytes;
  header.file_bytes = file.size();
  header.reserved = 0;
  if (header.manifest_offset > file.size()) return;
  header.manifest_bytes = file.size() - header.manifest_offset;
  header.manifest_checksum =
      Checksum(AsBytes(file).subspan(header.manifest_offset));
  header.header_checksum = HeaderChecksum(header);
  std::memcpy(file.data(), &header, sizeof(header));
}

}  // namespace
}  // namespace hexllm::artifact

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace hexllm::artifact;  // NOLINT(google-build-using-namespace)
  std::string file(reinterpret_cast<const char*>(data), size);
  Open(file);
  Seal(file);
  Open(file);
  const auto manifest = DecodeManifest(hexllm::AsBytes(
      std::string_view(reinterpret_cast<const char*>(data), size)));
  if (manifest.ok()) (void)ValidateManifest(*manifest);
  return 0;
}
