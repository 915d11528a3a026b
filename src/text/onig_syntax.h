// Translates the regular expressions of tokenizer.json, written for Oniguruma's
// Ruby syntax, to PCRE2's. The two agree on most of what tokenizers use; this
// is the list of what they do not agree on:
//   \s \S        White_Space; PCRE2's \s adds U+180E          ->
//   \p{White_Space} \w \W \b \B  Alphabetic, M, Nd, Pc; PCRE2: L, N, "_" ->
//   classes, lookarounds \h \H        hexadecimal digits; PCRE2: horizontal
//   space  -> [0-9A-Fa-f] \p{Han}      the script; PCRE2: its script extensions
//   -> \p{sc:Han}
//   (?m)         "." matches line feeds too                   -> (?s)
//   \uHHHH, {,n}                                              -> \x{HHHH},
//   {0,n} [a&&b] [[a]b] x{1,2}+ and rarer constructs: kUnsupported
// "^" and "$" always match at line ends: compile the result with
// PCRE2_MULTILINE, PCRE2_UTF and PCRE2_UCP. Sources: Oniguruma doc/RE and
// doc/UNICODE_PROPERTIES, pcre2pattern(3) of PCRE2 10.42.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"

namespace hexllm {

// kUnsupported naming the construct that has no equal; kBadInput for a pattern
// that ends inside a construct or is not UTF-8. Other mistakes are left to the
// PCRE2 compiler.
Result<std::string> OnigToPcre2(std::string_view pattern);

}  // namespace hexllm
