// Pickles of tensors as plain data: a span of bytes in, values out. Used by
// checkpoint/pytorch.cc. It is no interpreter of pickles: nothing named in one
// is ever called. The few names that PyTorch needs to write a tensor are known
// and turned into data here; any other name is an error.
// Source: CPython's Lib/pickletools.py (opcodes), torch/_utils.py (what the
// names stand for).
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/dtype.h"
#include "base/status.h"

namespace hexllm {

// The longest pickle that is read and the most values in one, also on its
// stack, in one container and as marks; those of the largest published
// checkpoints stay below 1 MB.
inline constexpr uint64_t kMaxPickleBytes = 64 << 20;
inline constexpr size_t kMaxPickleValues = 1 << 20;

enum class PickleKind : uint8_t {
  kNone,
  kBool,      // integer: 0 or 1
  kInt,       // integer
  kFloat,     // number
  kText,      // text
  kSequence,  // items: the elements (a tuple or a list)
  kDict,      // items: key, value, key, value, ...
  kGlobal,    // integer: an index into the table of known names
  kStorage,   // text: the storage's key; dtype; integer: its elements
  kTensor,    // items: storage; integer: offset in elements; dtype
};

// One value. Values refer to each other by index and may do so in circles.
struct PickleValue {
  PickleKind kind = PickleKind::kNone;
  DType dtype = DType::kF32;
  int64_t integer = 0;
  double number = 0;
  std::string_view text = {};  // into the pickle
  std::vector<uint32_t> items = {};
  Shape shape = {};    // kTensor
  Shape strides = {};  // kTensor, in elements
};

struct Pickle {
  std::vector<PickleValue> values;
  uint32_t root = 0;

  const PickleValue& operator[](uint32_t id) const { return values[id]; }
  // The value under `key` of a dict, or null.
  const PickleValue* Find(const PickleValue& dict, std::string_view key) const;
};

// Parses a whole pickle, protocols 2 to 5. kBadInput for damage; kUnsupported
// naming a global, a call or an opcode that no tensor needs. Messages do not
// name the file.
Result<Pickle> ParsePickle(ByteSpan pickle);

}  // namespace hexllm
