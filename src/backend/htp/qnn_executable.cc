#include "backend/htp/qnn_executable.h"

#include <fmt/format.h>

#include <utility>

#include "base/quote.h"

namespace hexllm::htp {
namespace {

std::vector<abi::Tensor> Unbound(const std::vector<TensorInfo>& infos,
                                 abi::TensorType type) {
  std::vector<abi::Tensor> tensors(infos.size());
  for (size_t i = 0; i < infos.size(); ++i) {
    tensors[i].version = 1;
    tensors[i].v1.id = infos[i].id;
    tensors[i].v1.type = type;
  }
  return tensors;
}

struct Slot {
  const std::vector<TensorInfo>& infos;
  std::vector<abi::Tensor>& tensors;
};

Status Bind(Slot slot, size_t index, std::span<std::byte> memory) {
  if (index >= slot.infos.size()) {
    return Error{ErrorCode::kUsage,
                 fmt::format("tensor {} of {}", index, slot.infos.size())};
  }
  const TensorInfo& info = slot.infos[index];
  if (memory.size() != info.bytes) {
    return Error{ErrorCode::kUsage, fmt::format("{} needs {} bytes, not {}",
                                                DescribeTensor(info.spec),
                                                info.bytes, memory.size())};
  }
  slot.tensors[index].v1.buffer = {memory.data(),
                                   static_cast<uint32_t>(memory.size())};
  return OkStatus();
}

}  // namespace

QnnExecutable::QnnExecutable(std::shared_ptr<const QnnContext> context,
                             GraphInfo info)
    : context_(std::move(context)),
      info_(std::move(info)),
      inputs_(Unbound(info_.inputs, abi::TensorType::kAppWrite)),
      outputs_(Unbound(info_.outputs, abi::TensorType::kAppRead)) {}

Result<std::unique_ptr<QnnExecutable>> QnnExecutable::Retrieve(
    std::shared_ptr<const QnnContext> context, GraphInfo info) {
  std::unique_ptr<QnnExecutable> graph(
      new QnnExecutable(std::move(context), std::move(info)));
  const QnnLibrary& library = graph->context_->library();
  Status found = library.Check(
      "graphRetrieve",
      library.api().graph_retrieve(graph->context_->handle(),
                                   graph->info_.name.c_str(), &graph->handle_),
      ErrorCode::kBadInput);
  if (!found.ok()) {
    return std::move(found).error().With("QNN graph " +
                                         Quoted(graph->info_.name));
  }
  return graph;
}

Status QnnExecutable::BindInput(size_t index, std::span<std::byte> memory) {
  return Bind({info_.inputs, inputs_}, index, memory);
}

Status QnnExecutable::BindOutput(size_t index, std::span<std::byte> memory) {
  return Bind({info_.outputs, outputs_}, index, memory);
}

Status QnnExecutable::Execute() {
  for (const Slot slot :
       {Slot{info_.inputs, inputs_}, Slot{info_.outputs, outputs_}}) {
    for (size_t i = 0; i < slot.infos.size(); ++i) {
      if (slot.tensors[i].v1.buffer.data == nullptr) {
        return Error{
            ErrorCode::kUsage,
            fmt::format("QNN graph {}: {} is not bound", Quoted(info_.name),
                        DescribeTensor(slot.infos[i].spec))};
      }
    }
  }
  const QnnLibrary& library = context_->library();
  Status done = library.Check(
      "graphExecute",
      library.api().graph_execute(
          handle_, inputs_.data(), static_cast<uint32_t>(inputs_.size()),
          outputs_.data(), static_cast<uint32_t>(outputs_.size()), nullptr,
          nullptr));
  if (!done.ok())
    return std::move(done).error().With("QNN graph " + Quoted(info_.name));
  return OkStatus();
}

}  // namespace hexllm::htp
