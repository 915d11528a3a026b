#include "text/regex.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <fmt/format.h>
#include <pcre2.h>

#include <algorithm>

#include "base/check.h"
#include "base/quote.h"
#include "text/onig_syntax.h"

namespace hexllm {
namespace {

// Steps of one match attempt. Patterns of real tokenizers take a few steps a
// character; a pattern that needs more than this backtracks without end.
constexpr uint64_t kStepsBase = 20'000;
constexpr uint64_t kStepsPerByte = 64;
constexpr uint32_t kHeapLimitKib = 256 * 1024;
constexpr size_t kJitStackStart = 32 * 1024;
constexpr size_t kJitStackLimit = 1024 * 1024;
constexpr size_t kMaxPatternBytes = 64 * 1024;

struct FreeCode {
  void operator()(pcre2_code* p) const { pcre2_code_free(p); }
};
struct FreeCompileContext {
  void operator()(pcre2_compile_context* p) const {
    pcre2_compile_context_free(p);
  }
};
struct FreeMatchData {
  void operator()(pcre2_match_data* p) const { pcre2_match_data_free(p); }
};
struct FreeMatchContext {
  void operator()(pcre2_match_context* p) const { pcre2_match_context_free(p); }
};
struct FreeJitStack {
  void operator()(pcre2_jit_stack* p) const { pcre2_jit_stack_free(p); }
};

PCRE2_SPTR Units(std::string_view text) {
  return reinterpret_cast<PCRE2_SPTR>(text.data() == nullptr ? ""
                                                             : text.data());
}

std::string MessageOf(int code) {
  PCRE2_UCHAR buffer[256];
  pcre2_get_error_message(code, buffer, sizeof(buffer));
  return reinterpret_cast<const char*>(buffer);
}

}  // namespace

struct RegexScratch::Impl {
  std::unique_ptr<pcre2_match_data, FreeMatchData> data{
      pcre2_match_data_create(1, nullptr)};
  std::unique_ptr<pcre2_match_context, FreeMatchContext> context{
      pcre2_match_context_create(nullptr)};
  std::unique_ptr<pcre2_jit_stack, FreeJitStack> stack{
      pcre2_jit_stack_create(kJitStackStart, kJitStackLimit, nullptr)};
};

RegexScratch::RegexScratch() : impl_(std::make_unique<Impl>()) {
  HX_CHECK(impl_->data != nullptr && impl_->context != nullptr);
  pcre2_set_heap_limit(impl_->context.get(), kHeapLimitKib);
  // No stack of its own (a build of PCRE2 without JIT): matching uses the
  // machine's.
  if (impl_->stack != nullptr)
    pcre2_jit_stack_assign(impl_->context.get(), nullptr, impl_->stack.get());
}
RegexScratch::RegexScratch(RegexScratch&&) noexcept = default;
RegexScratch& RegexScratch::operator=(RegexScratch&&) noexcept = default;
RegexScratch::~RegexScratch() = default;

struct Regex::Impl {
  std::string pattern;
  std::unique_ptr<pcre2_code, FreeCode> code;
};

Regex::Regex(std::unique_ptr<const Impl> impl) : impl_(std::move(impl)) {}
Regex::Regex(Regex&&) noexcept = default;
Regex& Regex::operator=(Regex&&) noexcept = default;
Regex::~Regex() = default;

Result<Regex> Regex::Compile(std::string_view pattern) {
  if (pattern.size() > kMaxPatternBytes) {
    return Error{
        ErrorCode::kUnsupported,
        fmt::format(
            "regular expression {}: {} bytes long, at most {} are supported",
            Quoted(pattern), pattern.size(), kMaxPatternBytes)};
  }
  auto translated = OnigToPcre2(pattern);
  if (!translated.ok()) {
    return std::move(translated)
        .error()
        .With(fmt::format("regular expression {}", Quoted(pattern)));
  }
  const std::unique_ptr<pcre2_compile_context, FreeCompileContext> context(
      pcre2_compile_context_create(nullptr));
  HX_CHECK(context != nullptr);
  pcre2_set_newline(context.get(), PCRE2_NEWLINE_LF);
  constexpr uint32_t kOptions =
      PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE | PCRE2_NEVER_BACKSLASH_C;
  int error = 0;
  PCRE2_SIZE where = 0;
  std::unique_ptr<pcre2_code, FreeCode> code(
      pcre2_compile(Units(*translated), translated->size(), kOptions, &error,
                    &where, context.get()));
  if (code == nullptr) {
    return Error{ErrorCode::kBadInput,
                 fmt::format("regular expression {}: {} (at byte {} of {})",
                             Quoted(pattern), MessageOf(error), where,
                             Quoted(*translated))};
  }
  // Without JIT the interpreter gives the same matches.
  pcre2_jit_compile(code.get(), PCRE2_JIT_COMPLETE);
  return Regex(std::make_unique<const Impl>(
      Impl{std::string(pattern), std::move(code)}));
}

Result<std::optional<Regex::Match>> Regex::Find(std::string_view subject,
                                                size_t from,
                                                RegexScratch& scratch) const {
  const uint64_t steps = kStepsBase + kStepsPerByte * (subject.size() - from);
  pcre2_match_context* const context = scratch.impl_->context.get();
  pcre2_set_match_limit(
      context, static_cast<uint32_t>(std::min<uint64_t>(steps, UINT32_MAX)));
  pcre2_match_data* const data = scratch.impl_->data.get();
  const auto match = [&](uint32_t options) {
    return pcre2_match(impl_->code.get(), Units(subject), subject.size(), from,
                       options | PCRE2_NO_UTF_CHECK, data, context);
  };
  int found = match(0);
  if (found == PCRE2_ERROR_JIT_STACKLIMIT) found = match(PCRE2_NO_JIT);
  if (found == PCRE2_ERROR_NOMATCH) return std::optional<Match>();
  if (found < 0) {
    return Error{ErrorCode::kBadInput,
                 fmt::format("regular expression {}: gave up on a text of {} "
                             "bytes at byte {}: {}",
                             Quoted(impl_->pattern), subject.size(), from,
                             MessageOf(found))};
  }
  const PCRE2_SIZE* const ends = pcre2_get_ovector_pointer(data);
  HX_CHECK(ends[0] >= from &&
           ends[1] >=
               ends[0]);  // \K, which could break this, is not let through
  return std::optional<Match>(Match{ends[0], ends[1]});
}

size_t Regex::NextChar(std::string_view subject, size_t at) {
  do {
    ++at;
  } while (at < subject.size() &&
           (static_cast<unsigned char>(subject[at]) & 0xC0) == 0x80);
  return at;
}

}  // namespace hexllm
