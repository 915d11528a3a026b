#include "text/unicode.h"

#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <vector>

#include "base/check.h"
#include "text/utf8.h"

namespace hexllm {
namespace {

utf8proc_category_t Category(uint32_t code_point) {
  return utf8proc_category(static_cast<utf8proc_int32_t>(code_point));
}

utf8proc_propval_t CombiningClass(utf8proc_int32_t code_point) {
  return utf8proc_get_property(code_point)->combining_class;
}

int Options(NormalizationForm form) {
  switch (form) {
    case NormalizationForm::kNfc:
      return UTF8PROC_STABLE | UTF8PROC_COMPOSE;
    case NormalizationForm::kNfd:
      return UTF8PROC_STABLE | UTF8PROC_DECOMPOSE;
    case NormalizationForm::kNfkc:
      return UTF8PROC_STABLE | UTF8PROC_COMPAT | UTF8PROC_COMPOSE;
    case NormalizationForm::kNfkd:
      return UTF8PROC_STABLE | UTF8PROC_COMPAT | UTF8PROC_DECOMPOSE;
  }
  return 0;
}

// Below this code point every text is already in the form.
uint32_t FirstChangingChar(NormalizationForm form) {
  switch (form) {
    case NormalizationForm::kNfc:
      return 0x300;
    case NormalizationForm::kNfd:
      return 0xC0;
    case NormalizationForm::kNfkc:
    case NormalizationForm::kNfkd:
      return 0xA0;
  }
  return 0;
}

bool IsNormalizedAlready(std::string_view text, NormalizationForm form) {
  const uint32_t limit = FirstChangingChar(form);
  bool unchanged = true;
  ForEachChar(text,
              [&](uint32_t c, size_t, size_t) { unchanged &= c < limit; });
  return unchanged;
}

// The full decomposition of `text`, not yet in canonical order.
std::vector<utf8proc_int32_t> Decompose(std::string_view text, int options) {
  std::vector<utf8proc_int32_t> out;
  out.reserve(text.size());
  // The longest decomposition of Unicode has 18 characters (U+FDFA).
  std::array<utf8proc_int32_t, 32> buffer{};
  ForEachChar(text, [&](uint32_t c, size_t, size_t) {
    int boundary = 0;
    const utf8proc_ssize_t n = utf8proc_decompose_char(
        static_cast<utf8proc_int32_t>(c), buffer.data(),
        static_cast<utf8proc_ssize_t>(buffer.size()),
        static_cast<utf8proc_option_t>(options), &boundary);
    HX_CHECK(n >= 0 && static_cast<size_t>(n) <= buffer.size());
    out.insert(out.end(), buffer.begin(), buffer.begin() + n);
  });
  return out;
}

// Canonical order: each run of marks sorted by combining class. utf8proc's own
// sort is quadratic on hostile runs.
void ReorderMarks(std::vector<utf8proc_int32_t>& text) {
  for (size_t begin = 0; begin < text.size();) {
    if (CombiningClass(text[begin]) == 0) {
      ++begin;
      continue;
    }
    size_t end = begin + 1;
    while (end < text.size() && CombiningClass(text[end]) != 0) ++end;
    std::stable_sort(text.begin() + static_cast<std::ptrdiff_t>(begin),
                     text.begin() + static_cast<std::ptrdiff_t>(end),
                     [](utf8proc_int32_t a, utf8proc_int32_t b) {
                       return CombiningClass(a) < CombiningClass(b);
                     });
    begin = end;
  }
}

}  // namespace

bool IsWhiteSpace(uint32_t c) {
  if (c < 0x80) return c == ' ' || (c >= '\t' && c <= '\r');
  return c == 0x85 || c == 0xA0 || c == 0x1680 ||
         (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 ||
         c == 0x202F || c == 0x205F || c == 0x3000;
}

bool IsNumeric(uint32_t c) {
  if (c < 0x80) return c >= '0' && c <= '9';
  const auto category = Category(c);
  return category >= UTF8PROC_CATEGORY_ND && category <= UTF8PROC_CATEGORY_NO;
}

bool IsPunctuation(uint32_t c) {
  if (c < 0x80)
    return (c >= '!' && c <= '/') || (c >= ':' && c <= '@') ||
           (c >= '[' && c <= '`') || (c >= '{' && c <= '~');
  const auto category = Category(c);
  return category >= UTF8PROC_CATEGORY_PC && category <= UTF8PROC_CATEGORY_PO;
}

bool IsMark(uint32_t c) {
  if (c < 0x300) return false;
  const auto category = Category(c);
  return category >= UTF8PROC_CATEGORY_MN && category <= UTF8PROC_CATEGORY_ME;
}

bool IsWordChar(uint32_t c) {
  const auto category = Category(c);
  const bool letter_or_mark =
      category >= UTF8PROC_CATEGORY_LU && category <= UTF8PROC_CATEGORY_ME;
  const bool number =
      category == UTF8PROC_CATEGORY_ND || category == UTF8PROC_CATEGORY_NL;
  const bool circled_letter =
      (c >= 0x24B6 && c <= 0x24E9) || (c >= 0x1F130 && c <= 0x1F149) ||
      (c >= 0x1F150 && c <= 0x1F169) ||
      (c >= 0x1F170 && c <= 0x1F189);  // the symbols that are Alphabetic
  return letter_or_mark || number || circled_letter ||
         category == UTF8PROC_CATEGORY_PC || c == 0x200C || c == 0x200D;
}

std::string NormalizeUnicode(std::string_view text, NormalizationForm form) {
  if (IsNormalizedAlready(text, form)) return std::string(text);
  const int options = Options(form);
  // Decomposition is asked for without COMPOSE; composing is the last step.
  std::vector<utf8proc_int32_t> chars =
      Decompose(text, (options & ~UTF8PROC_COMPOSE) | UTF8PROC_DECOMPOSE);
  ReorderMarks(chars);
  auto length = static_cast<utf8proc_ssize_t>(chars.size());
  if ((options & UTF8PROC_COMPOSE) != 0) {
    length = utf8proc_normalize_utf32(chars.data(), length,
                                      static_cast<utf8proc_option_t>(options));
    HX_CHECK(length >= 0);
  }
  std::string out;
  out.reserve(text.size());
  for (utf8proc_ssize_t i = 0; i < length; ++i)
    AppendUtf8(static_cast<uint32_t>(chars[static_cast<size_t>(i)]), out);
  return out;
}

std::string ToLower(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  ForEachChar(text, [&](uint32_t c, size_t, size_t) {
    if (c == 0x130) {  // the only character whose full lower case has two: i
                       // and a dot above
      out.append("i\xCC\x87");
      return;
    }
    AppendUtf8(static_cast<uint32_t>(
                   utf8proc_tolower(static_cast<utf8proc_int32_t>(c))),
               out);
  });
  return out;
}

}  // namespace hexllm
