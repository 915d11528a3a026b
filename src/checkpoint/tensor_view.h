// A named tensor as a view into a mapped checkpoint file. What all format
// readers produce and what models/ consumes. Not an owner: see
// checkpoint/checkpoint.h.
#pragma once

#include <string>

#include "base/bytes.h"
#include "base/dtype.h"

namespace hexllm {

// One tensor. The data is dense and row-major, the shape in Hugging Face order
// ([out, in] for linear layers; GGUF's reversed dimensions are turned round by
// its reader). Every dimension is at least 1; an empty shape is a scalar.
// `data` holds exactly StorageBytes(dtype, shape) bytes, lies inside the
// mapping and dies with it. It is not aligned in general: read it with memcpy,
// ByteReader or DequantizeRow, never through a cast pointer.
struct TensorView {
  std::string name;
  DType dtype = DType::kF32;
  Shape shape;
  ByteSpan data;
};

}  // namespace hexllm
