// IoSpecs in one line, for tests of the runtime and its fake engine.
#pragma once

#include <optional>
#include <utility>

#include "artifact/manifest.h"

namespace hexllm::testing {

inline artifact::IoSpec MakeIo(
    Role role, DType dtype, Shape shape = {},
    std::optional<artifact::IoEncoding> encoding = std::nullopt) {
  artifact::IoSpec spec;
  spec.role = std::move(role);
  spec.dtype = dtype;
  spec.shape = std::move(shape);
  spec.encoding = encoding;
  return spec;
}

inline artifact::IoSpec MakeMaskIo(int32_t index, DType dtype, Shape shape) {
  artifact::IoSpec spec =
      MakeIo({RoleKind::kMask, index}, dtype, std::move(shape));
  spec.mask_visible = 0x78;  // 'x'
  spec.mask_hidden = 0x2e;   // '.'
  return spec;
}

}  // namespace hexllm::testing
