// A checkpoint as published, opened: named tensor views over memory-mapped
// files plus its metadata. Used by models/, compile/ and `hexllm inspect`.
// Not a model: it interprets neither tensor names nor configuration.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/mapped_file.h"
#include "base/status.h"
#include "checkpoint/gguf.h"
#include "checkpoint/tensor_view.h"

namespace hexllm {

enum class CheckpointFormat { kSafetensors, kGguf, kPytorch };

// "safetensors", "GGUF" or "PyTorch".
std::string_view CheckpointFormatName(CheckpointFormat format);

// True when `file` begins as one of the formats does.
bool LooksLikeCheckpoint(ByteSpan file);

// Owns the mappings; move-only. Tensor views, metadata and their string views
// die with it (moving it keeps them valid). Immutable once open, thread-safe.
// The files must not be truncated by others while it is open.
class Checkpoint {
 public:
  // One file of the checkpoint, with the "__metadata__" of safetensors or what
  // checkpoint/pytorch.h calls metadata.
  struct File {
    MappedFile mapping;
    std::map<std::string, std::string> metadata;
  };

  // Opens a folder or one file. In a folder it takes the first of these:
  // model.safetensors, the shards of model.safetensors.index.json, the only
  // .gguf file, pytorch_model.bin, the shards of pytorch_model.bin.index.json,
  // consolidated.00.pth, the only .pt or .pth file. consolidated.NN.pth stands
  // for all its shards (checkpoint/meta_shards.h). Files are told apart by
  // content, not by name. Validates everything but the numbers in the tensors.
  // Errors name the file and, where there is one, the tensor: kEnvironment when
  // a file cannot be opened, kBadInput for damage, kUnsupported for formats,
  // tensor types and split GGUF files that hexllm does not read.
  static Result<Checkpoint> Open(const std::string& path);

  // Tensors in `file`, which messages call `path`; names differ. For what is
  // made of another checkpoint, which keeps metadata and side files.
  static Checkpoint FromTensors(std::string path, MappedFile file,
                                std::vector<TensorView> tensors);

  CheckpointFormat format() const { return format_; }
  // As given to Open.
  const std::string& path() const { return path_; }
  // The weight files, sorted by name.
  std::span<const File> files() const& { return files_; }
  std::span<const File> files() && = delete;

  // All tensors, sorted by name.
  std::span<const TensorView> tensors() const& { return tensors_; }
  std::span<const TensorView> tensors() && = delete;
  // Null when there is no such tensor.
  const TensorView* Find(std::string_view name) const;

  // Null unless the format is GGUF.
  const GgufMetadata* gguf() const { return gguf_.get(); }

  // The folder of the files that stand beside the weights (see
  // checkpoint/side_files.h); empty for GGUF, whose metadata takes their place.
  const std::string& side_directory() const { return directory_; }

  // Lets go of the resident pages of one of this checkpoint's tensors (checked;
  // see MappedFile::DropPages). Contents stay readable.
  void DropPages(const TensorView& tensor) const;

 private:
  Checkpoint() = default;
  static Result<Checkpoint> OpenFile(const std::string& path);
  static Result<Checkpoint> OpenDirectory(const std::string& path);
  static Result<Checkpoint> OpenSharded(const std::string& directory,
                                        std::string_view index_name);
  static Result<Checkpoint> OpenMetaShards(
      const std::vector<std::string>& paths);

  std::string path_;
  std::string directory_;  // of the side files; empty for GGUF
  CheckpointFormat format_ = CheckpointFormat::kSafetensors;
  std::vector<File> files_;  // the weight files; then, where shards were
                             // joined, the unnamed file that holds them
  std::vector<TensorView> tensors_;
  std::unique_ptr<const GgufMetadata> gguf_;
};

}  // namespace hexllm
