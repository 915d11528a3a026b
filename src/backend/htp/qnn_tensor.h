// Tensors of QNN graphs as plain data, and their form in the library's structs.
// Used for graphs under construction and for loaded ones.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "backend/htp/qnn_abi.h"
#include "base/dtype.h"
#include "base/status.h"

namespace hexllm::htp {

// How codes stand for numbers: value = scale * (code - zero_point). The fields
// mean what they mean in ir::Encoding, with the axes of the QNN tensor.
struct TensorEncoding {
  // Of a code: 4 for int4 kept in i8; 0 = all bits of the type.
  uint32_t bits = 0;
  // < 0: one scale. >= 0: one per index of that axis.
  int32_t axis = -1;
  // Empty: given by the node, as for the bias of a Conv2d, whose scale is
  // x.scale * w.scale (any other is silently ignored by the library).
  std::vector<float> scales = {};
  std::vector<int32_t> zero_points = {};  // empty = all 0
  // LPBQ: [indices of axis, blocks], factors 1 to 16; bits = 4.
  std::vector<uint8_t> block_scales = {};
  bool operator==(const TensorEncoding&) const = default;
};

enum class TensorUse : uint8_t { kInput, kOutput, kInner, kStatic };

struct TensorSpec {
  std::string name;  // unique in its graph
  TensorUse use = TensorUse::kInner;
  // f32, f16, bool, and i8 u8 i16 u16 i32 u32: codes when there is an encoding,
  // plain numbers when not.
  DType dtype = DType::kU16;
  Shape shape = {};
  std::optional<TensorEncoding> encoding = {};
};

// An input or output of a graph that can run.
struct TensorInfo {
  TensorSpec spec;
  uint32_t id = 0;     // the library's
  uint64_t bytes = 0;  // of a buffer
};

struct GraphInfo {
  std::string name;
  std::vector<TensorInfo> inputs;
  std::vector<TensorInfo> outputs;
};

// "conv.w i8/4 [1,1,64,128] per axis 3": for messages.
std::string DescribeTensor(const TensorSpec& spec);

// Ok when the library can be handed the spec: dimensions of 1 to 2^32-1, scales
// finite and positive, one per index of the axis, symmetric weights. kUsage
// names the tensor and what is wrong.
Status CheckTensorSpec(const TensorSpec& spec);

// A spec and the struct of the library that points into it. Not movable.
class TensorRecord {
 public:
  // `spec` has passed CheckTensorSpec.
  explicit TensorRecord(TensorSpec spec);
  TensorRecord(const TensorRecord&) = delete;
  TensorRecord& operator=(const TensorRecord&) = delete;

  const TensorSpec& spec() const { return spec_; }
  abi::Tensor& raw() { return raw_; }
  const abi::Tensor& raw() const { return raw_; }

 private:
  void PointToEncoding();

  TensorSpec spec_;
  std::vector<uint32_t> dims_;
  std::vector<abi::ScaleOffset> scale_offsets_;
  std::vector<int32_t> offsets_;
  abi::BlockExpansion blocks_ = {};
  abi::Tensor raw_ = {};
};

// The library's tensor as plain data. kUnsupported for a type that we have no
// name for; pointers and counts are trusted only as far as `tensor` came from
// the library.
Result<TensorInfo> ReadTensor(const abi::Tensor& tensor);

}  // namespace hexllm::htp
