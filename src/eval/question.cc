#include "eval/question.h"

#include <fmt/format.h>

#include <algorithm>

#include "eval/wikitext.h"
#include "text/utf8.h"

namespace hexllm {
namespace {

// `text` without the white space at its end.
std::string_view WithoutTail(std::string_view text) {
  size_t keep = 0;
  ForEachChar(text, [&](uint32_t c, size_t, size_t end) {
    if (!IsPythonSpace(c)) keep = end;
  });
  return text.substr(0, keep);
}

}  // namespace

Result<Request> PairEncoder::Split(std::string_view context,
                                   std::string_view rest) const {
  const Tokenizer& tokenizer = tokens_.tokenizer;
  Request request;
  const bool prefixed =
      tokens_.prefix && (tokens_.adds_prefix || context.empty());
  if (prefixed) request.ids.push_back(*tokens_.prefix);
  HX_ASSIGN_OR_RETURN(
      const std::vector<int32_t> whole,
      tokenizer.Encode(fmt::format("{}{}", context, rest), AddSpecial::kNo));
  HX_ASSIGN_OR_RETURN(const std::vector<int32_t> given,
                      tokenizer.Encode(context, AddSpecial::kNo));
  request.first_counted =
      static_cast<uint32_t>(request.ids.size() + given.size());
  request.ids.insert(request.ids.end(), whole.begin(), whole.end());
  // A text that begins with the prefix itself needs no second one.
  if (context.empty() && prefixed && !whole.empty() &&
      whole.front() == *tokens_.prefix)
    request.ids.erase(request.ids.begin());
  request.first_counted = std::max(request.first_counted, 1U);
  return request;
}

Result<Request> PairEncoder::Encode(std::string_view context,
                                    std::string_view continuation) {
  const std::string_view head = WithoutTail(context);
  const std::string rest =
      fmt::format("{}{}", context.substr(head.size()), continuation);
  HX_ASSIGN_OR_RETURN(Request request, Split(head, rest));
  if (request.ids.size() <= request.first_counted) {
    return Error{ErrorCode::kBadInput,
                 "expected a continuation of one token or more, found none"};
  }
  const size_t counted = request.ids.size() - request.first_counted;
  if (counted > window_) {
    return Error{
        ErrorCode::kBadInput,
        fmt::format("expected a continuation of {} tokens at most, the "
                    "window, found {}; give a larger --window",
                    window_, counted)};
  }
  const size_t most = size_t{window_} + 1;
  if (request.ids.size() > most) {
    const size_t over = request.ids.size() - most;
    request.ids.erase(request.ids.begin(),
                      request.ids.begin() + static_cast<std::ptrdiff_t>(over));
    request.first_counted -= static_cast<uint32_t>(over);
    ++cut_;
  }
  return request;
}

std::string FewShotContext(std::span<const ChoiceQuestion> questions,
                           size_t index, uint32_t shots) {
  std::string context;
  uint32_t used = 0;
  for (size_t i = 0; i < questions.size() && used < shots; ++i) {
    if (i == index) continue;
    const ChoiceQuestion& shot = questions[i];
    context += fmt::format("{} {}\n\n", shot.query, shot.choices[shot.label]);
    ++used;
  }
  return context + questions[index].query;
}

}  // namespace hexllm
