#include "backend/htp/performance.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <utility>

#include "backend/htp/qnn_device_abi.h"
#include "base/check.h"
#include "base/near_name.h"
#include "base/quote.h"

namespace hexllm::htp {
namespace {

using abi::Corner;

// In the order of Performance.
constexpr std::string_view kNames[] = {"default",
                                       "burst",
                                       "sustained_high_performance",
                                       "high_performance",
                                       "balanced",
                                       "low_balanced",
                                       "high_power_saver",
                                       "power_saver",
                                       "low_power_saver",
                                       "extreme_power_saver"};

struct Vote {
  Corner corner;  // of bus and core
  uint32_t sleep_latency_us;
  // Whether the device scales the clocks below the corner.
  uint32_t dcvs;
  // How long the host looks for an answer before it sleeps.
  uint32_t rpc_polling_us;
  abi::PowerMode mode = abi::PowerMode::kPerformance;
};
// In the order of Performance; the first is what a lowered vote asks for.
constexpr Vote kVotes[] = {
    {Corner::kSvs2, 2000, 1, 0, abi::PowerMode::kSaver},
    {Corner::kMax, 40, 0, 9999},
    {Corner::kTurbo, 100, 0, 9999},
    {Corner::kTurbo, 100, 0, 9999},
    {Corner::kNomPlus, 1000, 1, 0},
    {Corner::kNom, 1000, 1, 0},
    {Corner::kSvsPlus, 1000, 1, 0},
    {Corner::kSvs, 1000, 1, 0},
    {Corner::kSvs2, 1000, 1, 0},
    {Corner::kDisable, 1000, 1, 0, abi::PowerMode::kSaver},
};
static_assert(std::size(kNames) == std::size(kVotes));

constexpr uint32_t kRpcLatencyUs = 100;
// The first generation that takes a polling time.
constexpr uint32_t kPollingSince = 69;

abi::PowerConfig DcvsConfig(uint32_t id, const Vote& vote) {
  abi::PowerConfig config{.option = abi::PowerOption::kDcvs, .dcvs = {}};
  const abi::Corners corners{1, vote.corner, vote.corner, vote.corner};
  config.dcvs = {.id = id,
                 .set_enable = 1,
                 .enable = vote.dcvs,
                 .mode = vote.mode,
                 .set_sleep_latency = 1,
                 .sleep_latency = vote.sleep_latency_us,
                 .set_sleep_disable = 0,
                 .sleep_disable = 0,
                 .bus = corners,
                 .core = corners};
  return config;
}

abi::PowerConfig MicrosecondsConfig(abi::PowerOption option, uint32_t us) {
  abi::PowerConfig config{.option = option, .dcvs = {}};
  config.us = us;
  return config;
}

}  // namespace

std::span<const std::string_view> PerformanceNames() { return kNames; }

Result<Performance> FindPerformance(std::string_view name) {
  const auto* found = std::ranges::find(kNames, name);
  if (found != std::end(kNames))
    return static_cast<Performance>(found - std::begin(kNames));
  return Error{ErrorCode::kUsage,
               fmt::format("no HTP performance mode {}; {}", Quoted(name),
                           SuggestNames(name, kNames))};
}

Status PowerVote::Check(std::string_view call, uint64_t result) const {
  Status status = session_->library().Check(call, result);
  if (status.ok()) return status;
  return std::move(status).error().With(fmt::format(
      "the clocks cannot be set (--htp-performance {}; default leaves them to "
      "the device)",
      kNames[static_cast<size_t>(mode_)]));
}

Result<std::unique_ptr<PowerVote>> PowerVote::Create(
    std::shared_ptr<const QnnSession> session, Performance mode) {
  std::unique_ptr<PowerVote> vote(new PowerVote(std::move(session), mode));
  const abi::Functions& api = vote->session_->library().api();
  const bool there = api.device_get_infrastructure != nullptr;
  HX_RETURN_IF_ERROR(
      vote->Check("deviceGetInfrastructure",
                  there ? api.device_get_infrastructure(&vote->api_)
                        : abi::kErrorUnsupported));
  const abi::HtpInfrastructure* clocks = vote->api_;
  if (clocks == nullptr || clocks->type != 0 ||
      clocks->create_power_config_id == nullptr ||
      clocks->destroy_power_config_id == nullptr ||
      clocks->set_power_config == nullptr) {
    return Error{ErrorCode::kUnsupported,
                 "the QNN library has no functions for the clocks; use "
                 "--htp-performance default"};
  }
  // Device 0, core 0: phones have one of each.
  HX_RETURN_IF_ERROR(vote->Check(
      "createPowerConfigId", clocks->create_power_config_id(0, 0, &vote->id_)));
  vote->has_id_ = true;
  return vote;
}

PowerVote::~PowerVote() {
  if (!has_id_) return;
  Lower();
  api_->destroy_power_config_id(id_);
}

Status PowerVote::Send(Performance row) const {
  const Vote& vote = kVotes[static_cast<size_t>(row)];
  const bool raised = row != Performance::kDefault;
  const abi::PowerConfig configs[] = {
      DcvsConfig(id_, vote),
      MicrosecondsConfig(abi::PowerOption::kRpcLatency,
                         raised ? kRpcLatencyUs : 0),
      MicrosecondsConfig(abi::PowerOption::kRpcPolling, vote.rpc_polling_us)};
  const bool polls = session_->soc().htp >= kPollingSince;
  const abi::PowerConfig* list[] = {&configs[0], &configs[1],
                                    polls ? &configs[2] : nullptr, nullptr};
  return Check("setPowerConfig", api_->set_power_config(id_, list));
}

Status PowerVote::Raise() {
  HX_RETURN_IF_ERROR(Send(mode_));
  raised_ = true;
  return OkStatus();
}

void PowerVote::Lower() {
  if (raised_) (void)Send(Performance::kDefault);
  raised_ = false;
}

}  // namespace hexllm::htp
