// The values that chat templates compute with: Python's None, bool, int, float,
// str, list, tuple, dict and the few objects of jinja2 (undefined, namespace,
// macro, loop, iterators). Used by the template interpreter (jinja/*.cc) alone;
// not a general Python object model: ints have 64 bits, dict keys are scalars,
// and lists and dicts never change after they are made (as in jinja2's
// immutable sandbox), so values form no cycles.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/status.h"

namespace hexllm::jinja {

class Context;
class Value;
class Dict;
class Iterator;
class Object;
struct Callable;

// A str. `markup` marks text made by the filters `safe` and `escape`: adding
// plain text to it escapes the plain text.
struct String {
  std::string text;
  bool markup = false;
};

// A list or a tuple. `depth` is 1 + the depth of the deepest item.
struct Sequence {
  std::vector<Value> items;
  bool tuple = false;
  int depth = 1;
};

// A range object: `length` numbers start, start + step, ...
struct Range {
  int64_t start = 0;
  int64_t stop = 0;
  int64_t step = 1;
  int64_t length = 0;
};

// What dict.keys(), .values() and .items() return.
struct DictView {
  enum class What { kKeys, kValues, kItems };
  What what = What::kKeys;
  std::shared_ptr<const Dict> dict;
};

// The value of a missing variable, attribute or item. Printing it gives
// nothing; most other uses fail with `why`.
struct Undefined {
  std::shared_ptr<const std::string> why;
};

// One value. Copies share the payload; the payload is immutable, except that
// objects and iterators have state.
class Value {
 public:
  using None = std::monostate;
  using StringPtr = std::shared_ptr<const String>;
  using SequencePtr = std::shared_ptr<const Sequence>;
  using DictPtr = std::shared_ptr<const Dict>;
  using RangePtr = std::shared_ptr<const Range>;
  using ViewPtr = std::shared_ptr<const DictView>;
  using CallablePtr = std::shared_ptr<const Callable>;
  using IteratorPtr = std::shared_ptr<Iterator>;

  Value() = default;  // None
  template <typename T>
  explicit Value(T payload) : data_(std::move(payload)) {}

  // A string that no budget is charged for: constants of the template and what
  // the caller passes in.
  static Value Text(std::string text);
  static Value Int(int64_t number) { return Value(number); }
  static Value Bool(bool truth) { return Value(truth); }
  static Value Missing(std::string why);

  // The payload when it is a T, else null.
  template <typename T>
  const T* As() const {
    return std::get_if<T>(&data_);
  }

  bool IsNone() const { return As<None>() != nullptr; }
  bool IsUndefined() const { return As<Undefined>() != nullptr; }
  bool IsString() const { return As<StringPtr>() != nullptr; }
  bool IsNumber() const { return As<int64_t>() || As<double>() || As<bool>(); }

  // The text of a string; the value must be one.
  const std::string& text() const { return (*As<StringPtr>())->text; }

  const Sequence* sequence() const;
  const Dict* dict() const;
  Object* object() const;

  // An int or a bool as an int, as Python lets bools be ints.
  std::optional<int64_t> AsInt() const;
  // Any number as a float.
  std::optional<double> AsFloat() const;

  // Python's truth value.
  bool Truthy() const;
  // Python's type name: 'str', 'NoneType', 'dict', ...
  std::string_view TypeName() const;
  // How deeply containers are nested in this value; 0 for scalars.
  int Depth() const;

 private:
  std::variant<None, bool, int64_t, double, Undefined, StringPtr, SequencePtr,
               DictPtr, RangePtr, ViewPtr, CallablePtr, IteratorPtr, Object*>
      data_;
};

// A dict in insertion order. Keys are scalars (None, bool, int, float, str);
// equal numbers are the same key.
class Dict {
 public:
  struct Entry {
    Value key;
    Value value;
  };

  // Takes entries in order; a later entry with the same key replaces the value
  // of the earlier one.
  explicit Dict(std::vector<Entry> entries);

  // True for the types a key may have.
  static bool IsKey(const Value& value);

  // The value of `key`, or null. Valid as long as the dict.
  const Value* Find(const Value& key) const;
  const Value* Find(std::string_view key) const;

  const std::vector<Entry>& entries() const { return entries_; }
  int depth() const { return depth_; }

 private:
  std::vector<Entry> entries_;
  std::vector<uint32_t> sorted_;  // indices into entries_, ordered by key
  int depth_ = 1;
};

// A strict order of dict keys in which equal keys are equivalent; it need not
// be Python's.
bool KeyLess(const Value& a, const Value& b);

// The arguments of a call.
struct CallArgs {
  std::vector<Value> positional;
  std::vector<std::pair<std::string, Value>> named;
};

using NativeFunction = Result<Value> (*)(Context& context, const Value& self,
                                         const CallArgs& args);

// A built-in function, or a method bound to `self`.
struct Callable {
  std::string_view name;  // static text
  NativeFunction function = nullptr;
  Value self;
};

// A generator: yields its items once.
class Iterator {
 public:
  explicit Iterator(int depth) : depth_(depth) {}
  virtual ~Iterator() = default;
  // The next item, or nothing at the end.
  virtual Result<std::optional<Value>> Next(Context& context) = 0;
  int depth() const { return depth_; }

 private:
  int depth_;
};

// A mutable object (namespace, loop, macro, cycler, joiner). Owned by the
// Context, which outlives all values.
class Object {
 public:
  virtual ~Object() = default;
  virtual std::string_view TypeName() const = 0;
  // The attribute `name`, or nothing when there is none.
  virtual Result<std::optional<Value>> GetAttribute(Context& context,
                                                    std::string_view name) = 0;
  virtual bool IsCallable() const { return false; }
  // kBadInput for objects that are not callable.
  virtual Result<Value> Call(Context& context, const CallArgs& args);
};

// namespace(...): the only thing whose attributes a template may set.
class Namespace final : public Object {
 public:
  std::string_view TypeName() const override { return "namespace"; }
  Result<std::optional<Value>> GetAttribute(Context& context,
                                            std::string_view name) override;
  // kBadInput for names with a leading underscore.
  Status Set(Context& context, std::string_view name, Value value);
  const std::vector<std::pair<std::string, Value>>& attributes() const {
    return attributes_;
  }

 private:
  std::vector<std::pair<std::string, Value>> attributes_;
};

}  // namespace hexllm::jinja
