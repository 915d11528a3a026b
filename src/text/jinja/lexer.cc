#include "text/jinja/lexer.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>

#include "text/jinja/string_literal.h"
#include "text/jinja/text.h"

namespace hexllm::jinja {
namespace {

constexpr size_t kMaxNameBytes = 1000;

bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool IsNameChar(char c) {
  return IsDigit(c) || c == '_' || (c >= 'a' && c <= 'z') ||
         (c >= 'A' && c <= 'Z');
}

// "\r\n" and "\r" become "\n"; one newline at the end is dropped.
std::string NormalizeNewlines(std::string_view source) {
  std::string out;
  out.reserve(source.size());
  for (size_t i = 0; i < source.size(); ++i) {
    if (source[i] == '\r') {
      if (i + 1 < source.size() && source[i + 1] == '\n') ++i;
      out += '\n';
    } else {
      out += source[i];
    }
  }
  if (!out.empty() && out.back() == '\n') out.pop_back();
  return out;
}

class Lexer {
 public:
  explicit Lexer(std::string_view source)
      : source_(NormalizeNewlines(source)), text_(source_) {}

  Result<std::vector<Token>> Run() {
    while (pos_ < text_.size()) HX_RETURN_IF_ERROR(LexRoot());
    Push(TokenKind::kEnd, "");
    return std::move(tokens_);
  }

 private:
  // A tag opener "{{", "{%" or "{#" found in the text, with its white space
  // sign.
  struct Opener {
    size_t begin = 0;
    size_t end = 0;  // behind the sign
    char type = 0;   // '{', '%' or '#'
    char sign = 0;   // '-', '+' or 0
  };

  Error Fail(std::string_view message) const { return FailAt(line_, message); }
  static Error FailAt(int line, std::string_view message) {
    return Error{ErrorCode::kBadInput,
                 fmt::format("chat template line {}: {}", line, message)};
  }

  void Push(TokenKind kind, std::string_view text) {
    Token token;
    token.kind = kind;
    token.line = line_;
    token.text = text;
    tokens_.push_back(std::move(token));
  }

  // Moves to `end`, counting lines, and remembers whether a line starts there.
  void Advance(size_t end) {
    line_ += static_cast<int>(
        std::count(text_.begin() + static_cast<ptrdiff_t>(pos_),
                   text_.begin() + static_cast<ptrdiff_t>(end), '\n'));
    if (end > pos_) line_starting_ = text_[end - 1] == '\n';
    pos_ = end;
  }

  size_t SkipSpace(size_t pos) const {
    while (pos < text_.size()) {
      size_t next = pos;
      if (!IsSpace(NextCodePoint(text_, next))) break;
      pos = next;
    }
    return pos;
  }

  std::optional<Opener> FindOpener(size_t from) const {
    for (size_t i = text_.find('{', from); i != std::string_view::npos;
         i = text_.find('{', i + 1)) {
      if (i + 1 >= text_.size()) break;
      const char type = text_[i + 1];
      if (type != '{' && type != '%' && type != '#') continue;
      Opener opener{i, i + 2, type, 0};
      if (opener.end < text_.size() &&
          (text_[opener.end] == '-' || text_[opener.end] == '+')) {
        opener.sign = text_[opener.end++];
      }
      return opener;
    }
    return std::nullopt;
  }

  // The text before a tag, without the white space that the tag takes away.
  std::string_view TrimBefore(std::string_view data,
                              const Opener& opener) const {
    if (opener.sign == '-') return Strip(data, StripEnds::kRight);
    if (opener.sign == '+' || opener.type == '{') return data;
    const size_t newline = data.rfind('\n');
    const size_t line_begin =
        newline == std::string_view::npos ? 0 : newline + 1;
    if (line_begin == 0 && !line_starting_) return data;
    return Strip(data.substr(line_begin), StripEnds::kBoth).empty()
               ? data.substr(0, line_begin)
               : data;
  }

  void PushData(std::string_view data) {
    if (!data.empty()) Push(TokenKind::kData, data);
  }

  Status LexRoot() {
    const auto opener = FindOpener(pos_);
    if (!opener) {
      PushData(text_.substr(pos_));
      Advance(text_.size());
      return OkStatus();
    }
    PushData(TrimBefore(text_.substr(pos_, opener->begin - pos_), *opener));
    if (opener->type == '%') {
      if (const auto raw = RawBegin(opener->end)) {
        Advance(*raw);
        return LexRaw();
      }
    }
    Advance(opener->end);
    if (opener->type == '#') return LexComment();
    Push(opener->type == '{' ? TokenKind::kVariableBegin
                             : TokenKind::kBlockBegin,
         "");
    return LexTag(opener->type == '{' ? '}' : '%');
  }

  // The end of "raw %}" at `pos`, when it stands there.
  std::optional<size_t> RawBegin(size_t pos) const {
    pos = SkipSpace(pos);
    if (text_.substr(pos, 3) != "raw") return std::nullopt;
    pos = SkipSpace(pos + 3);
    if (text_.substr(pos, 3) == "-%}") return SkipSpace(pos + 3);
    if (text_.substr(pos, 2) == "%}") return pos + 2;
    return std::nullopt;
  }

  // The end of a closing delimiter of two characters at `pos` with its sign and
  // the white space it takes, if one stands there.
  std::optional<size_t> CloserAt(size_t pos, std::string_view delimiter) const {
    if (pos >= text_.size()) return std::nullopt;
    const bool variable = delimiter == "}}";
    if (text_.substr(pos, 2) == delimiter) {
      pos += 2;
      const bool trim = !variable && pos < text_.size() && text_[pos] == '\n';
      return trim ? pos + 1 : pos;
    }
    if (text_.substr(pos + 1, 2) != delimiter) return std::nullopt;
    if (text_[pos] == '-') return SkipSpace(pos + 3);
    if (text_[pos] == '+' && !variable) return pos + 3;
    return std::nullopt;
  }

  Status LexRaw() {
    for (auto opener = FindOpener(pos_); opener;
         opener = FindOpener(opener->begin + 1)) {
      if (opener->type != '%') continue;
      size_t end = SkipSpace(opener->end);
      if (text_.substr(end, 6) != "endraw") continue;
      const auto closer = CloserAt(SkipSpace(end + 6), "%}");
      if (!closer) continue;
      PushData(TrimBefore(text_.substr(pos_, opener->begin - pos_), *opener));
      Advance(*closer);
      return OkStatus();
    }
    return Fail("missing end of raw directive");
  }

  Status LexComment() {
    for (size_t i = pos_; i < text_.size(); ++i) {
      const auto closer = CloserAt(i, "#}");
      if (!closer) continue;
      Advance(*closer);
      return OkStatus();
    }
    return Fail("missing end of comment tag");
  }

  // Lexes the inside of a tag up to its end ("}}" or "%}").
  Status LexTag(char type) {
    const std::string_view delimiter = type == '}' ? "}}" : "%}";
    open_.clear();
    while (pos_ < text_.size()) {
      if (open_.empty()) {
        if (const auto closer = CloserAt(pos_, delimiter)) {
          Push(type == '}' ? TokenKind::kVariableEnd : TokenKind::kBlockEnd,
               "");
          Advance(*closer);
          return OkStatus();
        }
      }
      HX_RETURN_IF_ERROR(LexExpressionToken());
    }
    return OkStatus();  // the parser reports the missing end
  }

  Status LexExpressionToken() {
    const size_t after_space = SkipSpace(pos_);
    if (after_space > pos_) {
      Advance(after_space);
      return OkStatus();
    }
    const char c = text_[pos_];
    if (IsDigit(c)) return LexNumber();
    if (IsNameChar(c)) return LexName();
    if (c == '\'' || c == '"') return LexString();
    if (static_cast<unsigned char>(c) >= 0x80) {
      return Error{
          ErrorCode::kUnsupported,
          fmt::format("chat template line {}: a name with non-ASCII letters",
                      line_)};
    }
    return LexOperator();
  }

  Status LexName() {
    size_t end = pos_;
    while (end < text_.size() && IsNameChar(text_[end])) ++end;
    if (end - pos_ > kMaxNameBytes)
      return Fail(fmt::format("a name is longer than {} bytes", kMaxNameBytes));
    Push(TokenKind::kName, text_.substr(pos_, end - pos_));
    Advance(end);
    return OkStatus();
  }

  // Digits with single underscores between them, from `pos`; returns `pos` when
  // there are none.
  size_t DigitsEnd(size_t pos) const {
    while (pos < text_.size() && IsDigit(text_[pos])) {
      ++pos;
      if (pos + 1 < text_.size() && text_[pos] == '_' &&
          IsDigit(text_[pos + 1]))
        ++pos;
    }
    return pos;
  }

  // The end of a float at pos_, or pos_ when the digits there form no float.
  size_t FloatEnd() const {
    if (pos_ > 0 && text_[pos_ - 1] == '.') return pos_;
    size_t end = DigitsEnd(pos_);
    bool is_float = false;
    if (end + 1 < text_.size() && text_[end] == '.' &&
        IsDigit(text_[end + 1])) {
      end = DigitsEnd(end + 1);
      is_float = true;
    }
    if (end < text_.size() && (text_[end] == 'e' || text_[end] == 'E')) {
      size_t digits = end + 1;
      if (digits < text_.size() &&
          (text_[digits] == '+' || text_[digits] == '-'))
        ++digits;
      const size_t exponent_end = DigitsEnd(digits);
      if (exponent_end > digits) return exponent_end;
    }
    return is_float ? end : pos_;
  }

  std::string WithoutUnderscores(size_t begin, size_t end) const {
    std::string digits(text_.substr(begin, end - begin));
    std::erase(digits, '_');
    return digits;
  }

  Status LexNumber() {
    const size_t float_end = FloatEnd();
    if (float_end == pos_) return LexInteger();
    const std::string digits = WithoutUnderscores(pos_, float_end);
    Push(TokenKind::kFloat, digits);
    const auto [end, error] = std::from_chars(
        digits.data(), digits.data() + digits.size(), tokens_.back().number);
    if (error != std::errc())
      return Fail(fmt::format("the number {} is out of range", digits));
    Advance(float_end);
    return OkStatus();
  }

  // Base and end of an int with prefix 0x, 0o or 0b; base 10 otherwise.
  std::pair<int, size_t> IntegerExtent() const {
    const char prefix = pos_ + 1 < text_.size() && text_[pos_] == '0'
                            ? static_cast<char>(text_[pos_ + 1] | 0x20)
                            : '0';
    const int base = prefix == 'x'   ? 16
                     : prefix == 'o' ? 8
                     : prefix == 'b' ? 2
                                     : 10;
    if (base != 10) {
      const auto valid = [base](char c) {
        const int digit = IsDigit(c) ? c - '0'
                          : (c | 0x20) >= 'a' && (c | 0x20) <= 'f'
                              ? (c | 0x20) - 'a' + 10
                              : 99;
        return digit < base;
      };
      size_t end = pos_ + 2;
      while (
          end < text_.size() &&
          (valid(text_[end]) || (text_[end] == '_' && end + 1 < text_.size() &&
                                 valid(text_[end + 1])))) {
        ++end;
      }
      if (end > pos_ + 2) return {base, end};
    }
    size_t end = DigitsEnd(pos_);
    if (text_[pos_] ==
        '0') {  // "007" lexes as 0, 0, 7 would: only zeros may follow a zero
      end = pos_ + 1;
      while (end < text_.size() &&
             (text_[end] == '0' ||
              (text_[end] == '_' && text_.substr(end + 1, 1) == "0")))
        ++end;
    }
    return {10, end};
  }

  Status LexInteger() {
    const auto [base, end] = IntegerExtent();
    const std::string digits =
        WithoutUnderscores(base == 10 ? pos_ : pos_ + 2, end);
    Push(TokenKind::kInteger, digits);
    const auto [stop, error] =
        std::from_chars(digits.data(), digits.data() + digits.size(),
                        tokens_.back().integer, base);
    if (error != std::errc()) {
      return Error{
          ErrorCode::kUnsupported,
          fmt::format(
              "chat template line {}: the int {} needs more than 64 bits",
              line_, digits)};
    }
    Advance(end);
    return OkStatus();
  }

  Status LexString() {
    const char quote = text_[pos_];
    size_t end = pos_ + 1;
    while (end < text_.size() && text_[end] != quote)
      end += text_[end] == '\\' ? size_t{2} : size_t{1};
    if (end >= text_.size()) return Fail("a string has no end");
    auto text = UnescapeStringLiteral(text_.substr(pos_ + 1, end - pos_ - 1));
    if (!text.ok())
      return std::move(text).error().With(
          fmt::format("chat template line {}", line_));
    Push(TokenKind::kString, *text);
    Advance(end + 1);
    return OkStatus();
  }

  Status LexOperator() {
    static constexpr std::string_view kTwo[] = {
        "//", "**", "==", "!=", ">=", "<="};
    static constexpr std::string_view kOne = "+-/*%~[](){}><=.:|,;";
    std::string_view op = text_.substr(pos_, 2);
    if (std::find(std::begin(kTwo), std::end(kTwo), op) == std::end(kTwo))
      op = text_.substr(pos_, 1);
    if (op.size() == 1 && kOne.find(op[0]) == std::string_view::npos) {
      return Fail(fmt::format("unexpected character '{}'", op));
    }
    HX_RETURN_IF_ERROR(Balance(op[0]));
    Push(TokenKind::kOperator, op);
    Advance(pos_ + op.size());
    return OkStatus();
  }

  // Keeps the stack of open brackets: a tag ends only where all are closed.
  Status Balance(char c) {
    if (c == '(') open_ += ')';
    if (c == '[') open_ += ']';
    if (c == '{') open_ += '}';
    if (c != ')' && c != ']' && c != '}') return OkStatus();
    if (open_.empty()) return Fail(fmt::format("unexpected '{}'", c));
    if (open_.back() != c)
      return Fail(
          fmt::format("unexpected '{}', expected '{}'", c, open_.back()));
    open_.pop_back();
    return OkStatus();
  }

  const std::string source_;
  const std::string_view text_;
  size_t pos_ = 0;
  int line_ = 1;
  bool line_starting_ = true;
  std::string open_;  // closing brackets still to come
  std::vector<Token> tokens_;
};

}  // namespace

Result<std::vector<Token>> Tokenize(std::string_view source) {
  return Lexer(source).Run();
}

}  // namespace hexllm::jinja
