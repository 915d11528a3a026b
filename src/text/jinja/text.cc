#include "text/jinja/text.h"

#include <utf8proc.h>

#include <algorithm>
#include <iterator>

#include "text/jinja/special_casing.h"
#include "text/utf8.h"

namespace hexllm::jinja {
namespace {

constexpr uint32_t kCapitalSigma = 0x3A3;
constexpr uint32_t kSmallSigma = 0x3C3;
constexpr uint32_t kFinalSigma = 0x3C2;
constexpr size_t kSigmaWindow = 64;  // bytes

utf8proc_int32_t Signed(uint32_t c) { return static_cast<utf8proc_int32_t>(c); }

utf8proc_category_t Category(uint32_t c) {
  return utf8proc_category(Signed(c));
}

bool IsTitle(uint32_t c) { return Category(c) == UTF8PROC_CATEGORY_LT; }
bool IsUpper(uint32_t c) { return utf8proc_isupper(Signed(c)) != 0; }
bool IsLower(uint32_t c) { return utf8proc_islower(Signed(c)) != 0; }
bool IsCased(uint32_t c) { return IsUpper(c) || IsLower(c) || IsTitle(c); }

// Characters that are skipped when looking for the letters around a sigma.
bool IsCaseIgnorable(uint32_t c) {
  constexpr uint32_t kMidWord[] = {'\'',   '.',    ':',    '^',   '`',
                                   0xA8,   0xAF,   0xB4,   0xB7,  0xB8,
                                   0x2018, 0x2019, 0x2024, 0x2027};
  if (std::find(std::begin(kMidWord), std::end(kMidWord), c) !=
      std::end(kMidWord))
    return true;
  switch (Category(c)) {
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_ME:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_SK:
      return true;
    default:
      return false;
  }
}

struct Range {
  uint32_t first;
  uint32_t last;
};

// Characters with the property Numeric_Type=Digit, apart from the decimal
// digits: superscripts, circled digits, ...
constexpr Range kOtherDigits[] = {
    {0xB2, 0xB3},       {0xB9, 0xB9},       {0x1369, 0x1371},
    {0x19DA, 0x19DA},   {0x2070, 0x2070},   {0x2074, 0x2079},
    {0x2080, 0x2089},   {0x2460, 0x2468},   {0x2474, 0x247C},
    {0x2488, 0x2490},   {0x24EA, 0x24EA},   {0x24F5, 0x24FD},
    {0x24FF, 0x24FF},   {0x2776, 0x277E},   {0x2780, 0x2788},
    {0x278A, 0x2792},   {0x10A40, 0x10A43}, {0x10E60, 0x10E68},
    {0x11052, 0x1105A}, {0x1F100, 0x1F10A}};

// Letters that stand for numbers (Numeric_Type without the category N).
constexpr Range kNumericLetters[] = {
    {0x3405, 0x3405},   {0x3483, 0x3483},   {0x382A, 0x382A},
    {0x3B4D, 0x3B4D},   {0x4E00, 0x4E00},   {0x4E03, 0x4E03},
    {0x4E07, 0x4E07},   {0x4E09, 0x4E09},   {0x4E5D, 0x4E5D},
    {0x4E8C, 0x4E8C},   {0x4E94, 0x4E94},   {0x4E96, 0x4E96},
    {0x4EBF, 0x4EC0},   {0x4EDF, 0x4EDF},   {0x4EE8, 0x4EE8},
    {0x4F0D, 0x4F0D},   {0x4F70, 0x4F70},   {0x5104, 0x5104},
    {0x5146, 0x5146},   {0x5169, 0x5169},   {0x516B, 0x516B},
    {0x516D, 0x516D},   {0x5341, 0x5341},   {0x5343, 0x5345},
    {0x534C, 0x534C},   {0x53C1, 0x53C4},   {0x56DB, 0x56DB},
    {0x58F1, 0x58F1},   {0x58F9, 0x58F9},   {0x5E7A, 0x5E7A},
    {0x5EFE, 0x5EFF},   {0x5F0C, 0x5F0E},   {0x5F10, 0x5F10},
    {0x62FE, 0x62FE},   {0x634C, 0x634C},   {0x67D2, 0x67D2},
    {0x6F06, 0x6F06},   {0x7396, 0x7396},   {0x767E, 0x767E},
    {0x8086, 0x8086},   {0x842C, 0x842C},   {0x8CAE, 0x8CAE},
    {0x8CB3, 0x8CB3},   {0x8D30, 0x8D30},   {0x9621, 0x9621},
    {0x9646, 0x9646},   {0x964C, 0x964C},   {0x9678, 0x9678},
    {0x96F6, 0x96F6},   {0xF96B, 0xF96B},   {0xF973, 0xF973},
    {0xF978, 0xF978},   {0xF9B2, 0xF9B2},   {0xF9D1, 0xF9D1},
    {0xF9D3, 0xF9D3},   {0xF9FD, 0xF9FD},   {0x20001, 0x20001},
    {0x20064, 0x20064}, {0x200E2, 0x200E2}, {0x20121, 0x20121},
    {0x2092A, 0x2092A}, {0x20983, 0x20983}, {0x2098C, 0x2098C},
    {0x2099C, 0x2099C}, {0x20AEA, 0x20AEA}, {0x20AFD, 0x20AFD},
    {0x20B19, 0x20B19}, {0x22390, 0x22390}, {0x22998, 0x22998},
    {0x23B1B, 0x23B1B}, {0x2626D, 0x2626D}, {0x2F890, 0x2F890}};

template <size_t kCount>
bool IsInRanges(const Range (&ranges)[kCount], uint32_t c) {
  return std::any_of(
      std::begin(ranges), std::end(ranges),
      [c](const Range& range) { return c >= range.first && c <= range.last; });
}

void AppendSequence(const uint32_t (&sequence)[3], std::string& out) {
  for (const uint32_t c : sequence) {
    if (c != 0) AppendUtf8(c, out);
  }
}

void AppendUpper(uint32_t c, std::string& out) {
  if (const SpecialCasing* special = FindSpecialCasing(c))
    return AppendSequence(special->upper, out);
  AppendUtf8(static_cast<uint32_t>(utf8proc_toupper(Signed(c))), out);
}

void AppendTitle(uint32_t c, std::string& out) {
  if (const SpecialCasing* special = FindSpecialCasing(c))
    return AppendSequence(special->title, out);
  AppendUtf8(static_cast<uint32_t>(utf8proc_totitle(Signed(c))), out);
}

// True when the sigma at [begin, end) of `text` ends a word: a letter stands
// before it and none behind it.
bool IsFinalSigma(std::string_view text, size_t begin, size_t end) {
  uint32_t before = 0;
  ForEachChar(text.substr(0, begin), [&](uint32_t c, size_t, size_t) {
    if (!IsCaseIgnorable(c)) before = c;
  });
  if (!IsCased(before)) return false;
  while (end < text.size()) {
    const uint32_t c = NextCodePoint(text, end);
    if (!IsCaseIgnorable(c)) return !IsCased(c);
  }
  return true;
}

// Appends the lower case of the character at [begin, end) of `text`.
void AppendLower(std::string_view text, size_t begin, size_t end,
                 std::string& out) {
  size_t pos = begin;
  const uint32_t c = NextCodePoint(text, pos);
  if (c == 0x130) {  // capital I with dot above
    out += "i\xCC\x87";
  } else if (c == kCapitalSigma) {
    // Looking at a few characters on each side bounds the work.
    const size_t from = begin > kSigmaWindow ? begin - kSigmaWindow : 0;
    size_t aligned = from;
    while (aligned < begin &&
           (static_cast<unsigned char>(text[aligned]) & 0xC0) == 0x80)
      ++aligned;
    size_t until = std::min(text.size(), end + kSigmaWindow);
    while (until < text.size() &&
           (static_cast<unsigned char>(text[until]) & 0xC0) == 0x80)
      ++until;
    const bool is_final = IsFinalSigma(text.substr(aligned, until - aligned),
                                       begin - aligned, end - aligned);
    AppendUtf8(is_final ? kFinalSigma : kSmallSigma, out);
  } else {
    AppendUtf8(static_cast<uint32_t>(utf8proc_tolower(Signed(c))), out);
  }
}

bool HasChar(std::string_view chars, uint32_t c) {
  bool found = false;
  ForEachChar(chars,
              [&](uint32_t other, size_t, size_t) { found |= other == c; });
  return found;
}

// Byte offset of the last code point of text[0, end).
size_t PreviousOffset(std::string_view text, size_t end) {
  do {
    --end;
  } while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80);
  return end;
}

}  // namespace

uint32_t NextCodePoint(std::string_view text, size_t& pos) {
  const auto lead = static_cast<unsigned char>(text[pos]);
  if (lead < 0x80) {
    ++pos;
    return lead;
  }
  const Utf8Char c = DecodeUtf8(text, pos);
  pos += c.bytes;
  return c.code_point;
}

size_t CodePointCount(std::string_view text) {
  return static_cast<size_t>(std::count_if(
      text.begin(), text.end(),
      [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

size_t CodePointOffset(std::string_view text, size_t index) {
  size_t pos = 0;
  while (index-- > 0 && pos < text.size()) NextCodePoint(text, pos);
  return pos;
}

std::vector<size_t> CodePointOffsets(std::string_view text) {
  std::vector<size_t> offsets;
  offsets.reserve(text.size() + 1);
  ForEachChar(
      text, [&](uint32_t, size_t begin, size_t) { offsets.push_back(begin); });
  offsets.push_back(text.size());
  return offsets;
}

bool IsSpace(uint32_t c) {
  if (c < 0x80)
    return c == ' ' || (c >= 9 && c <= 13) || (c >= 0x1C && c <= 0x1F);
  return c == 0x85 || c == 0xA0 || c == 0x1680 ||
         (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 ||
         c == 0x202F || c == 0x205F || c == 0x3000;
}

std::string_view Strip(std::string_view text, StripEnds ends,
                       std::optional<std::string_view> chars) {
  const auto drops = [&chars](uint32_t c) {
    return chars ? HasChar(*chars, c) : IsSpace(c);
  };
  while (ends != StripEnds::kRight && !text.empty()) {
    size_t next = 0;
    if (!drops(NextCodePoint(text, next))) break;
    text.remove_prefix(next);
  }
  while (ends != StripEnds::kLeft && !text.empty()) {
    const size_t last = PreviousOffset(text, text.size());
    size_t pos = last;
    if (!drops(NextCodePoint(text, pos))) break;
    text = text.substr(0, last);
  }
  return text;
}

size_t LineBreakLength(std::string_view text, size_t pos) {
  if (text.substr(pos, 2) == "\r\n") return 2;
  size_t end = pos;
  const uint32_t c = NextCodePoint(text, end);
  const bool is_break = (c >= 0x0A && c <= 0x0D) || (c >= 0x1C && c <= 0x1E) ||
                        c == 0x85 || c == 0x2028 || c == 0x2029;
  return is_break ? end - pos : 0;
}

std::string UpperCase(std::string_view text) {
  std::string out;
  ForEachChar(text, [&](uint32_t c, size_t, size_t) { AppendUpper(c, out); });
  return out;
}

std::string LowerCase(std::string_view text) {
  std::string out;
  ForEachChar(text, [&](uint32_t, size_t begin, size_t end) {
    AppendLower(text, begin, end, out);
  });
  return out;
}

std::string TitleCase(std::string_view text) {
  std::string out;
  bool inside = false;  // of a word: after a letter with case
  ForEachChar(text, [&](uint32_t c, size_t begin, size_t end) {
    if (inside) {
      AppendLower(text, begin, end, out);
    } else {
      AppendTitle(c, out);
    }
    inside = IsCased(c);
  });
  return out;
}

std::string Capitalize(std::string_view text) {
  std::string out;
  ForEachChar(text, [&](uint32_t c, size_t begin, size_t end) {
    if (begin == 0) {
      AppendTitle(c, out);
    } else {
      AppendLower(text, begin, end, out);
    }
  });
  return out;
}

std::string SwapCase(std::string_view text) {
  std::string out;
  ForEachChar(text, [&](uint32_t c, size_t begin, size_t end) {
    if (IsUpper(c)) {
      AppendLower(text, begin, end, out);
    } else if (IsLower(c)) {
      AppendUpper(c, out);
    } else {
      AppendUtf8(c, out);
    }
  });
  return out;
}

bool IsAllUpper(std::string_view text) {
  bool any = false;
  bool other = false;
  ForEachChar(text, [&](uint32_t c, size_t, size_t) {
    any |= IsUpper(c);
    other |= IsLower(c) || IsTitle(c);
  });
  return any && !other;
}

bool IsAllLower(std::string_view text) {
  bool any = false;
  bool other = false;
  ForEachChar(text, [&](uint32_t c, size_t, size_t) {
    any |= IsLower(c);
    other |= IsUpper(c) || IsTitle(c);
  });
  return any && !other;
}

bool IsPrintable(uint32_t c) {
  if (c == ' ') return true;
  switch (Category(c)) {
    case UTF8PROC_CATEGORY_CC:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_CS:
    case UTF8PROC_CATEGORY_CO:
    case UTF8PROC_CATEGORY_CN:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP:
    case UTF8PROC_CATEGORY_ZS:
      return false;
    default:
      return true;
  }
}

bool IsAlpha(uint32_t c) {
  const utf8proc_category_t category = Category(c);
  return category >= UTF8PROC_CATEGORY_LU && category <= UTF8PROC_CATEGORY_LO;
}

bool IsDecimal(uint32_t c) { return Category(c) == UTF8PROC_CATEGORY_ND; }

bool IsDigit(uint32_t c) { return IsDecimal(c) || IsInRanges(kOtherDigits, c); }

bool IsNumericChar(uint32_t c) {
  const utf8proc_category_t category = Category(c);
  return (category >= UTF8PROC_CATEGORY_ND &&
          category <= UTF8PROC_CATEGORY_NO) ||
         IsInRanges(kNumericLetters, c);
}

bool IsAlnum(uint32_t c) { return IsAlpha(c) || IsNumericChar(c); }

}  // namespace hexllm::jinja
