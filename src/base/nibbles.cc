#include "base/nibbles.h"

#include <cstddef>

#include "base/check.h"

namespace hexllm {

void PackNibbles(std::span<const int32_t> codes, std::span<std::byte> packed) {
  HX_CHECK(codes.size() % 2 == 0 && codes.size() / 2 == packed.size());
  for (size_t i = 0; i < packed.size(); ++i) {
    const auto low = static_cast<uint32_t>(codes[2 * i]) & 15u;
    const auto high = static_cast<uint32_t>(codes[2 * i + 1]) & 15u;
    packed[i] = static_cast<std::byte>(low | high << 4);
  }
}

void UnpackNibbles(std::span<const std::byte> packed,
                   std::span<int32_t> codes) {
  HX_CHECK(codes.size() % 2 == 0 && codes.size() / 2 == packed.size());
  const auto extend = [](uint32_t nibble) {
    return static_cast<int32_t>(nibble ^ 8u) - 8;
  };
  for (size_t i = 0; i < packed.size(); ++i) {
    const auto byte = static_cast<uint32_t>(packed[i]);
    codes[2 * i] = extend(byte & 15u);
    codes[2 * i + 1] = extend(byte >> 4);
  }
}

}  // namespace hexllm
