// Parse survives any text; what it accepts is verified and prints to a fixed
// point.
#include <cstddef>
#include <cstdint>

#include "base/check.h"
#include "ir/text.h"
#include "ir/verify.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto module =
      hexllm::ir::Parse({reinterpret_cast<const char*>(data), size});
  if (!module.ok()) return 0;
  HX_CHECK(hexllm::ir::Verify(*module).ok());
  const std::string text = hexllm::ir::Print(*module);
  const auto again = hexllm::ir::Parse(text);
  HX_CHECK(again.ok());
  HX_CHECK(hexllm::ir::Print(*again) == text);
  return 0;
}
