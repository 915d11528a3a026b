#include "eval/wikitext.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "text/utf8.h"

namespace hexllm {
namespace {

std::string WithUnixLineEnds(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\r') {
      out += text[i];
    } else if (i + 1 == text.size() || text[i + 1] != '\n') {
      out += '\n';
    }
  }
  return out;
}

std::string_view Trimmed(std::string_view text) {
  constexpr std::string_view kSpace = " \t\n\v\f\r";
  const size_t begin = text.find_first_not_of(kSpace);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kSpace) + 1 - begin);
}

// "= Title =", but not "= = Section = =".
bool IsTitle(std::string_view line) {
  const std::string_view text = Trimmed(line);
  return text.size() > 4 && text.starts_with("= ") && text.ends_with(" =") &&
         !text.starts_with("= =") && !text.ends_with("= =");
}

void ReplaceAll(std::string& text, std::string_view from, std::string_view to) {
  std::string out;
  size_t at = 0;
  for (size_t found = text.find(from); found != std::string::npos;
       found = text.find(from, at)) {
    out.append(text, at, found - at).append(to);
    at = found + from.size();
  }
  text = out.append(text, at);
}

// Spaces behind `open` and before the next `close` go.
void CloseUp(std::string& text, char open, char close) {
  std::string out;
  size_t at = 0;
  for (size_t begin = text.find(open); begin != std::string::npos;
       begin = text.find(open, at)) {
    const size_t end = text.find(close, begin + 1);
    if (end == std::string::npos) break;
    out.append(text, at, begin - at) += open;
    out.append(
        Trimmed(std::string_view(text).substr(begin + 1, end - begin - 1)));
    out += close;
    at = end + 1;
  }
  text = out.append(text, at);
}

struct Rule {
  std::string_view from, to;
};
constexpr Rule kBeforeBrackets[] = {
    {"s '", "s'"}, {" @-@ ", "-"}, {" @,@ ", ","}, {" @.@ ", "."},
    {" : ", ": "}, {" ; ", "; "},  {" . ", ". "},  {" ! ", "! "},
    {" ? ", "? "}, {" , ", ", "},
};
constexpr Rule kAfterBrackets[] = {
    {"= = = =", "===="},    {"= = =", "==="}, {"= =", "=="},
    {" \u00B0 ", "\u00B0"}, {" \n", "\n"},    {"\n ", "\n"},
    {" N ", " 1 "},         {" 's", "'s"},
};

}  // namespace

std::vector<std::string> WikitextDocuments(std::string_view text) {
  const std::string lines = WithUnixLineEnds(text);
  std::vector<std::string> documents;
  std::string document;
  bool after_empty = true;
  const auto finish = [&] {
    if (!Trimmed(document).empty()) documents.push_back(std::move(document));
    document.clear();
  };
  for (size_t at = 0; at < lines.size();) {
    const size_t end = std::min(lines.find('\n', at), lines.size() - 1) + 1;
    const auto line = std::string_view(lines).substr(at, end - at);
    if (after_empty && IsTitle(line)) finish();
    document += line;
    after_empty = Trimmed(line).empty();
    at = end;
  }
  finish();
  return documents;
}

std::string WikitextDetokenized(std::string_view document) {
  std::string text(document);
  for (const Rule& rule : kBeforeBrackets) ReplaceAll(text, rule.from, rule.to);
  for (const auto& [open, close] :
       {std::pair('(', ')'), {'[', ']'}, {'{', '}'}, {'"', '"'}, {'\'', '\''}})
    CloseUp(text, open, close);
  for (const Rule& rule : kAfterBrackets) ReplaceAll(text, rule.from, rule.to);
  return text;
}

bool IsPythonSpace(uint32_t c) {
  constexpr uint32_t kOthers[] = {0x20,   0x85,   0xA0,   0x1680, 0x2028,
                                  0x2029, 0x202F, 0x205F, 0x3000};
  return (c >= 0x09 && c <= 0x0D) || (c >= 0x1C && c <= 0x1F) ||
         (c >= 0x2000 && c <= 0x200A) ||
         std::find(std::begin(kOthers), std::end(kOthers), c) !=
             std::end(kOthers);
}

uint64_t CountWords(std::string_view text) {
  uint64_t words = 1;
  bool in_space = false;
  ForEachChar(text, [&](uint32_t c, size_t, size_t) {
    const bool space = IsPythonSpace(c);
    if (space && !in_space) ++words;
    in_space = space;
  });
  return words;
}

}  // namespace hexllm
