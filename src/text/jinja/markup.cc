#include "text/jinja/markup.h"

namespace hexllm::jinja {

std::string EscapeHtml(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '\'':
        out += "&#39;";
        break;
      case '"':
        out += "&#34;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

bool IsMarkup(const Value& value) {
  return value.IsString() && (*value.As<Value::StringPtr>())->markup;
}

Result<Value> AddStrings(Context& context, const Value& a, const Value& b) {
  const bool markup = IsMarkup(a) || IsMarkup(b);
  HX_RETURN_IF_ERROR(context.SpendScan(a.text().size() + b.text().size()));
  if (!markup) return context.NewString(a.text() + b.text());
  const auto side = [](const Value& value) {
    return IsMarkup(value) ? value.text() : EscapeHtml(value.text());
  };
  return context.NewString(side(a) + side(b), true);
}

Result<Value> AsMarkup(Context& context, const Value& value) {
  if (value.IsString()) return context.NewString(value.text(), true);
  if (value.sequence() == nullptr) return value;
  std::vector<Value> items;
  for (const Value& item : value.sequence()->items) {
    HX_ASSIGN_OR_RETURN(Value markup, AsMarkup(context, item));
    items.push_back(std::move(markup));
  }
  return value.sequence()->tuple ? context.NewTuple(std::move(items))
                                 : context.NewList(std::move(items));
}

}  // namespace hexllm::jinja
