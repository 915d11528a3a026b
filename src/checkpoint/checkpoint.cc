#include "checkpoint/checkpoint.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <unordered_set>
#include <utility>

#include "base/quote.h"
#include "checkpoint/safetensors.h"

namespace hexllm {
namespace {

constexpr std::string_view kSingleFile = "model.safetensors";
constexpr std::string_view kIndexFile = "model.safetensors.index.json";
constexpr std::string_view kReadable =
    "hexllm reads safetensors (a file, or a Hugging Face folder) and GGUF";

std::string Join(const std::string& directory, std::string_view name) {
  return (std::filesystem::path(directory) / name).string();
}

bool Exists(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::exists(path, ignored);
}

bool StartsWith(ByteSpan bytes, std::string_view prefix) {
  return AsText(bytes).substr(0, prefix.size()) == prefix;
}

// A plausible header length and the header's first byte. Asked first: the
// length can look like any other format's mark.
bool LooksLikeSafetensors(ByteSpan bytes) {
  ByteReader reader(bytes);
  const auto length = reader.Read<uint64_t>();
  return length.ok() && *length <= reader.remaining() &&
         StartsWith(bytes.subspan(reader.offset()), "{");
}

// Refuses, with advice, what is known to be neither safetensors nor GGUF.
Status CheckKnownFormat(ByteSpan bytes) {
  if (LooksLikeSafetensors(bytes)) return OkStatus();
  // PyTorch writes a zip archive; its old form and plain pickles begin with the
  // pickle protocol mark.
  if (StartsWith(bytes, "PK\x03\x04") || StartsWith(bytes, "\x80\x02")) {
    return Error{
        ErrorCode::kUnsupported,
        fmt::format("PyTorch checkpoints are not supported; {}", kReadable)};
  }
  if (StartsWith(bytes, "{")) {
    return Error{ErrorCode::kBadInput,
                 "expected a checkpoint, found JSON; give the folder that "
                 "holds it"};
  }
  return OkStatus();
}

// One safetensors file, mapped and parsed.
struct Shard {
  Checkpoint::File file;
  std::vector<TensorView> tensors;
};

Result<Shard> ParseShard(MappedFile mapping) {
  auto parsed = ParseSafetensors(mapping.bytes());
  if (!parsed.ok()) return std::move(parsed).error().With(mapping.path());
  return Shard{{std::move(mapping), std::move(parsed->metadata)},
               std::move(parsed->tensors)};
}

Result<SafetensorsIndex> LoadIndex(const std::string& path) {
  HX_ASSIGN_OR_RETURN(const MappedFile file, MappedFile::Open(path));
  auto index = ParseSafetensorsIndex(AsText(file.bytes()));
  if (!index.ok()) return std::move(index).error().With(path);
  return index;
}

// Every tensor of a shard must be one that the index places there.
Status CheckTensorsOfShard(const Shard& shard, std::string_view shard_name,
                           const SafetensorsIndex& index) {
  for (const TensorView& tensor : shard.tensors) {
    const auto place = index.weight_map.find(tensor.name);
    if (place == index.weight_map.end()) {
      return Error{
          ErrorCode::kBadInput,
          fmt::format("{}: tensor {}: not in {}", shard.file.mapping.path(),
                      Quoted(tensor.name), kIndexFile)};
    }
    if (place->second != shard_name) {
      return Error{
          ErrorCode::kBadInput,
          fmt::format("{}: tensor {}: expected in {} by {}, found here too",
                      shard.file.mapping.path(), Quoted(tensor.name),
                      Quoted(place->second), kIndexFile)};
    }
  }
  return OkStatus();
}

// Every tensor of the index must have been found.
Status CheckAllFound(const std::string& index_path,
                     const SafetensorsIndex& index,
                     std::span<const TensorView> tensors) {
  std::unordered_set<std::string_view> names;
  for (const TensorView& tensor : tensors) names.insert(tensor.name);
  for (const auto& [name, shard] : index.weight_map) {
    if (!names.contains(name)) {
      return Error{ErrorCode::kBadInput,
                   fmt::format("{}: tensor {}: expected in {}, found nothing",
                               index_path, Quoted(name), Quoted(shard))};
    }
  }
  return OkStatus();
}

void SortByName(std::vector<TensorView>& tensors) {
  std::sort(
      tensors.begin(), tensors.end(),
      [](const TensorView& a, const TensorView& b) { return a.name < b.name; });
}

// What stands in a folder, as far as the choice of a reader needs it.
struct Listing {
  std::vector<std::string> gguf;     // file names, sorted
  std::vector<std::string> pytorch;  // .bin, .pt, .pth
};

Result<Listing> List(const std::string& directory) {
  Listing listing;
  std::error_code error;
  auto it = std::filesystem::directory_iterator(directory, error);
  for (; !error && it != std::filesystem::directory_iterator();
       it.increment(error)) {
    const std::string extension = it->path().extension().string();
    std::string name = it->path().filename().string();
    if (extension == ".gguf") {
      listing.gguf.push_back(std::move(name));
    } else if (extension == ".bin" || extension == ".pt" ||
               extension == ".pth") {
      listing.pytorch.push_back(std::move(name));
    }
  }
  if (error) {
    return Error{
        ErrorCode::kEnvironment,
        fmt::format("{}: cannot list: {}", directory, error.message())};
  }
  std::sort(listing.gguf.begin(), listing.gguf.end());
  std::sort(listing.pytorch.begin(), listing.pytorch.end());
  return listing;
}

// Why a folder without safetensors and without exactly one GGUF file is none
// that hexllm opens.
Error NoCheckpointError(const std::string& path, const Listing& listing) {
  if (listing.gguf.size() > 1) {
    return Error{ErrorCode::kBadInput,
                 fmt::format("{}: expected one .gguf file, found {} ({}, {}, "
                             "...); name the one you mean",
                             path, listing.gguf.size(), listing.gguf[0],
                             listing.gguf[1])};
  }
  if (!listing.pytorch.empty()) {
    return Error{ErrorCode::kUnsupported,
                 fmt::format("{}: PyTorch checkpoints ({}) are not supported; "
                             "{}",
                             path, listing.pytorch[0], kReadable)};
  }
  return Error{ErrorCode::kBadInput,
               fmt::format("{}: expected {}, {} or one .gguf file, found none",
                           path, kSingleFile, kIndexFile)};
}

// Parts of a split model are no models.
Status CheckNotSplit(const GgufMetadata& metadata) {
  HX_ASSIGN_OR_RETURN(const auto parts, metadata.FindUint("split.count"));
  if (parts.value_or(0) <= 1) return OkStatus();
  return Error{ErrorCode::kUnsupported,
               fmt::format("one of {} parts of a split GGUF model; join them "
                           "first (llama-gguf-split --merge)",
                           *parts)};
}

}  // namespace

std::string_view CheckpointFormatName(CheckpointFormat format) {
  return format == CheckpointFormat::kGguf ? "GGUF" : "safetensors";
}

Result<Checkpoint> Checkpoint::Open(const std::string& path) {
  std::error_code ignored;
  const bool directory = std::filesystem::is_directory(path, ignored);
  auto checkpoint = directory ? OpenDirectory(path) : OpenFile(path);
  if (checkpoint.ok()) checkpoint->path_ = path;
  return checkpoint;
}

Result<Checkpoint> Checkpoint::OpenDirectory(const std::string& path) {
  if (const std::string single = Join(path, kSingleFile); Exists(single)) {
    return OpenFile(single);
  }
  if (Exists(Join(path, kIndexFile))) return OpenSharded(path);
  HX_ASSIGN_OR_RETURN(const Listing listing, List(path));
  if (listing.gguf.size() == 1) return OpenFile(Join(path, listing.gguf[0]));
  return NoCheckpointError(path, listing);
}

Result<Checkpoint> Checkpoint::OpenFile(const std::string& path) {
  HX_ASSIGN_OR_RETURN(MappedFile mapping, MappedFile::Open(path));
  if (Status known = CheckKnownFormat(mapping.bytes()); !known.ok()) {
    return std::move(known).error().With(path);
  }
  Checkpoint out;
  if (StartsWith(mapping.bytes(), "GGUF")) {
    out.format_ = CheckpointFormat::kGguf;
    auto parsed = ParseGguf(mapping.bytes());
    if (!parsed.ok()) return std::move(parsed).error().With(path);
    if (Status whole = CheckNotSplit(parsed->metadata); !whole.ok()) {
      return std::move(whole).error().With(path);
    }
    out.gguf_ =
        std::make_unique<const GgufMetadata>(std::move(parsed->metadata));
    out.tensors_ = std::move(parsed->tensors);
    out.files_.push_back({std::move(mapping), {}});
    return out;
  }
  HX_ASSIGN_OR_RETURN(Shard shard, ParseShard(std::move(mapping)));
  const auto parent = std::filesystem::path(path).parent_path();
  out.directory_ = parent.empty() ? "." : parent.string();
  out.tensors_ = std::move(shard.tensors);
  out.files_.push_back(std::move(shard.file));
  return out;
}

Result<Checkpoint> Checkpoint::OpenSharded(const std::string& directory) {
  const std::string index_path = Join(directory, kIndexFile);
  HX_ASSIGN_OR_RETURN(const SafetensorsIndex index, LoadIndex(index_path));
  Checkpoint out;
  out.directory_ = directory;
  for (const std::string& name : index.shards) {
    const std::string shard_path = Join(directory, name);
    if (!Exists(shard_path)) {
      return Error{ErrorCode::kBadInput,
                   fmt::format("{}: expected the shard {} beside it, found no "
                               "such file",
                               index_path, Quoted(name))};
    }
    HX_ASSIGN_OR_RETURN(MappedFile mapping, MappedFile::Open(shard_path));
    HX_ASSIGN_OR_RETURN(Shard shard, ParseShard(std::move(mapping)));
    HX_RETURN_IF_ERROR(CheckTensorsOfShard(shard, name, index));
    std::move(shard.tensors.begin(), shard.tensors.end(),
              std::back_inserter(out.tensors_));
    out.files_.push_back(std::move(shard.file));
  }
  HX_RETURN_IF_ERROR(CheckAllFound(index_path, index, out.tensors_));
  SortByName(out.tensors_);
  return out;
}

const TensorView* Checkpoint::Find(std::string_view name) const {
  const auto it =
      std::lower_bound(tensors_.begin(), tensors_.end(), name,
                       [](const TensorView& tensor, std::string_view wanted) {
                         return tensor.name < wanted;
                       });
  return it != tensors_.end() && it->name == name ? &*it : nullptr;
}

void Checkpoint::DropPages(const TensorView& tensor) const {
  for (const File& file : files_) {
    const ByteSpan bytes = file.mapping.bytes();
    if (tensor.data.data() >= bytes.data() &&
        tensor.data.data() + tensor.data.size() <=
            bytes.data() + bytes.size()) {
      file.mapping.DropPages(tensor.data);
      return;
    }
  }
  HX_CHECK(false);  // not a tensor of this checkpoint
}

}  // namespace hexllm
