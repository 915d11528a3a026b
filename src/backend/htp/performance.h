// The clocks of the HTP: a vote that is raised while steps run. Used by the
// engine. What a mode asks for are the figures that ONNX Runtime's QNN provider
// and ExecuTorch send for modes of these names.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "backend/htp/qnn_session.h"
#include "base/status.h"

namespace hexllm::htp {

// The rows of a table; see its names.
enum class Performance : uint8_t {
  kDefault,  // no vote: the device decides
  kBurst,
  kSustainedHighPerformance,
  kHighPerformance,
  kBalanced,
  kLowBalanced,
  kHighPowerSaver,
  kPowerSaver,
  kLowPowerSaver,
  kExtremePowerSaver,
};

// "burst", "sustained_high_performance", ..., in the order of Performance.
std::span<const std::string_view> PerformanceNames();
// kUsage with suggestions when there is none of that name.
Result<Performance> FindPerformance(std::string_view name);

// Move-free. Lowered when destroyed.
class PowerVote {
 public:
  // Asks the device for an id to vote with. kUnsupported when the library has
  // no such functions, kEnvironment when the device refuses.
  static Result<std::unique_ptr<PowerVote>> Create(
      std::shared_ptr<const QnnSession> session, Performance mode);
  PowerVote(const PowerVote&) = delete;
  PowerVote& operator=(const PowerVote&) = delete;
  ~PowerVote();

  // kEnvironment when the device refuses the configuration.
  Status Raise();
  // Lets the device sleep. A refusal is ignored: the vote goes with its id.
  void Lower();

 private:
  PowerVote(std::shared_ptr<const QnnSession> session, Performance mode)
      : session_(std::move(session)), mode_(mode) {}
  Status Check(std::string_view call, uint64_t result) const;
  Status Send(Performance row) const;

  std::shared_ptr<const QnnSession> session_;
  Performance mode_;
  const abi::HtpInfrastructure* api_ = nullptr;
  uint32_t id_ = 0;
  bool has_id_ = false;
  bool raised_ = false;
};

}  // namespace hexllm::htp
