#include "backend/htp/engine_graph.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "backend/engine_checks.h"
#include "backend/htp/tensor_name.h"
#include "base/check.h"
#include "base/quote.h"

namespace hexllm::htp {
namespace {

using artifact::IoSpec;

uint64_t BytesOf(const IoSpec& spec) {
  const auto bytes = StorageBytes(spec.dtype, spec.shape);
  HX_CHECK(bytes.has_value());  // the manifest is valid
  return *bytes;
}

// The tensor that a spec stands for: same name, type and size.
Result<std::optional<size_t>> FindTensor(
    const IoSpec& spec, const std::vector<TensorInfo>& tensors) {
  if (BytesOf(spec) == 0) return std::optional<size_t>();
  const std::string name = TensorNameOf(spec.role);
  const auto found = std::find_if(
      tensors.begin(), tensors.end(),
      [&](const TensorInfo& tensor) { return tensor.spec.name == name; });
  if (found == tensors.end()) {
    return Error{
        ErrorCode::kBadInput,
        fmt::format("the context binary has no tensor {}", Quoted(name))};
  }
  if (found->spec.dtype != spec.dtype || found->bytes != BytesOf(spec)) {
    return Error{
        ErrorCode::kBadInput,
        fmt::format("{}: expected {} bytes of {}, the context binary has {}",
                    RoleToString(spec.role), BytesOf(spec),
                    DTypeName(spec.dtype), DescribeTensor(found->spec))};
  }
  return std::optional(static_cast<size_t>(found - tensors.begin()));
}

}  // namespace

HtpGraph::HtpGraph(GraphSource source,
                   std::unique_ptr<QnnExecutable> executable)
    : artifact_(std::move(source.artifact)),
      entry_(artifact_->manifest().graphs[source.index]),
      executable_(std::move(executable)),
      inputs_(entry_.inputs.size()),
      outputs_(entry_.outputs.size()) {}

Result<std::unique_ptr<ExecutableGraph>> HtpGraph::Create(
    GraphSource source, std::unique_ptr<QnnExecutable> executable) {
  std::unique_ptr<HtpGraph> graph(
      new HtpGraph(std::move(source), std::move(executable)));
  Status matched = graph->MatchTensors();
  if (!matched.ok()) {
    return std::move(matched).error().With(fmt::format(
        "{}: graph {}", graph->artifact_->path(), Quoted(graph->entry_.name)));
  }
  return std::unique_ptr<ExecutableGraph>(std::move(graph));
}

Status HtpGraph::MatchTensors() {
  const GraphInfo& info = executable_->info();
  size_t matched = 0;
  for (size_t i = 0; i < inputs_.size(); ++i) {
    HX_ASSIGN_OR_RETURN(inputs_[i].tensor,
                        FindTensor(entry_.inputs[i], info.inputs));
    if (inputs_[i].tensor) ++matched;
  }
  for (size_t i = 0; i < outputs_.size(); ++i) {
    HX_ASSIGN_OR_RETURN(outputs_[i].tensor,
                        FindTensor(entry_.outputs[i], info.outputs));
    if (outputs_[i].tensor) ++matched;
  }
  const size_t tensors = info.inputs.size() + info.outputs.size();
  if (matched == tensors) return OkStatus();
  return Error{ErrorCode::kBadInput,
               fmt::format("the context binary has {} inputs and outputs, the "
                           "manifest names {} of them",
                           tensors, matched)};
}

Status HtpGraph::Bind(IoDirection direction, size_t index,
                      std::span<std::byte> memory) {
  HX_RETURN_IF_ERROR(CheckMemory(entry_, direction, index, memory));
  const bool input = direction == IoDirection::kInput;
  Slot& slot = (input ? inputs_ : outputs_)[index];
  slot.bound = true;
  if (!slot.tensor) return OkStatus();
  if (!input) return executable_->BindOutput(*slot.tensor, memory);
  if (entry_.inputs[index].role.kind == RoleKind::kToken) tokens_ = memory;
  return executable_->BindInput(*slot.tensor, memory);
}

// The library fails on ids beyond the vocabulary, those of padding rows too.
Status HtpGraph::CheckTokens(StepRows rows) {
  const auto vocab = static_cast<int64_t>(artifact_->manifest().vocab_size);
  for (size_t row = 0; row < tokens_.size() / sizeof(int32_t); ++row) {
    std::byte* at = tokens_.data() + row * sizeof(int32_t);
    int32_t id = 0;
    if (row < rows.begin) {
      std::memcpy(at, &id, sizeof(id));
    } else {
      std::memcpy(&id, at, sizeof(id));
    }
    HX_RETURN_IF_ERROR(CheckTokenId(id, static_cast<int64_t>(row), vocab));
  }
  return OkStatus();
}

Status HtpGraph::Execute(StepRows rows) {
  HX_RETURN_IF_ERROR(CheckReady(entry_, rows, inputs_, outputs_));
  HX_RETURN_IF_ERROR(CheckTokens(rows));
  return executable_->Execute();
}

}  // namespace hexllm::htp
