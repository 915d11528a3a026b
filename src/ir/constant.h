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
  // Where the quantizer chose other codes of `encoding` (i8 along axis 0 or
  // none) than the nearest: one byte an element, row by row in logical order,
  // so `rows` has no say. Empty = the nearest.
  ByteSpan codes = {};
  std::shared_ptr<const void> codes_owner = {};
};

int64_t NumRows(const Constant& constant);
// Elements of a row.
int64_t RowElems(const Constant& constant);
// Stored bytes of logical row `row`, of a constant without chosen codes
// (checked).
ByteSpan RowBytes(const Constant& constant, int64_t row);
// The numbers of row `row` before they are rounded to the encoding;
// out.size() == RowElems. Of chosen codes: what they stand for, which rounds to
// just these codes (ir/encode.h), so that nobody who reads rows here and rounds
// them can miss a choice.
void ReadRow(const Constant& constant, int64_t row, std::span<float> out);

// The constants of one module. Graphs refer to them by id, so graphs that share
// weights share the id.
class ConstantStore {
 public:
  ConstantId Add(Constant constant);
  const Constant& operator[](ConstantId id) const;
  // Of nearest codes, until SetCodes.
  void SetEncoding(ConstantId id, Encoding encoding);
  // As Constant::codes; the constant has its encoding.
  void SetCodes(ConstantId id, ByteSpan codes,
                std::shared_ptr<const void> owner);
  size_t size() const { return constants_.size(); }

 private:
  std::vector<Constant> constants_;
};

}  // namespace hexllm::ir
