#include "backend/htp/qnn_executable.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <utility>

#include "backend/htp/qnn_device_abi.h"
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

Error NoTensor(size_t index, size_t count) {
  return {ErrorCode::kUsage, fmt::format("tensor {} of {}", index, count)};
}

}  // namespace

QnnExecutable::QnnExecutable(std::shared_ptr<const QnnContext> context,
                             GraphInfo info)
    : context_(std::move(context)),
      info_(std::move(info)),
      inputs_(Unbound(info_.inputs, abi::TensorType::kAppWrite)),
      outputs_(Unbound(info_.outputs, abi::TensorType::kAppRead)),
      bindings_(inputs_.size() + outputs_.size()) {}

QnnExecutable::~QnnExecutable() {
  std::vector<abi::Handle> handles;
  for (const Binding& binding : bindings_)
    if (binding.handle != nullptr) handles.push_back(binding.handle);
  if (handles.empty()) return;
  // Nothing is left to do with a refusal.
  const QnnLibrary& library = context_->library();
  (void)library.Check(
      "memDeRegister",
      library.api().memory_deregister(handles.data(),
                                      static_cast<uint32_t>(handles.size())));
}

Result<std::unique_ptr<QnnExecutable>> QnnExecutable::Retrieve(
    std::shared_ptr<const QnnContext> context, GraphInfo info,
    std::shared_ptr<const RpcMemory> shared) {
  std::unique_ptr<QnnExecutable> graph(
      new QnnExecutable(std::move(context), std::move(info)));
  graph->shared_ = std::move(shared);
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

const TensorInfo& QnnExecutable::InfoOf(size_t tensor) const {
  const size_t inputs = info_.inputs.size();
  return tensor < inputs ? info_.inputs[tensor]
                         : info_.outputs[tensor - inputs];
}

abi::Tensor& QnnExecutable::RawOf(size_t tensor) {
  const size_t inputs = inputs_.size();
  return tensor < inputs ? inputs_[tensor] : outputs_[tensor - inputs];
}

Status QnnExecutable::BindInput(size_t index, std::span<std::byte> memory) {
  if (index >= inputs_.size()) return NoTensor(index, inputs_.size());
  return Bind(index, memory);
}

Status QnnExecutable::BindOutput(size_t index, std::span<std::byte> memory) {
  if (index >= outputs_.size()) return NoTensor(index, outputs_.size());
  return Bind(inputs_.size() + index, memory);
}

Status QnnExecutable::Bind(size_t tensor, std::span<std::byte> memory) {
  const TensorInfo& info = InfoOf(tensor);
  if (memory.size() != info.bytes) {
    return Error{ErrorCode::kUsage, fmt::format("{} needs {} bytes, not {}",
                                                DescribeTensor(info.spec),
                                                info.bytes, memory.size())};
  }
  if (shared_ != nullptr) {
    HX_RETURN_IF_ERROR(BindShared(tensor, memory));
  } else {
    RawOf(tensor).v1.buffer = {memory.data(),
                               static_cast<uint32_t>(memory.size())};
    bindings_[tensor].bound = true;
  }
  return OkStatus();
}

Status QnnExecutable::BindShared(size_t tensor, std::span<std::byte> memory) {
  Binding& binding = bindings_[tensor];
  const QnnLibrary& library = context_->library();
  auto place = shared_->Find(memory);
  if (!place) {
    return Error{ErrorCode::kUsage,
                 fmt::format("{} needs memory of the engine's allocator",
                             DescribeTensor(InfoOf(tensor).spec))};
  }
  if (place->offset % kBufferAlignment != 0) {
    return Error{ErrorCode::kUnsupported,
                 fmt::format("{} begins {} bytes into memory shared with the "
                             "HTP, expected a multiple of {}: use --kv-updater "
                             "smart-mask, or --shared-buffer off",
                             DescribeTensor(InfoOf(tensor).spec), place->offset,
                             kBufferAlignment)};
  }
  if (binding.handle != nullptr) {
    if (binding.place == *place) return OkStatus();
    HX_RETURN_IF_ERROR(library.Check(
        "memDeRegister", library.api().memory_deregister(&binding.handle, 1)));
  }
  binding = {.bound = true, .place = *std::move(place)};
  return std::ranges::all_of(bindings_, &Binding::bound) ? RegisterAll()
                                                         : OkStatus();
}

Status QnnExecutable::RegisterAll() {
  std::deque<TensorRecord> records;
  std::deque<abi::HtpMemory> places;
  std::vector<abi::MemoryDescriptor> memory;
  std::vector<size_t> tensors;
  for (size_t i = 0; i < bindings_.size(); ++i) {
    if (bindings_[i].handle != nullptr) continue;
    const RpcPlace& place = bindings_[i].place;
    const abi::TensorV1& raw = records.emplace_back(InfoOf(i).spec).raw().v1;
    places.push_back({.type = abi::kSharedBuffer,
                      .bytes = place.block->bytes().size(),
                      .fd = place.block->fd(),
                      .offset = place.offset});
    memory.push_back({.rank = raw.rank,
                      .dims = raw.dims,
                      .shape_config = nullptr,
                      .data_type = raw.data_type,
                      .type = abi::kCustomMemory,
                      .custom = &places.back(),
                      .rest_of_union = 0});
    tensors.push_back(i);
  }
  const QnnLibrary& library = context_->library();
  std::vector<abi::Handle> handles(memory.size());
  Status done = library.Check(
      "memRegister", library.api().memory_register(
                         context_->handle(), memory.data(),
                         static_cast<uint32_t>(memory.size()), handles.data()));
  if (!done.ok()) {
    return std::move(done).error().With(
        fmt::format("QNN graph {}: the device does not take shared memory for "
                    "{} inputs and outputs (--shared-buffer off does without)",
                    Quoted(info_.name), memory.size()));
  }
  for (size_t i = 0; i < tensors.size(); ++i) {
    bindings_[tensors[i]].handle = handles[i];
    abi::TensorV1& raw = RawOf(tensors[i]).v1;
    raw.memory = abi::kMemoryHandle;
    raw.memory_handle = handles[i];
  }
  return OkStatus();
}

Status QnnExecutable::CheckBound() const {
  for (size_t i = 0; i < bindings_.size(); ++i) {
    const Binding& binding = bindings_[i];
    if (!binding.bound || (shared_ != nullptr && binding.handle == nullptr)) {
      return Error{
          ErrorCode::kUsage,
          fmt::format("QNN graph {}: {} is not bound", Quoted(info_.name),
                      DescribeTensor(InfoOf(i).spec))};
    }
  }
  return OkStatus();
}

Status QnnExecutable::Execute() {
  HX_RETURN_IF_ERROR(CheckBound());
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
