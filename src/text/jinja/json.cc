// json.dumps for template values. (See jinja/print.h.)
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "text/jinja/ops.h"
#include "text/jinja/print.h"
#include "text/jinja/text.h"

namespace hexllm::jinja {
namespace {

class JsonWriter {
 public:
  JsonWriter(Context& context, const JsonStyle& style)
      : context_(context), style_(style) {}

  Status Write(const Value& value) {
    HX_RETURN_IF_ERROR(context_.Enter());
    const DepthGuard guard(context_);
    HX_RETURN_IF_ERROR(context_.Spend(1));
    HX_RETURN_IF_ERROR(WriteOne(value));
    const size_t limit = context_.limits().max_output_bytes;
    if (out_.size() > limit)
      return context_.Fail(
          fmt::format("JSON text is longer than {} bytes", limit));
    return OkStatus();
  }

  std::string Take() { return std::move(out_); }

 private:
  Status WriteOne(const Value& value) {
    if (value.IsString()) return WriteString(value.text());
    if (value.sequence() != nullptr) return WriteList(value.sequence()->items);
    if (value.dict() != nullptr) return WriteDict(*value.dict());
    if (const auto scalar = Scalar(value)) {
      out_ += *scalar;
      return OkStatus();
    }
    return context_.Fail(fmt::format(
        "Object of type {} is not JSON serializable", value.TypeName()));
  }

  static std::optional<std::string> Scalar(const Value& value) {
    if (value.IsNone()) return "null";
    if (const auto* truth = value.As<bool>()) return *truth ? "true" : "false";
    if (const auto* number = value.As<int64_t>())
      return std::to_string(*number);
    const auto* number = value.As<double>();
    if (number == nullptr) return std::nullopt;
    if (std::isnan(*number)) return "NaN";
    if (std::isinf(*number)) return *number < 0 ? "-Infinity" : "Infinity";
    return FloatRepr(*number);
  }

  void AppendUnicodeEscape(uint32_t c) {
    if (c > 0xFFFF) {
      AppendUnicodeEscape(0xD800 + ((c - 0x10000) >> 10));
      c = 0xDC00 + ((c - 0x10000) & 0x3FF);
    }
    out_ += fmt::format("\\u{:04x}", c);
  }

  void AppendCharacter(uint32_t c, std::string_view utf8) {
    constexpr std::string_view kFrom = "\"\\\n\r\t\f\b";
    constexpr std::string_view kTo = "\"\\nrtfb";
    const size_t escape =
        c < 0x80 ? kFrom.find(static_cast<char>(c)) : std::string_view::npos;
    if (escape != std::string_view::npos) {
      out_ += '\\';
      out_ += kTo[escape];
    } else if (c < 0x20 || (style_.ensure_ascii && c > 0x7E)) {
      AppendUnicodeEscape(c);
    } else {
      out_ += utf8;
    }
  }

  Status WriteString(const std::string& text) {
    HX_RETURN_IF_ERROR(context_.SpendScan(text.size() * 4));
    out_ += '"';
    for (size_t pos = 0; pos < text.size();) {
      const size_t begin = pos;
      const uint32_t c = NextCodePoint(text, pos);
      AppendCharacter(c, std::string_view(text).substr(begin, pos - begin));
    }
    out_ += '"';
    return OkStatus();
  }

  void NewLine() {
    if (!style_.indent) return;
    out_ += '\n';
    for (int i = 0; i < level_; ++i) out_ += *style_.indent;
  }

  Status WriteList(const std::vector<Value>& items) {
    if (items.empty()) {
      out_ += "[]";
      return OkStatus();
    }
    out_ += '[';
    ++level_;
    for (size_t i = 0; i < items.size(); ++i) {
      if (i > 0) out_ += style_.item_separator;
      NewLine();
      HX_RETURN_IF_ERROR(Write(items[i]));
    }
    --level_;
    NewLine();
    out_ += ']';
    return OkStatus();
  }

  // The entries in the order in which they are written.
  Result<std::vector<const Dict::Entry*>> Order(const Dict& dict) {
    std::vector<const Dict::Entry*> order;
    for (const Dict::Entry& entry : dict.entries()) order.push_back(&entry);
    if (!style_.sort_keys) return order;
    for (size_t i = 1; i < order.size();
         ++i) {  // keys that cannot be ordered fail as in Python
      HX_RETURN_IF_ERROR(
          Less(context_, order[i - 1]->key, order[i]->key).status());
    }
    std::stable_sort(
        order.begin(), order.end(),
        [](const auto* a, const auto* b) { return KeyLess(a->key, b->key); });
    return order;
  }

  Status WriteDict(const Dict& dict) {
    if (dict.entries().empty()) {
      out_ += "{}";
      return OkStatus();
    }
    HX_ASSIGN_OR_RETURN(const auto order, Order(dict));
    out_ += '{';
    ++level_;
    bool first = true;
    for (const Dict::Entry* entry : order) {
      if (!first) out_ += style_.item_separator;
      first = false;
      NewLine();
      HX_RETURN_IF_ERROR(WriteString(entry->key.IsString()
                                         ? entry->key.text()
                                         : Scalar(entry->key).value_or("")));
      out_ += style_.key_separator;
      HX_RETURN_IF_ERROR(Write(entry->value));
    }
    --level_;
    NewLine();
    out_ += '}';
    return OkStatus();
  }

  Context& context_;
  const JsonStyle& style_;
  std::string out_;
  int level_ = 0;
};

}  // namespace

Result<std::string> ToJson(Context& context, const Value& value,
                           const JsonStyle& style) {
  JsonWriter writer(context, style);
  HX_RETURN_IF_ERROR(writer.Write(value));
  return writer.Take();
}

}  // namespace hexllm::jinja
