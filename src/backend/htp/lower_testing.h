// Runs graphs with encodings on the HTP's simulator, tensor in, tensor out. For
// tests of htp/.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "backend/engine.h"
#include "backend/htp/lower.h"
#include "base/status.h"
#include "ir/interpret.h"
#include "tests/support/run_graph.h"

namespace hexllm::htp {

// `module` compiled into an artifact that is good for engines alone. Its
// vocabulary has `vocab` tokens.
struct HtpTarget {
  std::string lib_dir;
  std::string soc = "SM8750";
  uint32_t vocab = 0;
  std::optional<AttentionForm> attention = {};  // as in LowerOptions
  std::vector<std::string> absent_ops = {};
};
Result<std::shared_ptr<testing::TestArtifact>> LowerForHtp(
    const ir::Module& module, const HtpTarget& target);

// Runs graph `index` of `module` once.
Result<std::vector<ir::HostTensor>> RunOnHtp(
    const ir::Module& module, size_t index, const HtpTarget& target,
    std::span<const ir::HostTensor> inputs);

// The largest difference of two tensors of one encoding, in its steps; for f16
// in 2^-10 of the largest number (at least 1).
double MostSteps(const ir::Encoding& encoding, std::span<const float> found,
                 std::span<const float> wanted);

}  // namespace hexllm::htp
