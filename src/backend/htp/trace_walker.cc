#include "backend/htp/trace_walker.h"

#include <fmt/format.h>

namespace hexllm::htp {

Status TraceWalker::Walk(std::string_view text) {
  path_.clear();
  if (Json::sax_parse(text, this)) return OkStatus();
  return Error{ErrorCode::kBadInput,
               fmt::format("JSON stops at byte {}", error_offset_)};
}

bool TraceWalker::Open(char bracket) {
  OnOpen(bracket);
  path_.emplace_back();
  return path_.size() <= kMaxJsonDepth;
}

bool TraceWalker::Close(char bracket) {
  path_.pop_back();
  OnClose(bracket);
  return true;
}

}  // namespace hexllm::htp
