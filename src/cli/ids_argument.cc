#include "cli/ids_argument.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <charconv>
#include <cstring>

#include "base/quote.h"
#include "checkpoint/checkpoint.h"

namespace hexllm::cli {
namespace {

constexpr std::string_view kTensorFile = ".safetensors:";

Result<std::vector<int32_t>> ReadTensor(const std::string& file,
                                        const std::string& name) {
  HX_ASSIGN_OR_RETURN(const Checkpoint checkpoint, Checkpoint::Open(file));
  const TensorView* tensor = checkpoint.Find(name);
  if (tensor == nullptr)
    return Error{
        ErrorCode::kBadInput,
        fmt::format("{}: expected a tensor {}, found none of that name", file,
                    Quoted(name))};
  if (tensor->dtype != DType::kI32 || tensor->shape.size() != 1) {
    return Error{ErrorCode::kBadInput,
                 fmt::format("{}: tensor {}: expected i32[T], found {}{}", file,
                             Quoted(name), DTypeName(tensor->dtype),
                             ShapeToString(tensor->shape))};
  }
  std::vector<int32_t> ids(static_cast<size_t>(tensor->shape[0]));
  std::memcpy(ids.data(), tensor->data.data(), tensor->data.size());
  return ids;
}

Result<std::vector<int32_t>> ParseList(std::string_view text) {
  std::vector<int32_t> ids;
  const char* at = text.data();
  const char* const end = text.data() + text.size();
  while (true) {
    int32_t id = 0;
    const auto [stop, error] = std::from_chars(at, end, id);
    if (error != std::errc() || id < 0 || (stop != end && *stop != ',')) {
      return Error{ErrorCode::kUsage,
                   fmt::format("token ids: expected whole numbers like 1,2,3 "
                               "or FILE.safetensors:TENSOR, found {}",
                               Quoted(text))};
    }
    ids.push_back(id);
    if (stop == end) return ids;
    at = stop + 1;
  }
}

}  // namespace

std::string IdsFile(const std::string& text) {
  const size_t colon = text.rfind(kTensorFile);
  if (colon == std::string::npos) return {};
  return text.substr(0, colon + kTensorFile.size() - 1);
}

Result<std::vector<int32_t>> ParseIds(const std::string& text) {
  const std::string file = IdsFile(text);
  if (file.empty()) return ParseList(text);
  HX_ASSIGN_OR_RETURN(std::vector<int32_t> ids,
                      ReadTensor(file, text.substr(file.size() + 1)));
  for (const int32_t id : ids) {
    if (id < 0)
      return Error{
          ErrorCode::kBadInput,
          fmt::format("{}: expected ids of 0 and more, found {}", text, id)};
  }
  return ids;
}

std::string IdsToJson(std::span<const int32_t> ids) {
  return fmt::format("[{}]", fmt::join(ids, ","));
}

}  // namespace hexllm::cli
