#include <fmt/format.h>

#include <iterator>

#include "base/quote.h"
#include "checkpoint/pickle_reader.h"

namespace hexllm {
namespace {

// What a known name stands for.
enum class GlobalUse : uint8_t { kStorage, kTensor, kParameter, kDict };

struct KnownGlobal {
  std::string_view module;
  std::string_view name;
  GlobalUse use;
  DType dtype = DType::kF32;  // of a storage's elements
};

constexpr KnownGlobal kGlobals[] = {
    {"torch", "FloatStorage", GlobalUse::kStorage, DType::kF32},
    {"torch", "DoubleStorage", GlobalUse::kStorage, DType::kF64},
    {"torch", "HalfStorage", GlobalUse::kStorage, DType::kF16},
    {"torch", "BFloat16Storage", GlobalUse::kStorage, DType::kBF16},
    {"torch", "CharStorage", GlobalUse::kStorage, DType::kI8},
    {"torch", "ByteStorage", GlobalUse::kStorage, DType::kU8},
    {"torch", "ShortStorage", GlobalUse::kStorage, DType::kI16},
    {"torch", "IntStorage", GlobalUse::kStorage, DType::kI32},
    {"torch", "LongStorage", GlobalUse::kStorage, DType::kI64},
    {"torch", "BoolStorage", GlobalUse::kStorage, DType::kBool},
    {"torch._utils", "_rebuild_tensor_v2", GlobalUse::kTensor},
    {"torch._utils", "_rebuild_parameter", GlobalUse::kParameter},
    {"collections", "OrderedDict", GlobalUse::kDict},
};

// More than any call that makes a tensor has, and any tensor has dimensions.
constexpr size_t kMaxArguments = 8;
constexpr size_t kMaxDimensions = 16;

Error BadInput(std::string message) {
  return Error{ErrorCode::kBadInput, std::move(message)};
}

}  // namespace

Result<std::string_view> PickleReader::ReadLine() {
  std::string_view line;
  const size_t begin = in_.offset();
  while (true) {
    HX_ASSIGN_OR_RETURN(const ByteSpan next, in_.ReadBytes(1));
    if (next[0] == std::byte{'\n'}) return line;
    line = {
        reinterpret_cast<const char*>(next.data()) + 1 - (in_.offset() - begin),
        in_.offset() - begin};
  }
}

Status PickleReader::Global() {
  HX_ASSIGN_OR_RETURN(const std::string_view module, ReadLine());
  HX_ASSIGN_OR_RETURN(const std::string_view name, ReadLine());
  return PushGlobal(module, name);
}

Status PickleReader::StackGlobal() {
  HX_ASSIGN_OR_RETURN(const uint32_t name, Pop());
  HX_ASSIGN_OR_RETURN(const uint32_t module, Pop());
  if (At(name).kind != PickleKind::kText ||
      At(module).kind != PickleKind::kText)
    return BadInput("a global: expected its name as text, found another value");
  return PushGlobal(At(module).text, At(name).text);
}

Status PickleReader::PushGlobal(std::string_view module,
                                std::string_view name) {
  for (size_t i = 0; i < std::size(kGlobals); ++i) {
    if (kGlobals[i].module != module || kGlobals[i].name != name) continue;
    return Push(
        {.kind = PickleKind::kGlobal, .integer = static_cast<int64_t>(i)});
  }
  return Error{ErrorCode::kUnsupported,
               fmt::format("global {}: expected only what tensors need; save "
                           "the weights alone (a state dict); nothing was "
                           "executed",
                           Quoted(fmt::format("{}.{}", module, name)))};
}

// ("storage", storage type, key, device, elements)
Status PickleReader::PersistentId() {
  HX_ASSIGN_OR_RETURN(const uint32_t id, Pop());
  const PickleValue& tuple = At(id);
  const auto bad = BadInput(
      "a persistent id: expected ('storage', type, key, device, elements), "
      "found another value");
  if (tuple.kind != PickleKind::kSequence || tuple.items.size() != 5)
    return bad;
  const PickleValue& what = At(tuple.items[0]);
  const PickleValue& type = At(tuple.items[1]);
  const PickleValue& key = At(tuple.items[2]);
  const PickleValue& elements = At(tuple.items[4]);
  const bool fits = what.kind == PickleKind::kText && what.text == "storage" &&
                    type.kind == PickleKind::kGlobal &&
                    key.kind == PickleKind::kText &&
                    elements.kind == PickleKind::kInt && elements.integer >= 0;
  if (!fits) return bad;
  const KnownGlobal& global = kGlobals[type.integer];
  if (global.use != GlobalUse::kStorage) return bad;
  return Push({.kind = PickleKind::kStorage,
               .dtype = global.dtype,
               .integer = elements.integer,
               .text = key.text});
}

Status PickleReader::Reduce() {
  HX_ASSIGN_OR_RETURN(const uint32_t arguments_id, Pop());
  HX_ASSIGN_OR_RETURN(const uint32_t callee_id, Pop());
  if (At(callee_id).kind != PickleKind::kGlobal ||
      At(arguments_id).kind != PickleKind::kSequence)
    return BadInput("a call: expected a name and a tuple, found other values");
  const KnownGlobal& callee = kGlobals[At(callee_id).integer];
  if (At(arguments_id).items.size() > kMaxArguments)
    return BadInput(
        fmt::format("call of '{}.{}': expected at most {} "
                    "arguments, found {}",
                    callee.module, callee.name, kMaxArguments,
                    At(arguments_id).items.size()));
  const std::vector<uint32_t> arguments = At(arguments_id).items;
  switch (callee.use) {
    case GlobalUse::kTensor:
      return CallTensor(arguments);
    case GlobalUse::kParameter:
      if (arguments.empty() || At(arguments[0]).kind != PickleKind::kTensor)
        return BadInput("_rebuild_parameter: expected a tensor, found none");
      return PushId(arguments[0]);
    case GlobalUse::kDict:
      // Filled by opcodes afterwards.
      if (!arguments.empty())
        return BadInput("OrderedDict: expected an empty one, found arguments");
      return Push({.kind = PickleKind::kDict});
    case GlobalUse::kStorage:
      break;
  }
  return Error{ErrorCode::kUnsupported,
               fmt::format("call of '{}.{}': expected only calls that make "
                           "tensors; nothing was executed",
                           callee.module, callee.name)};
}

// A tuple of whole numbers >= 0.
Result<Shape> PickleReader::Sizes(uint32_t id) {
  const PickleValue& value = At(id);
  Shape sizes;
  if (value.items.size() > kMaxDimensions)
    return BadInput(fmt::format(
        "_rebuild_tensor_v2: expected at most {} dimensions, found {}",
        kMaxDimensions, value.items.size()));
  for (const uint32_t item : value.items) {
    if (At(item).kind != PickleKind::kInt || At(item).integer < 0) break;
    sizes.push_back(At(item).integer);
  }
  if (value.kind == PickleKind::kSequence && sizes.size() == value.items.size())
    return sizes;
  return BadInput(
      "_rebuild_tensor_v2: expected sizes as whole numbers, found others");
}

// _rebuild_tensor_v2(storage, offset, size, stride, requires_grad, hooks, ...)
Status PickleReader::CallTensor(const std::vector<uint32_t>& arguments) {
  if (arguments.size() < 4 || At(arguments[0]).kind != PickleKind::kStorage ||
      At(arguments[1]).kind != PickleKind::kInt)
    return BadInput(
        "_rebuild_tensor_v2: expected a storage, an offset, sizes and strides, "
        "found other values");
  PickleValue tensor{.kind = PickleKind::kTensor,
                     .dtype = At(arguments[0]).dtype,
                     .integer = At(arguments[1]).integer,
                     .items = {arguments[0]}};
  HX_ASSIGN_OR_RETURN(tensor.shape, Sizes(arguments[2]));
  HX_ASSIGN_OR_RETURN(tensor.strides, Sizes(arguments[3]));
  if (tensor.integer < 0 || tensor.shape.size() != tensor.strides.size())
    return BadInput(fmt::format(
        "_rebuild_tensor_v2: expected an offset from 0 on and a stride for "
        "each of {} dimensions, found offset {} and {} strides",
        tensor.shape.size(), tensor.integer, tensor.strides.size()));
  return Push(std::move(tensor));
}

// Attributes of a state dict (_metadata: versions of its modules), which mean
// nothing to its tensors.
Status PickleReader::Build() {
  HX_RETURN_IF_ERROR(Pop().status());
  auto dict = Top(PickleKind::kDict, "a dict");
  if (dict.ok()) return OkStatus();
  return Error{ErrorCode::kUnsupported,
               "an object with a state: expected dicts and tensors alone; "
               "nothing was executed"};
}

}  // namespace hexllm
