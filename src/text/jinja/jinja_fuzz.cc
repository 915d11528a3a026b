// Attacks the template interpreter: the input is a template, up to a byte 0,
// and behind it JSON messages. Small limits keep each run short.
#include <cstdint>
#include <string>
#include <string_view>

#include "text/chat_template.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace hexllm;
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const size_t zero = input.find('\0');
  const auto chat = ChatTemplate::Parse(std::string(input.substr(0, zero)), {});
  if (!chat.ok()) return 0;
  Json messages = {{{"role", "user"}, {"content", "Hi"}}};
  if (zero != std::string_view::npos) {
    auto given = ParseJson(input.substr(zero + 1));
    if (given.ok()) messages = std::move(given).value();
  }
  ChatRenderOptions options;
  options.now = std::tm{};
  options.limits.max_steps = 100'000;
  options.limits.max_bytes = 16 << 20;
  options.limits.max_output_bytes = 1 << 20;
  const auto text = chat->Render(messages, options);
  if (text.ok() && text->size() > options.limits.max_output_bytes)
    __builtin_trap();
  return 0;
}
