#include "text/onig_syntax.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>

#include "base/quote.h"
#include "text/utf8.h"

namespace hexllm {
namespace {

// What stands inside [...] for Oniguruma's \w.
constexpr std::string_view kWord = R"(\p{Alphabetic}\p{M}\p{Nd}\p{Pc})";

// Names that both libraries know as a general category or a property, with
// PCRE2's spelling. Compared without case, spaces, "_" and "-". Whatever is not
// here and longer than two letters is a script.
struct PropertyName {
  std::string_view onig;
  std::string_view pcre2;
};
constexpr PropertyName kProperties[] = {
    {"any", "Any"},
    {"letter", "L"},
    {"lowercaseletter", "Ll"},
    {"uppercaseletter", "Lu"},
    {"titlecaseletter", "Lt"},
    {"modifierletter", "Lm"},
    {"otherletter", "Lo"},
    {"mark", "M"},
    {"nonspacingmark", "Mn"},
    {"spacingmark", "Mc"},
    {"enclosingmark", "Me"},
    {"number", "N"},
    {"decimalnumber", "Nd"},
    {"letternumber", "Nl"},
    {"othernumber", "No"},
    {"punctuation", "P"},
    {"punct", "P"},
    {"symbol", "S"},
    {"mathsymbol", "Sm"},
    {"currencysymbol", "Sc"},
    {"separator", "Z"},
    {"spaceseparator", "Zs"},
    {"digit", "Nd"},
    {"space", "White_Space"},
    {"whitespace", "White_Space"},
    {"alpha", "Alphabetic"},
    {"alphabetic", "Alphabetic"},
    {"upper", "Uppercase"},
    {"uppercase", "Uppercase"},
    {"lower", "Lowercase"},
    {"lowercase", "Lowercase"},
    {"ideographic", "Ideographic"},
    {"emoji", "Emoji"},
    {"extendedpictographic", "Extended_Pictographic"},
};

std::string Fold(std::string_view name) {
  std::string out;
  for (const char c : name) {
    if (c == ' ' || c == '_' || c == '-') continue;
    out.push_back(
        static_cast<char>(std::tolower(static_cast<unsigned char>(c))));
  }
  return out;
}

bool IsHex(char c) { return std::isxdigit(static_cast<unsigned char>(c)) != 0; }
bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool IsLetter(char c) {
  return std::isalpha(static_cast<unsigned char>(c)) != 0;
}

class Translator {
 public:
  explicit Translator(std::string_view in) : in_(in) {}

  Result<std::string> Run() {
    while (!AtEnd()) {
      switch (Peek()) {
        case '\\':
          HX_RETURN_IF_ERROR(Escape(Place::kOutside));
          break;
        case '[':
          HX_RETURN_IF_ERROR(Class());
          break;
        case '(':
          HX_RETURN_IF_ERROR(Group());
          break;
        case '{':
          HX_RETURN_IF_ERROR(Interval());
          break;
        default:
          out_.push_back(Take());
      }
    }
    return std::move(out_);
  }

 private:
  enum class Place { kOutside, kInClass };

  bool AtEnd() const { return at_ >= in_.size(); }
  char Peek(size_t ahead = 0) const {
    return at_ + ahead < in_.size() ? in_[at_ + ahead] : '\0';
  }
  char Take() { return in_[at_++]; }

  static Error Unsupported(std::string_view what) {
    return Error{ErrorCode::kUnsupported,
                 fmt::format("{} is not supported", what)};
  }
  static Error Ends(std::string_view inside) {
    return Error{ErrorCode::kBadInput,
                 fmt::format("the pattern ends inside {}", inside)};
  }

  // "(" and what decides its kind; group bodies go through Run.
  Status Group() {
    out_.push_back(Take());
    if (Peek() == '*') return Unsupported("the verb '(*'");
    if (Peek() != '?') return OkStatus();
    out_.push_back(Take());
    switch (Peek()) {
      case ':':
      case '=':
      case '!':
      case '>':
      case '<':  // lookbehind or a named group
        out_.push_back(Take());
        return OkStatus();
      default:
        return Options();
    }
  }

  // The options of "(?im-x:" or "(?i)".
  Status Options() {
    while (!AtEnd()) {
      const char c = Take();
      if (c == 'i' || c == '-') {
        out_.push_back(c);
      } else if (c == 'm') {
        out_.push_back('s');
      } else if (c == ':' || c == ')') {
        out_.push_back(c);
        return OkStatus();
      } else {
        return Unsupported("the group " + Quoted(std::string("(?") + c));
      }
    }
    return Ends("a group's options");
  }

  // "{n}", "{n,}", "{,n}", "{n,m}"; any other brace is an ordinary character in
  // both.
  Status Interval() {
    size_t i = at_ + 1;
    const auto digits = [&] {
      const size_t start = i;
      while (i < in_.size() && IsDigit(in_[i])) ++i;
      return i - start;
    };
    const size_t low = digits();
    const bool comma = i < in_.size() && in_[i] == ',';
    if (comma) ++i;
    const size_t high = comma ? digits() : 0;
    if (low + high == 0 || i >= in_.size() || in_[i] != '}') {
      out_.append("\\{");
      ++at_;
      return OkStatus();
    }
    if (i + 1 < in_.size() && in_[i + 1] == '+')
      return Unsupported("'+' after '{n,m}'");
    out_.append(low == 0 ? "{0" : "{");
    out_.append(in_.substr(at_ + 1, i - at_));
    at_ = i + 1;
    return OkStatus();
  }

  Status Class() {
    out_.push_back(Take());
    if (Peek() == '^') out_.push_back(Take());
    if (Peek() == ']')
      return Unsupported("']' as the first character of a class");
    while (!AtEnd()) {
      switch (Peek()) {
        case ']':
          out_.push_back(Take());
          return OkStatus();
        case '\\':
          HX_RETURN_IF_ERROR(Escape(Place::kInClass));
          break;
        case '[':
          HX_RETURN_IF_ERROR(PosixClass());
          break;
        case '&':
          if (Peek(1) == '&') return Unsupported("'&&' in a class");
          out_.push_back(Take());
          break;
        default:
          out_.push_back(Take());
      }
    }
    return Ends("a class");
  }

  // "[:name:]" inside a class; any other "[" there would be a nested class.
  Status PosixClass() {
    const size_t end = in_.find(":]", at_);
    if (Peek(1) != ':' || end == std::string_view::npos)
      return Unsupported("a class inside a class");
    std::string_view name = in_.substr(at_ + 2, end - at_ - 2);
    const bool negated = !name.empty() && name[0] == '^';
    if (negated) name.remove_prefix(1);
    if (name != "alpha" && name != "digit" && name != "space" &&
        name != "upper" && name != "lower") {
      return Unsupported("the POSIX class " + Quoted(name));
    }
    HX_RETURN_IF_ERROR(AppendProperty(name, negated));
    at_ = end + 2;
    return OkStatus();
  }

  Status AppendProperty(std::string_view name, bool negated) {
    const std::string folded = Fold(name);
    const auto* known = std::find_if(
        std::begin(kProperties), std::end(kProperties),
        [&](const PropertyName& row) { return row.onig == folded; });
    std::string spelling;
    if (known != std::end(kProperties)) {
      spelling = known->pcre2;
    } else if (folded.size() <= 2) {
      spelling = name;
    } else if (!std::all_of(folded.begin(), folded.end(), IsLetter)) {
      return Unsupported("the property " + Quoted(name));
    } else {
      spelling = fmt::format("sc:{}", name);
    }
    out_.append(fmt::format("\\{}{{{}}}", negated ? 'P' : 'p', spelling));
    return OkStatus();
  }

  // After "\p" or "\P".
  Status Property(bool negated) {
    if (Peek() != '{') return Unsupported("'\\p' without '{'");
    const size_t end = in_.find('}', at_);
    if (end == std::string_view::npos) return Ends("'\\p{'");
    std::string_view name = in_.substr(at_ + 1, end - at_ - 1);
    if (!name.empty() && name[0] == '^') {
      negated = !negated;
      name.remove_prefix(1);
    }
    at_ = end + 1;
    return AppendProperty(name, negated);
  }

  // After "\x" or "\u".
  Status CodePoint(char kind) {
    std::string digits;
    if (kind == 'x' && Peek() == '{') {
      const size_t end = in_.find('}', at_);
      if (end == std::string_view::npos) return Ends("'\\x{'");
      digits = in_.substr(at_ + 1, end - at_ - 1);
      at_ = end + 1;
    } else {
      const size_t wanted = kind == 'x' ? 2 : 4;
      while (digits.size() < wanted && IsHex(Peek())) digits.push_back(Take());
      if (kind == 'u' && digits.size() != wanted)
        return Unsupported("'\\u' without four digits");
      if (kind == 'x' && digits.size() == 2 && digits[0] >= '8')
        return Unsupported("'\\xHH' above 7F: a bare byte");
    }
    if (digits.empty() || digits.size() > 6 ||
        !std::all_of(digits.begin(), digits.end(), IsHex)) {
      return Unsupported("the code point " + Quoted(digits));
    }
    out_.append(fmt::format("\\x{{{}}}", digits));
    return OkStatus();
  }

  Status Escape(Place place) {
    ++at_;
    if (AtEnd()) return Ends("an escape");
    const char c = Take();
    switch (c) {
      case 's':
      case 'S':
        out_.append(c == 's' ? R"(\p{White_Space})" : R"(\P{White_Space})");
        return OkStatus();
      case 'd':
      case 'D':
        out_.append(c == 'd' ? R"(\p{Nd})" : R"(\P{Nd})");
        return OkStatus();
      case 'w':
      case 'W':
      case 'h':
      case 'H':
        return ClassEscape(c, place);
      case 'b':
      case 'B':
        return Boundary(c, place);
      case 'p':
      case 'P':
        return Property(c == 'P');
      case 'x':
      case 'u':
        return CodePoint(c);
      default:
        return OtherEscape(c, place);
    }
  }

  Status ClassEscape(char c, Place place) {
    const bool negated = c == 'W' || c == 'H';
    const std::string_view members = c == 'w' || c == 'W' ? kWord : "0-9A-Fa-f";
    if (place == Place::kOutside) {
      out_.append(fmt::format("[{}{}]", negated ? "^" : "", members));
      return OkStatus();
    }
    if (negated) return Unsupported(fmt::format("'\\{}' in a class", c));
    out_.append(members);
    return OkStatus();
  }

  Status Boundary(char c, Place place) {
    if (place == Place::kInClass)
      return Unsupported(fmt::format("'\\{}' in a class", c));
    constexpr std::string_view kForm =
        "(?:(?<=[{0}])(?{1}[{0}])|(?<![{0}])(?{2}[{0}]))";
    out_.append(c == 'b' ? fmt::format(kForm, kWord, "!", "=")
                         : fmt::format(kForm, kWord, "=", "!"));
    return OkStatus();
  }

  // Escapes that mean the same in both: control characters, anchors, back
  // references, and any escaped punctuation.
  Status OtherEscape(char c, Place place) {
    constexpr std::string_view kControls = "tnrfae";
    constexpr std::string_view kAnchors = "AZzG";
    const bool same = kControls.find(c) != std::string_view::npos ||
                      (place == Place::kOutside &&
                       (kAnchors.find(c) != std::string_view::npos ||
                        (c >= '1' && c <= '9')));
    if (c == 'v') {  // Oniguruma: U+000B alone
      out_.append("\\x{0B}");
      return OkStatus();
    }
    if (!same && (IsLetter(c) || IsDigit(c)))
      return Unsupported("the escape " + Quoted(std::string(1, c)));
    if (static_cast<unsigned char>(c) < 0x80) out_.push_back('\\');
    out_.push_back(c);
    return OkStatus();
  }

  std::string_view in_;
  size_t at_ = 0;
  std::string out_;
};

}  // namespace

Result<std::string> OnigToPcre2(std::string_view pattern) {
  if (!IsValidUtf8(pattern))
    return Error{ErrorCode::kBadInput, "the pattern is not valid UTF-8"};
  return Translator(pattern).Run();
}

}  // namespace hexllm
