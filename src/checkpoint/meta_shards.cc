#include "checkpoint/meta_shards.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <optional>

#include "base/quote.h"
#include "base/scratch_file.h"

namespace hexllm {
namespace {

constexpr std::string_view kPrefix = "consolidated.";
constexpr std::string_view kSuffix = ".pth";
constexpr int kMaxShards = 100;

// How the shards share a tensor.
enum class Split { kRows, kColumns, kReplicated };

struct Rule {
  std::string_view suffix;
  Split split;
};

constexpr Rule kRules[] = {
    {".attention.wq.weight", Split::kRows},
    {".attention.wk.weight", Split::kRows},
    {".attention.wv.weight", Split::kRows},
    {".attention.wo.weight", Split::kColumns},
    {".feed_forward.w1.weight", Split::kRows},
    {".feed_forward.w2.weight", Split::kColumns},
    {".feed_forward.w3.weight", Split::kRows},
    {"output.weight", Split::kRows},
    {"norm.weight", Split::kReplicated},
    {"rope.freqs", Split::kReplicated},
};

const TensorView* FindTensor(const MetaShard& shard, std::string_view name) {
  const auto at = std::lower_bound(
      shard.tensors.begin(), shard.tensors.end(), name,
      [](const TensorView& a, std::string_view b) { return a.name < b; });
  return at != shard.tensors.end() && at->name == name ? &*at : nullptr;
}

// Llama 3 shares the embedding by rows, Llama 2 by columns; the output, which
// is shared by rows, tells the width.
std::optional<Split> SplitOf(const MetaShard& shard, const TensorView& tensor) {
  if (tensor.name == "tok_embeddings.weight") {
    const TensorView* output = FindTensor(shard, "output.weight");
    if (output == nullptr || output->shape.size() != 2 ||
        tensor.shape.size() != 2)
      return std::nullopt;
    return output->shape[1] == tensor.shape[1] ? Split::kRows : Split::kColumns;
  }
  for (const Rule& rule : kRules) {
    if (std::string_view(tensor.name).ends_with(rule.suffix)) return rule.split;
  }
  return std::nullopt;
}

// The slices of one tensor, one a shard.
using Slices = std::vector<const TensorView*>;

Result<Slices> FindSlices(std::span<const MetaShard> shards,
                          const TensorView& first) {
  Slices slices;
  for (const MetaShard& shard : shards) {
    const TensorView* slice = FindTensor(shard, first.name);
    if (slice == nullptr || slice->shape != first.shape ||
        slice->dtype != first.dtype)
      return Error{
          ErrorCode::kBadInput,
          fmt::format("{}: tensor {}: expected {}{} as in {}, found {}",
                      shard.path, Quoted(first.name), DTypeName(first.dtype),
                      ShapeToString(first.shape), shards[0].path,
                      slice == nullptr
                          ? "none"
                          : fmt::format("{}{}", DTypeName(slice->dtype),
                                        ShapeToString(slice->shape)))};
    slices.push_back(slice);
  }
  return slices;
}

// Every tensor of each shard is one of the first.
Status CheckNoMore(std::span<const MetaShard> shards) {
  for (const MetaShard& shard : shards) {
    for (const TensorView& tensor : shard.tensors) {
      if (FindTensor(shards[0], tensor.name) != nullptr) continue;
      return Error{
          ErrorCode::kBadInput,
          fmt::format("{}: tensor {}: expected only tensors that {} "
                      "has too, found one more",
                      shard.path, Quoted(tensor.name), shards[0].path)};
    }
  }
  return OkStatus();
}

Status WriteColumns(const Slices& slices, ScratchFile& joined) {
  const auto rows = static_cast<size_t>(slices[0]->shape[0]);
  const size_t row_bytes = slices[0]->data.size() / rows;
  for (size_t row = 0; row < rows; ++row) {
    for (const TensorView* slice : slices)
      HX_RETURN_IF_ERROR(
          joined.Write(slice->data.subspan(row * row_bytes, row_bytes)));
  }
  return OkStatus();
}

// Writes the whole tensor; returns what it looks like, still without bytes.
Result<TensorView> Join(const Slices& slices, Split split,
                        ScratchFile& joined) {
  TensorView whole = *slices[0];
  if (whole.shape.size() != 2)
    return Error{ErrorCode::kBadInput,
                 fmt::format("tensor {}: expected a matrix, found {}",
                             Quoted(whole.name), ShapeToString(whole.shape))};
  whole.shape[split == Split::kRows ? 0 : 1] *=
      static_cast<int64_t>(slices.size());
  whole.data = {};
  if (split == Split::kColumns) {
    HX_RETURN_IF_ERROR(WriteColumns(slices, joined));
    return whole;
  }
  for (const TensorView* slice : slices)
    HX_RETURN_IF_ERROR(joined.Write(slice->data));
  return whole;
}

Status CheckReplicas(std::span<const MetaShard> shards, const Slices& slices) {
  for (size_t i = 1; i < slices.size(); ++i) {
    if (std::ranges::equal(slices[i]->data, slices[0]->data)) continue;
    return Error{
        ErrorCode::kBadInput,
        fmt::format("{}: tensor {}: expected the numbers that {} has, "
                    "as all shards hold all of it; found others",
                    shards[i].path, Quoted(slices[0]->name), shards[0].path)};
  }
  return OkStatus();
}

}  // namespace

bool IsMetaShardName(const std::string& name) {
  const auto digit = [&](size_t at) {
    return name[at] >= '0' && name[at] <= '9';
  };
  const size_t at = kPrefix.size();
  return name.size() == at + 2 + kSuffix.size() && name.starts_with(kPrefix) &&
         name.ends_with(kSuffix) && digit(at) && digit(at + 1);
}

Result<std::vector<std::string>> MetaShardPaths(const std::string& path) {
  const auto folder = std::filesystem::path(path).parent_path();
  std::vector<std::string> paths;
  std::string missing;
  for (int i = 0; i < kMaxShards; ++i) {
    const std::string name = fmt::format("{}{:02}{}", kPrefix, i, kSuffix);
    std::error_code ignored;
    if (!std::filesystem::exists(folder / name, ignored)) {
      if (missing.empty()) missing = name;
      continue;
    }
    if (!missing.empty())
      return Error{ErrorCode::kBadInput,
                   fmt::format("{}: expected the shard {} beside it, found no "
                               "such file",
                               (folder / name).string(), missing)};
    paths.push_back((folder / name).string());
  }
  return paths;
}

Result<MetaModel> JoinMetaShards(std::span<const MetaShard> shards) {
  HX_CHECK(shards.size() > 1);
  HX_RETURN_IF_ERROR(CheckNoMore(shards));
  HX_ASSIGN_OR_RETURN(ScratchFile joined, ScratchFile::Create("joined shards"));
  MetaModel model;
  std::vector<std::optional<uint64_t>> offsets;
  for (const TensorView& first : shards[0].tensors) {
    const auto split = SplitOf(shards[0], first);
    if (!split)
      return Error{
          ErrorCode::kUnsupported,
          fmt::format("{}: tensor {}: no rule says how {} shards "
                      "share it",
                      shards[0].path, Quoted(first.name), shards.size())};
    HX_ASSIGN_OR_RETURN(const Slices slices, FindSlices(shards, first));
    const bool replicated = *split == Split::kReplicated;
    if (replicated) HX_RETURN_IF_ERROR(CheckReplicas(shards, slices));
    offsets.push_back(replicated ? std::nullopt
                                 : std::optional<uint64_t>(joined.size()));
    HX_ASSIGN_OR_RETURN(TensorView whole, replicated
                                              ? Result<TensorView>(first)
                                              : Join(slices, *split, joined));
    model.tensors.push_back(std::move(whole));
  }
  HX_ASSIGN_OR_RETURN(model.joined, joined.Map());
  for (size_t i = 0; i < offsets.size(); ++i) {
    if (!offsets[i]) continue;
    const TensorView& first = shards[0].tensors[i];
    model.tensors[i].data = model.joined.bytes().subspan(
        *offsets[i], first.data.size() * shards.size());
  }
  return model;
}

}  // namespace hexllm
