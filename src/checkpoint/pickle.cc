#include "checkpoint/pickle.h"

#include <fmt/format.h>

#include <bit>

#include "checkpoint/pickle_reader.h"

namespace hexllm {
namespace {

Error BadInput(std::string message) {
  return Error{ErrorCode::kBadInput, std::move(message)};
}

// A count that reaches the limit would let a small file take much memory.
Status CheckRoom(size_t count, std::string_view what) {
  if (count < kMaxPickleValues) return OkStatus();
  return Error{ErrorCode::kUnsupported,
               fmt::format("expected at most {} {}, found more",
                           kMaxPickleValues, what)};
}

}  // namespace

const PickleReader::Op PickleReader::kOps[] = {
    {0x80, &PickleReader::Protocol},
    {0x95, &PickleReader::Frame},
    {'.', &PickleReader::Stop},
    {'(', &PickleReader::Mark},
    {'N', &PickleReader::None},
    {0x88, &PickleReader::True},
    {0x89, &PickleReader::False},
    {'K', &PickleReader::PushNumber<uint8_t>},
    {'M', &PickleReader::PushNumber<uint16_t>},
    {'J', &PickleReader::PushNumber<int32_t>},
    {0x8a, &PickleReader::Long1},
    {'G', &PickleReader::Float},
    {'X', &PickleReader::PushSized<uint32_t>},
    {0x8c, &PickleReader::PushSized<uint8_t>},
    {0x8d, &PickleReader::PushSized<uint64_t>},
    {'U', &PickleReader::PushSized<uint8_t>},
    {')', &PickleReader::EmptySequence},
    {']', &PickleReader::EmptySequence},
    {'t', &PickleReader::MarkedSequence},
    {'l', &PickleReader::MarkedSequence},
    {0x85, &PickleReader::Tuple1},
    {0x86, &PickleReader::Tuple2},
    {0x87, &PickleReader::Tuple3},
    {'a', &PickleReader::Append},
    {'e', &PickleReader::Appends},
    {'}', &PickleReader::EmptyDict},
    {'s', &PickleReader::SetItem},
    {'u', &PickleReader::SetItems},
    {'q', &PickleReader::PutByte},
    {'r', &PickleReader::PutLong},
    {0x94, &PickleReader::Memoize},
    {'h', &PickleReader::GetByte},
    {'j', &PickleReader::GetLong},
    {'c', &PickleReader::Global},
    {0x93, &PickleReader::StackGlobal},
    {'Q', &PickleReader::PersistentId},
    {'R', &PickleReader::Reduce},
    {'b', &PickleReader::Build},
};

Result<Pickle> PickleReader::Read() {
  while (!stopped_) {
    const size_t at = in_.offset();
    Status status = RunNext();
    if (!status.ok())
      return std::move(status).error().With(fmt::format("byte {}", at));
  }
  if (in_.remaining() != 0)
    return BadInput(
        fmt::format("expected nothing behind the end, found {} "
                    "bytes",
                    in_.remaining()));
  return std::move(out_);
}

Status PickleReader::RunNext() {
  HX_ASSIGN_OR_RETURN(const auto code, in_.Read<uint8_t>());
  for (const Op& op : kOps) {
    if (op.code == code) return (this->*op.run)();
  }
  return Error{ErrorCode::kUnsupported,
               fmt::format("opcode 0x{:02x} is none that a tensor needs; "
                           "nothing was executed",
                           code)};
}

Status PickleReader::Push(PickleValue value) {
  HX_RETURN_IF_ERROR(CheckRoom(out_.values.size(), "values"));
  const auto id = static_cast<uint32_t>(out_.values.size());
  out_.values.push_back(std::move(value));
  return PushId(id);
}

Status PickleReader::PushId(uint32_t id) {
  HX_RETURN_IF_ERROR(CheckRoom(stack_.size(), "values on the stack"));
  stack_.push_back(id);
  return OkStatus();
}

Status PickleReader::AddItems(PickleValue& to,
                              std::span<const uint32_t> items) {
  HX_RETURN_IF_ERROR(CheckRoom(to.items.size() + items.size(), "entries"));
  to.items.insert(to.items.end(), items.begin(), items.end());
  return OkStatus();
}

Result<uint32_t> PickleReader::Pop() {
  const size_t floor = marks_.empty() ? 0 : marks_.back();
  if (stack_.size() <= floor)
    return BadInput("expected a value on the stack, found none");
  const uint32_t id = stack_.back();
  stack_.pop_back();
  return id;
}

Result<std::vector<uint32_t>> PickleReader::PopToMark() {
  if (marks_.empty()) return BadInput("expected a mark, found none");
  const auto begin = stack_.begin() + static_cast<ptrdiff_t>(marks_.back());
  std::vector<uint32_t> items(begin, stack_.end());
  stack_.erase(begin, stack_.end());
  marks_.pop_back();
  return items;
}

Result<PickleValue*> PickleReader::Top(PickleKind kind, std::string_view what) {
  const size_t floor = marks_.empty() ? 0 : marks_.back();
  if (stack_.size() <= floor || At(stack_.back()).kind != kind)
    return BadInput(fmt::format("expected {} on the stack, found none", what));
  return &At(stack_.back());
}

Status PickleReader::PushSequence(std::vector<uint32_t> items) {
  return Push({.kind = PickleKind::kSequence, .items = std::move(items)});
}

Status PickleReader::PopTuple(size_t count) {
  std::vector<uint32_t> items(count);
  for (size_t i = count; i-- > 0;) {
    HX_ASSIGN_OR_RETURN(items[i], Pop());
  }
  return PushSequence(std::move(items));
}

Status PickleReader::PushText(uint64_t bytes) {
  HX_ASSIGN_OR_RETURN(const ByteSpan text, in_.ReadBytes(bytes));
  return Push({.kind = PickleKind::kText, .text = AsText(text)});
}

template <typename T>
Status PickleReader::PushNumber() {
  HX_ASSIGN_OR_RETURN(const T value, in_.Read<T>());
  return PushInt(value);
}

template <typename T>
Status PickleReader::PushSized() {
  HX_ASSIGN_OR_RETURN(const T bytes, in_.Read<T>());
  return PushText(bytes);
}

Status PickleReader::Protocol() {
  HX_ASSIGN_OR_RETURN(const auto version, in_.Read<uint8_t>());
  if (version >= 2 && version <= 5) return OkStatus();
  return Error{
      ErrorCode::kUnsupported,
      fmt::format("pickle protocol: expected 2 to 5, found {}", version)};
}

Status PickleReader::Stop() {
  HX_ASSIGN_OR_RETURN(out_.root, Pop());
  if (!stack_.empty() || !marks_.empty())
    return BadInput("expected one value at the end, found more");
  stopped_ = true;
  return OkStatus();
}

Status PickleReader::Mark() {
  HX_RETURN_IF_ERROR(CheckRoom(marks_.size(), "marks"));
  marks_.push_back(stack_.size());
  return OkStatus();
}

// Little-endian two's complement of a length given in a byte.
Status PickleReader::Long1() {
  HX_ASSIGN_OR_RETURN(const auto size, in_.Read<uint8_t>());
  HX_ASSIGN_OR_RETURN(const ByteSpan bytes, in_.ReadBytes(size));
  if (size > 8)
    return Error{
        ErrorCode::kUnsupported,
        fmt::format("a whole number of {} bytes; expected 8 at most", size)};
  uint64_t value = 0;
  for (size_t i = 0; i < size; ++i)
    value |= static_cast<uint64_t>(bytes[i]) << (8 * i);
  const bool negative =
      size > 0 && (static_cast<uint8_t>(bytes[size - 1]) & 0x80) != 0;
  if (negative && size < 8) value |= ~uint64_t{0} << (8 * size);
  return PushInt(static_cast<int64_t>(value));
}

// Big-endian, unlike all other numbers.
Status PickleReader::Float() {
  HX_ASSIGN_OR_RETURN(const auto bits, in_.Read<uint64_t>());
  return Push({.kind = PickleKind::kFloat,
               .number = std::bit_cast<double>(__builtin_bswap64(bits))});
}

Status PickleReader::MarkedSequence() {
  HX_ASSIGN_OR_RETURN(auto items, PopToMark());
  return PushSequence(std::move(items));
}

Status PickleReader::Append() {
  HX_ASSIGN_OR_RETURN(const uint32_t item, Pop());
  HX_ASSIGN_OR_RETURN(PickleValue * list, Top(PickleKind::kSequence, "a list"));
  return AddItems(*list, {&item, 1});
}

Status PickleReader::Appends() {
  HX_ASSIGN_OR_RETURN(const auto items, PopToMark());
  HX_ASSIGN_OR_RETURN(PickleValue * list, Top(PickleKind::kSequence, "a list"));
  return AddItems(*list, items);
}

Status PickleReader::SetItem() {
  HX_ASSIGN_OR_RETURN(const uint32_t value, Pop());
  HX_ASSIGN_OR_RETURN(const uint32_t key, Pop());
  HX_ASSIGN_OR_RETURN(PickleValue * dict, Top(PickleKind::kDict, "a dict"));
  const uint32_t items[] = {key, value};
  return AddItems(*dict, items);
}

Status PickleReader::SetItems() {
  HX_ASSIGN_OR_RETURN(const auto items, PopToMark());
  HX_ASSIGN_OR_RETURN(PickleValue * dict, Top(PickleKind::kDict, "a dict"));
  if (items.size() % 2 != 0)
    return BadInput("expected keys and values in pairs, found one left over");
  return AddItems(*dict, items);
}

Status PickleReader::PutByte() {
  HX_ASSIGN_OR_RETURN(const auto slot, in_.Read<uint8_t>());
  return Put(slot);
}
Status PickleReader::PutLong() {
  HX_ASSIGN_OR_RETURN(const auto slot, in_.Read<uint32_t>());
  return Put(slot);
}
Status PickleReader::GetByte() {
  HX_ASSIGN_OR_RETURN(const auto slot, in_.Read<uint8_t>());
  return Get(slot);
}
Status PickleReader::GetLong() {
  HX_ASSIGN_OR_RETURN(const auto slot, in_.Read<uint32_t>());
  return Get(slot);
}

Status PickleReader::Put(uint64_t slot) {
  // Writers number the slots from 0 on.
  if (slot >= kMaxPickleValues || stack_.empty())
    return BadInput(fmt::format("memo {}: expected a value for a slot below {}",
                                slot, kMaxPickleValues));
  if (slot >= memo_.size()) memo_.resize(slot + 1);
  memo_[slot] = stack_.back();
  return OkStatus();
}

Status PickleReader::Get(uint64_t slot) {
  if (slot >= memo_.size() || !memo_[slot])
    return BadInput(
        fmt::format("memo {}: expected a value, found nothing", slot));
  return PushId(*memo_[slot]);
}

const PickleValue* Pickle::Find(const PickleValue& dict,
                                std::string_view key) const {
  if (dict.kind != PickleKind::kDict) return nullptr;
  const PickleValue* found = nullptr;  // the last one counts
  for (size_t i = 0; i + 1 < dict.items.size(); i += 2) {
    const PickleValue& name = values[dict.items[i]];
    if (name.kind == PickleKind::kText && name.text == key)
      found = &values[dict.items[i + 1]];
  }
  return found;
}

Result<Pickle> ParsePickle(ByteSpan pickle) {
  if (pickle.size() > kMaxPickleBytes)
    return Error{ErrorCode::kUnsupported,
                 fmt::format("expected at most {} bytes, found {}",
                             kMaxPickleBytes, pickle.size())};
  return PickleReader(pickle).Read();
}

}  // namespace hexllm
