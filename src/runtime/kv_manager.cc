#include "runtime/kv_manager.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "base/bytes.h"

namespace hexllm {

Result<KvManager::Tensor> KvManager::Allocate(
    BufferAllocator& allocator, const KvTensorShape& shape) const {
  const uint64_t rows =
      shape.outer + (update_ == KvUpdate::kShiftPointer ? 1 : 0);
  const auto row_bytes = CheckedMul(shape.column_bytes, capacity());
  const auto bytes = row_bytes ? CheckedMul(rows, *row_bytes) : std::nullopt;
  if (!bytes || *bytes > SIZE_MAX / 2) {
    return Error{ErrorCode::kBadInput,
                 fmt::format("KV cache of {} x {} columns x {} bytes is too "
                             "large to address",
                             rows, capacity(), shape.column_bytes)};
  }
  HX_ASSIGN_OR_RETURN(Buffer buffer,
                      allocator.Allocate(static_cast<size_t>(*bytes)));
  return Tensor{shape, std::move(buffer)};
}

Result<KvManager> KvManager::Create(BufferAllocator& allocator,
                                    KvGeometry geometry, KvUpdate update) {
  HX_CHECK(geometry.k.size() == geometry.v.size());
  KvManager manager(std::move(geometry), update);
  for (size_t l = 0; l < manager.layers(); ++l) {
    HX_ASSIGN_OR_RETURN(Tensor k,
                        manager.Allocate(allocator, manager.geometry_.k[l]));
    HX_ASSIGN_OR_RETURN(Tensor v,
                        manager.Allocate(allocator, manager.geometry_.v[l]));
    manager.k_.push_back(std::move(k));
    manager.v_.push_back(std::move(v));
  }
  manager.past_columns_ = manager.capacity();
  return manager;
}

std::span<std::byte> KvManager::Window(Tensor& tensor,
                                       uint32_t past_columns) const {
  HX_CHECK(past_columns <= capacity());
  const size_t column = tensor.shape.column_bytes;
  return tensor.buffer.bytes().subspan(
      window_start() * column, tensor.shape.outer * column * past_columns);
}

std::span<std::byte> KvManager::K(size_t layer, uint32_t past_columns) {
  HX_CHECK(layer < k_.size());
  return Window(k_[layer], past_columns);
}

std::span<std::byte> KvManager::V(size_t layer, uint32_t past_columns) {
  HX_CHECK(layer < v_.size());
  return Window(v_[layer], past_columns);
}

std::span<std::byte> KvManager::Positions(RoleKind kind, size_t layer) {
  HX_CHECK(kind == RoleKind::kKIn || kind == RoleKind::kVIn);
  HX_CHECK(layer < layers());
  Tensor& tensor = (kind == RoleKind::kKIn ? k_ : v_)[layer];
  const size_t column = tensor.shape.column_bytes;
  return tensor.buffer.bytes().subspan(
      origin(past_columns_) * column,
      tensor.shape.outer * column * past_columns_);
}

void KvManager::Arrange(uint32_t past_columns) {
  HX_CHECK(tokens_ <= past_columns || past_columns == capacity());
  HX_CHECK(past_columns <= capacity());
  if (past_columns == past_columns_) return;
  for (Tensor& tensor : k_) ArrangeTensor(tensor, past_columns);
  for (Tensor& tensor : v_) ArrangeTensor(tensor, past_columns);
  past_columns_ = past_columns;
}

void KvManager::ArrangeTensor(Tensor& tensor, uint32_t past_columns) {
  const size_t column = tensor.shape.column_bytes;
  const size_t used = column * std::min(tokens_, past_columns_);
  const size_t from = column * past_columns_;
  const size_t to = column * past_columns;
  // Rows from the buffer's start; with the smart mask row 0 stays where it is.
  const size_t first = update_ == KvUpdate::kSmartMask ? 0 : 1;
  const size_t end = first + tensor.shape.outer;
  std::byte* data = tensor.buffer.bytes().data();
  if (used == 0) return;
  if (to > from) {
    for (size_t row = end; row-- > first;)
      std::memmove(data + row * to, data + row * from, used);
  } else {
    for (size_t row = first; row < end; ++row)
      std::memmove(data + row * to, data + row * from, used);
  }
}

void KvManager::Commit(const StepColumns& step,
                       std::span<const uint32_t> columns) {
  HX_CHECK(step.k.size() == layers() && step.v.size() == layers());
  HX_CHECK(columns.empty() || columns.back() < step.step_tokens);
  const auto n = static_cast<uint32_t>(columns.size());
  if (n > past_columns_ - std::min(tokens_, past_columns_)) Arrange(capacity());
  const uint32_t room = past_columns_ - std::min(tokens_, past_columns_);
  const auto stored = columns.first(std::min(n, room));
  for (size_t l = 0; l < layers(); ++l) {
    CommitTensor(k_[l], step.k[l], step.step_tokens, stored);
    CommitTensor(v_[l], step.v[l], step.step_tokens, stored);
  }
  tokens_ += n;
}

void KvManager::CommitTensor(Tensor& tensor, std::span<const std::byte> step,
                             uint32_t step_tokens,
                             std::span<const uint32_t> columns) {
  const size_t column = tensor.shape.column_bytes;
  const size_t outer = tensor.shape.outer;
  HX_CHECK(step.size() == outer * step_tokens * column);
  std::byte* data =
      tensor.buffer.bytes().data() + origin(past_columns_) * column;
  size_t done = 0;
  while (done < columns.size()) {  // one run of neighbouring columns at a time
    size_t run = 1;
    while (done + run < columns.size() &&
           columns[done + run] == columns[done] + run)
      ++run;
    for (size_t row = 0; row < outer; ++row) {
      std::memcpy(data + (row * past_columns_ + tokens_ + done) * column,
                  step.data() + (row * step_tokens + columns[done]) * column,
                  run * column);
    }
    done += run;
  }
}

void KvManager::Rewind(uint32_t tokens) {
  HX_CHECK(tokens <= tokens_);
  tokens_ = tokens;
}

void KvManager::Remove(uint32_t first, uint32_t count) {
  HX_CHECK(tokens_ <= past_columns_ && first + count <= tokens_);
  for (const RoleKind kind : {RoleKind::kKIn, RoleKind::kVIn}) {
    for (size_t l = 0; l < layers(); ++l) {
      const size_t column =
          (kind == RoleKind::kKIn ? k_ : v_)[l].shape.column_bytes;
      const std::span<std::byte> all = Positions(kind, l);
      const size_t row_bytes = past_columns_ * column;
      for (size_t row = 0; row < all.size(); row += row_bytes) {
        std::memmove(all.data() + row + first * column,
                     all.data() + row + (first + count) * column,
                     (tokens_ - first - count) * column);
      }
    }
  }
  tokens_ -= count;
}

void KvManager::Reset() {
  tokens_ = 0;
  for (auto* tensors : {&k_, &v_}) {
    for (Tensor& tensor : *tensors) {
      const auto bytes = tensor.buffer.bytes();
      std::memset(bytes.data(), 0, bytes.size());
    }
  }
}

}  // namespace hexllm
