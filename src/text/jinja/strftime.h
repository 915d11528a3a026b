// Dates as text, in the C locale whatever the process's locale is. Used by the
// function strftime_now.
#pragma once

#include <ctime>
#include <string>
#include <string_view>

#include "text/jinja/context.h"

namespace hexllm::jinja {

// datetime.strftime(format) for a time without zone: all conversions of C99 and
// the flags - and 0 of glibc (%-d). kUnsupported for a conversion it does not
// know. `time` must be normalized (tm_mon 0..11, tm_wday 0..6, ...).
Result<std::string> FormatTime(Context& context, std::string_view format,
                               const std::tm& time);

}  // namespace hexllm::jinja
