#include "runtime/kv_manager.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "base/bytes.h"

namespace hexllm {

Result<KvManager::Tensor> KvManager::Allocate(BufferAllocator& allocator,
                                              const KvTensorShape& shape,
                                              uint32_t capacity) {
  const auto row_bytes = CheckedMul(shape.column_bytes, capacity);
  const auto bytes =
      row_bytes ? CheckedMul(shape.outer, *row_bytes) : std::nullopt;
  if (!bytes || *bytes > SIZE_MAX / 2) {
    return Error{ErrorCode::kBadInput,
                 fmt::format("KV cache of {} x {} columns x {} bytes is too "
                             "large to address",
                             shape.outer, capacity, shape.column_bytes)};
  }
  HX_ASSIGN_OR_RETURN(Buffer buffer,
                      allocator.Allocate(static_cast<size_t>(*bytes)));
  return Tensor{shape, std::move(buffer)};
}

Result<KvManager> KvManager::Create(BufferAllocator& allocator,
                                    KvGeometry geometry) {
  HX_CHECK(geometry.k.size() == geometry.v.size());
  KvManager manager(std::move(geometry));
  const uint32_t capacity = manager.geometry_.capacity;
  for (size_t l = 0; l < manager.layers(); ++l) {
    HX_ASSIGN_OR_RETURN(Tensor k,
                        Allocate(allocator, manager.geometry_.k[l], capacity));
    HX_ASSIGN_OR_RETURN(Tensor v,
                        Allocate(allocator, manager.geometry_.v[l], capacity));
    manager.k_.push_back(std::move(k));
    manager.v_.push_back(std::move(v));
  }
  manager.past_columns_ = capacity;
  return manager;
}

std::span<std::byte> KvManager::K(size_t layer, uint32_t past_columns) {
  HX_CHECK(layer < k_.size() && past_columns <= capacity());
  Tensor& t = k_[layer];
  return t.buffer.bytes().first(t.shape.outer * t.shape.column_bytes *
                                past_columns);
}

std::span<std::byte> KvManager::V(size_t layer, uint32_t past_columns) {
  HX_CHECK(layer < v_.size() && past_columns <= capacity());
  Tensor& t = v_[layer];
  return t.buffer.bytes().first(t.shape.outer * t.shape.column_bytes *
                                past_columns);
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
  const size_t outer = tensor.shape.outer;
  std::byte* data = tensor.buffer.bytes().data();
  if (used == 0) return;
  if (to > from) {
    for (size_t row = outer; row-- > 1;)
      std::memmove(data + row * to, data + row * from, used);
  } else {
    for (size_t row = 1; row < outer; ++row)
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
  std::byte* data = tensor.buffer.bytes().data();
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
