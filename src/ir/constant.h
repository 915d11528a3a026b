// Constants of a module: named views of stored weights, read row by row and
// never copied as a whole. Used by models/ (which makes them from checkpoint
// tensors), passes, lowering and the interpreter.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "ir/types.h"

namespace hexllm::ir {

// A stored tensor and how to read it. Rows are slices along axis 0; a 1-D
// constant has one row.
struct Constant {
  std::string
      name;  // provenance: the name in the checkpoint's Hugging Face spelling
  // The logical type: shape after `rows`, and the *stored* dtype (f32, f16,
  // bf16, f64 or a GGUF block type).
  TensorType type;
  // Storage as it lies in the file: whole rows. Borrowed, unless `owned` is set
  // and holds it.
  ByteSpan bytes = {};
  std::shared_ptr<const std::string> owned = {};
  // Row i of the constant is stored row rows[i]; empty = as stored. This is
  // where interleaved RoPE layouts, fused qkv tensors and the like are put
  // right, once.
  std::vector<int64_t> rows = {};
  // Set by the quantizer: its numbers are the stored ones rounded to this.
  std::optional<Encoding> encoding = {};
};

int64_t NumRows(const Constant& constant);
// Elements of a row.
int64_t RowElems(const Constant& constant);
// Stored bytes of logical row `row`.
ByteSpan RowBytes(const Constant& constant, int64_t row);
// Row `row` widened to float; out.size() == RowElems.
void ReadRow(const Constant& constant, int64_t row, std::span<float> out);

// The constants of one module. Graphs refer to them by id, so graphs that share
// weights share the id.
class ConstantStore {
 public:
  ConstantId Add(Constant constant);
  const Constant& operator[](ConstantId id) const;
  void SetEncoding(ConstantId id, Encoding encoding);
  size_t size() const { return constants_.size(); }

 private:
  std::vector<Constant> constants_;
};

}  // namespace hexllm::ir
