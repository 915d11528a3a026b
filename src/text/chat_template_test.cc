#include "text/chat_template.h"

#include <gtest/gtest.h>

namespace hexllm {
namespace {

// The text of `source` for one user message, or the error.
std::string RenderOne(std::string source) {
  auto parsed = ChatTemplate::Parse(std::move(source), {});
  if (!parsed.ok()) return "error: " + parsed.error().message;
  const Json messages = {{{"role", "user"}, {"content", "Hi"}}};
  auto text = parsed->Render(messages, {});
  return text.ok() ? *text : "error: " + text.error().message;
}

TEST(ChatTemplate, Renders) {
  EXPECT_EQ(RenderOne("{% for m in messages %}{{ m.role }}: {{ m['content'] }}{% endfor %}"), "user: Hi");
}

}  // namespace
}  // namespace hexllm
