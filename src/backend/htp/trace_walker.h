// Walks through a schedule of the vendor's compiler (a Chrome trace) while it
// is parsed: files of 100 MB and more are too large for a tree. Used by
// htp/estimate, which adds events up, and htp/trace_merge, which copies them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/status.h"

namespace hexllm::htp {

class TraceWalker : public nlohmann::json_sax<Json> {
 public:
  // Parses `text`, calling the functions below. kBadInput when it is no JSON or
  // nested too deeply.
  Status Walk(std::string_view text);

  bool null() final { return Literal("null"); }
  bool boolean(bool value) final { return Literal(value ? "true" : "false"); }
  bool number_integer(number_integer_t value) final {
    return Number(static_cast<double>(value));
  }
  bool number_unsigned(number_unsigned_t value) final {
    return Number(static_cast<double>(value));
  }
  bool number_float(number_float_t value, const string_t&) final {
    return Number(value);
  }
  bool string(string_t& value) final {
    OnText(value);
    return true;
  }
  bool binary(binary_t&) final { return true; }
  bool key(string_t& value) final {
    path_.back() = value;
    return true;
  }
  bool start_object(size_t) final { return Open('{'); }
  bool start_array(size_t) final { return Open('['); }
  bool end_object() final { return Close('}'); }
  bool end_array() final { return Close(']'); }
  bool parse_error(size_t offset, const std::string&,
                   const nlohmann::detail::exception&) final {
    error_offset_ = offset;
    return false;
  }

 protected:
  virtual void OnNumber(double value) = 0;
  virtual void OnText(const std::string& value) = 0;
  // null, true, false.
  virtual void OnLiteral(std::string_view) {}
  // Of objects and arrays, seen from outside: before and after what is in them.
  virtual void OnOpen(char /*bracket*/) {}
  virtual void OnClose(char /*bracket*/) {}

  // The key of the value at hand, when it is a member of an object.
  const std::string& Key() const { return path_.back(); }
  // The value at hand is an event.
  bool AtEvent() const { return IsDeep(2); }
  // It is a member of an event, or of an object or array that lies `deeper`
  // levels inside one.
  bool InEvent(size_t deeper) const { return IsDeep(3 + deeper); }
  // When it lies at least one level deeper: the member of `args` that it is or
  // lies in.
  const std::string& Argument() const { return path_[3]; }
  // It is a member of the object `name` of the file.
  bool InSection(std::string_view name) const {
    return path_.size() == 2 && path_[0] == name;
  }

 private:
  bool IsDeep(size_t depth) const {
    return path_.size() == depth && path_[0] == "traceEvents";
  }
  bool Number(double value) {
    OnNumber(value);
    return true;
  }
  bool Literal(std::string_view text) {
    OnLiteral(text);
    return true;
  }
  bool Open(char bracket);
  bool Close(char bracket);

  std::vector<std::string> path_;  // the current key of each open container
  size_t error_offset_ = 0;
};

}  // namespace hexllm::htp
