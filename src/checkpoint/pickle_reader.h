// The stack machine behind ParsePickle. Used by pickle.cc (opcodes that move
// data) and pickle_calls.cc (names, calls and persistent ids) alone.
#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "checkpoint/pickle.h"

namespace hexllm {

// Reads one pickle. `stack_` and `memo_` hold indices of values.
class PickleReader {
 public:
  explicit PickleReader(ByteSpan pickle) : in_(pickle) {}

  Result<Pickle> Read();

 private:
  struct Op {
    uint8_t code;
    Status (PickleReader::*run)();
  };
  static const Op kOps[];

  Status RunNext();

  // Values and the stack.
  Status Push(PickleValue value);
  Status PushId(uint32_t id);
  static Status AddItems(PickleValue& to, std::span<const uint32_t> items);
  Result<uint32_t> Pop();
  // The values above the last mark, which goes too.
  Result<std::vector<uint32_t>> PopToMark();
  PickleValue& At(uint32_t id) { return out_.values[id]; }
  Result<PickleValue*> Top(PickleKind kind, std::string_view what);
  Status PushSequence(std::vector<uint32_t> items);
  Status PopTuple(size_t count);
  Status PushInt(int64_t value) {
    return Push({.kind = PickleKind::kInt, .integer = value});
  }
  Status PushText(uint64_t bytes);
  template <typename T>
  Status PushNumber();
  template <typename T>
  Status PushSized();

  // Opcodes.
  Status Protocol();
  Status Frame() { return in_.ReadBytes(8).status(); }
  Status Stop();
  Status Mark();
  Status None() { return Push({}); }
  Status True() { return Push({.kind = PickleKind::kBool, .integer = 1}); }
  Status False() { return Push({.kind = PickleKind::kBool}); }
  Status Long1();
  Status Float();
  Status EmptySequence() { return PushSequence({}); }
  Status MarkedSequence();
  Status Tuple1() { return PopTuple(1); }
  Status Tuple2() { return PopTuple(2); }
  Status Tuple3() { return PopTuple(3); }
  Status Append();
  Status Appends();
  Status EmptyDict() { return Push({.kind = PickleKind::kDict}); }
  Status SetItem();
  Status SetItems();
  Status PutByte();
  Status PutLong();
  Status Memoize() { return Put(memo_.size()); }
  Status GetByte();
  Status GetLong();
  Status Put(uint64_t slot);
  Status Get(uint64_t slot);
  Status Global();
  Status StackGlobal();
  Status PersistentId();
  Status Reduce();
  Status Build();

  Status PushGlobal(std::string_view module, std::string_view name);
  Result<std::string_view> ReadLine();
  Status CallTensor(const std::vector<uint32_t>& arguments);
  Result<Shape> Sizes(uint32_t id);

  ByteReader in_;
  Pickle out_;
  std::vector<uint32_t> stack_;
  std::vector<size_t> marks_;
  std::vector<std::optional<uint32_t>> memo_;
  bool stopped_ = false;
};

}  // namespace hexllm
