// What fake_qnn.cc, a library that pretends to be a device's libQnnHtp.so,
// libQnnSystem.so and libcdsprpc.so at once, was asked for and shall do. Tests
// link it under the three names into a folder and load it as any other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace hexllm::testing {

struct FakeQnn {
  // A tensor in registered memory.
  struct Registration {
    std::string context;
    int fd = -1;
    uint64_t offset = 0;
    uint64_t allocation = 0;  // bytes
    uint64_t bytes = 0;       // by dimensions and type
  };

  // In order, with what they were given; names without their "Qnn_".
  std::vector<std::string> calls;
  // What is not freed yet, by handle ("context 1", "memory 5", "fd 3").
  std::map<std::string, Registration> live;
  // Calls that fail, by the name that begins their line, with their result.
  std::map<std::string, uint64_t> failures;
  // Runs a graph.
  std::function<void(const std::string& graph,
                     const std::vector<std::byte*>& inputs,
                     const std::vector<std::byte*>& outputs)>
      run;
};

// Found by this name. Forgets all that was, and counts handles from 1.
inline constexpr const char* kFakeQnnSymbol = "GetFakeQnn";
using GetFakeQnn = FakeQnn* (*)();

}  // namespace hexllm::testing
