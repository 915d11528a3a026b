// Reference values for end-to-end tests: tensors of a golden safetensors file
// as vectors.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "checkpoint/checkpoint.h"

namespace hexllm::testing {

// A file of tests/data.
inline std::string DataPath(const std::string& name) {
  return std::string(HEXLLM_SOURCE_DIR) + "/tests/data/" + name;
}

class GoldenTensors {
 public:
  explicit GoldenTensors(const std::string& path) {
    auto opened = Checkpoint::Open(path);
    if (!opened.ok()) {
      ADD_FAILURE() << opened.error().message;
      return;
    }
    file_ = std::make_unique<Checkpoint>(std::move(*opened));
  }

  bool Has(const std::string& name) const {
    return file_ != nullptr && file_->Find(name) != nullptr;
  }
  std::vector<float> Floats(const std::string& name) const {
    return Read<float>(name, DType::kF32);
  }
  std::vector<int32_t> Ints(const std::string& name) const {
    return Read<int32_t>(name, DType::kI32);
  }

 private:
  template <typename T>
  std::vector<T> Read(const std::string& name, DType dtype) const {
    const TensorView* tensor = file_ == nullptr ? nullptr : file_->Find(name);
    if (tensor == nullptr || tensor->dtype != dtype) {
      ADD_FAILURE() << "no golden tensor " << name << " of type "
                    << DTypeName(dtype);
      return {};
    }
    std::vector<T> values(tensor->data.size() / sizeof(T));
    std::memcpy(values.data(), tensor->data.data(), tensor->data.size());
    return values;
  }

  std::unique_ptr<Checkpoint> file_;
};

}  // namespace hexllm::testing
