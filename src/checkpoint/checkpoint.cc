#include "checkpoint/checkpoint.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <unordered_set>
#include <utility>

#include "base/quote.h"
#include "checkpoint/meta_shards.h"
#include "checkpoint/pytorch.h"
#include "checkpoint/safetensors.h"

namespace hexllm {
namespace {

// What a folder of Hugging Face may hold, best first.
constexpr std::string_view kSafetensorsFile = "model.safetensors";
constexpr std::string_view kSafetensorsIndex = "model.safetensors.index.json";
constexpr std::string_view kPytorchFile = "pytorch_model.bin";
constexpr std::string_view kPytorchIndex = "pytorch_model.bin.index.json";

std::string Join(const std::string& directory, std::string_view name) {
  return (std::filesystem::path(directory) / name).string();
}

bool Exists(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::exists(path, ignored);
}

// Of a file; never empty.
std::string FolderOf(const std::string& path) {
  const auto parent = std::filesystem::path(path).parent_path();
  return parent.empty() ? "." : parent.string();
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

// Refuses, with advice, what is known to be none of our formats.
Status CheckKnownFormat(ByteSpan bytes) {
  if (LooksLikeSafetensors(bytes)) return OkStatus();
  // A plain pickle begins with the protocol mark.
  if (StartsWith(bytes, "\x80\x02")) {
    return Error{ErrorCode::kUnsupported,
                 "a PyTorch checkpoint in the form before 1.6; load it and "
                 "save it again with a newer torch.save"};
  }
  if (StartsWith(bytes, "{")) {
    return Error{ErrorCode::kBadInput,
                 "expected a checkpoint, found JSON; give the folder that "
                 "holds it"};
  }
  return OkStatus();
}

// One safetensors or PyTorch file, mapped and parsed.
struct Shard {
  CheckpointFormat format;
  Checkpoint::File file;
  std::vector<TensorView> tensors;
};

// Works for SafetensorsFile and PytorchFile.
template <typename Parsed>
Result<Shard> ShardOf(CheckpointFormat format, MappedFile mapping,
                      Result<Parsed> parsed) {
  if (!parsed.ok()) return std::move(parsed).error().With(mapping.path());
  return Shard{format,
               {std::move(mapping), std::move(parsed->metadata)},
               std::move(parsed->tensors)};
}

Result<Shard> ParseShard(MappedFile mapping) {
  const ByteSpan bytes = mapping.bytes();
  if (LooksLikePytorch(bytes))
    return ShardOf(CheckpointFormat::kPytorch, std::move(mapping),
                   ParsePytorch(bytes));
  return ShardOf(CheckpointFormat::kSafetensors, std::move(mapping),
                 ParseSafetensors(bytes));
}

Result<SafetensorsIndex> LoadIndex(const std::string& path) {
  HX_ASSIGN_OR_RETURN(const MappedFile file, MappedFile::Open(path));
  auto index = ParseSafetensorsIndex(AsText(file.bytes()));
  if (!index.ok()) return std::move(index).error().With(path);
  return index;
}

// Every tensor of a shard must be one that the index places there.
Status CheckTensorsOfShard(const Shard& shard, std::string_view shard_name,
                           const SafetensorsIndex& index,
                           std::string_view index_name) {
  for (const TensorView& tensor : shard.tensors) {
    const auto place = index.weight_map.find(tensor.name);
    if (place == index.weight_map.end()) {
      return Error{
          ErrorCode::kBadInput,
          fmt::format("{}: tensor {}: not in {}", shard.file.mapping.path(),
                      Quoted(tensor.name), index_name)};
    }
    if (place->second != shard_name) {
      return Error{
          ErrorCode::kBadInput,
          fmt::format("{}: tensor {}: expected in {} by {}, found here too",
                      shard.file.mapping.path(), Quoted(tensor.name),
                      Quoted(place->second), index_name)};
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
  std::vector<std::string> pytorch;  // .pt, .pth; sorted
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
    } else if (extension == ".pt" || extension == ".pth") {
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

// Why a folder holds nothing to open.
Error NoCheckpointError(const std::string& path, const Listing& listing) {
  for (const auto& [names, kind] :
       {std::pair(&listing.gguf, ".gguf file"),
        std::pair(&listing.pytorch, ".pt or .pth file")}) {
    if (names->size() < 2) continue;
    return Error{
        ErrorCode::kBadInput,
        fmt::format("{}: expected one {}, found {} ({}, {}, ...); name "
                    "the one you mean",
                    path, kind, names->size(), Printable((*names)[0]),
                    Printable((*names)[1]))};
  }
  return Error{
      ErrorCode::kBadInput,
      fmt::format("{}: expected {}, {}, {}, {}, consolidated.00.pth, or one "
                  ".gguf, .pt or .pth file, found none",
                  path, kSafetensorsFile, kSafetensorsIndex, kPytorchFile,
                  kPytorchIndex)};
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
  switch (format) {
    case CheckpointFormat::kGguf:
      return "GGUF";
    case CheckpointFormat::kPytorch:
      return "PyTorch";
    case CheckpointFormat::kSafetensors:
      break;
  }
  return "safetensors";
}

bool LooksLikeCheckpoint(ByteSpan file) {
  return LooksLikeSafetensors(file) || LooksLikePytorch(file) ||
         StartsWith(file, "GGUF");
}

Result<Checkpoint> Checkpoint::Open(const std::string& path) {
  std::error_code ignored;
  const bool directory = std::filesystem::is_directory(path, ignored);
  auto checkpoint = directory ? OpenDirectory(path) : OpenFile(path);
  if (checkpoint.ok()) checkpoint->path_ = path;
  return checkpoint;
}

Checkpoint Checkpoint::FromTensors(std::string path, MappedFile file,
                                   std::vector<TensorView> tensors) {
  Checkpoint out;
  out.path_ = std::move(path);
  out.files_.push_back({std::move(file), {}});
  out.tensors_ = std::move(tensors);
  SortByName(out.tensors_);
  return out;
}

Result<Checkpoint> Checkpoint::OpenDirectory(const std::string& path) {
  const auto has = [&](std::string_view name) {
    return Exists(Join(path, name));
  };
  if (has(kSafetensorsFile)) return OpenFile(Join(path, kSafetensorsFile));
  if (has(kSafetensorsIndex)) return OpenSharded(path, kSafetensorsIndex);
  HX_ASSIGN_OR_RETURN(const Listing listing, List(path));
  if (listing.gguf.size() == 1) return OpenFile(Join(path, listing.gguf[0]));
  if (has(kPytorchFile)) return OpenFile(Join(path, kPytorchFile));
  if (has(kPytorchIndex)) return OpenSharded(path, kPytorchIndex);
  const auto meta = std::find_if(listing.pytorch.begin(), listing.pytorch.end(),
                                 IsMetaShardName);
  if (meta != listing.pytorch.end()) return OpenFile(Join(path, *meta));
  if (listing.pytorch.size() == 1)
    return OpenFile(Join(path, listing.pytorch[0]));
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
  if (IsMetaShardName(std::filesystem::path(path).filename().string())) {
    HX_ASSIGN_OR_RETURN(const auto shards, MetaShardPaths(path));
    if (shards.size() > 1) return OpenMetaShards(shards);
  }
  HX_ASSIGN_OR_RETURN(Shard shard, ParseShard(std::move(mapping)));
  out.format_ = shard.format;
  out.directory_ = FolderOf(path);
  out.tensors_ = std::move(shard.tensors);
  out.files_.push_back(std::move(shard.file));
  return out;
}

Result<Checkpoint> Checkpoint::OpenMetaShards(
    const std::vector<std::string>& paths) {
  Checkpoint out;
  out.format_ = CheckpointFormat::kPytorch;
  out.directory_ = FolderOf(paths[0]);
  std::vector<MetaShard> shards;
  for (const std::string& path : paths) {
    HX_ASSIGN_OR_RETURN(MappedFile mapping, MappedFile::Open(path));
    HX_ASSIGN_OR_RETURN(Shard shard, ParseShard(std::move(mapping)));
    out.files_.push_back(std::move(shard.file));
    shards.push_back({path, std::move(shard.tensors)});
  }
  HX_ASSIGN_OR_RETURN(MetaModel model, JoinMetaShards(shards));
  out.files_.push_back({std::move(model.joined), {}});
  out.tensors_ = std::move(model.tensors);
  return out;
}

Result<Checkpoint> Checkpoint::OpenSharded(const std::string& directory,
                                           std::string_view index_name) {
  const std::string index_path = Join(directory, index_name);
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
    HX_RETURN_IF_ERROR(CheckTensorsOfShard(shard, name, index, index_name));
    out.format_ = shard.format;
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
