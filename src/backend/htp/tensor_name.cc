#include "backend/htp/tensor_name.h"

#include <algorithm>

namespace hexllm::htp {

std::string TensorNameOf(const Role& role) {
  std::string name = RoleToString(role);
  std::replace_if(
      name.begin(), name.end(), [](char c) { return c == '[' || c == ']'; },
      '_');
  return name;
}

}  // namespace hexllm::htp
