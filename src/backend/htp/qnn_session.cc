#include "backend/htp/qnn_session.h"

#include <fmt/format.h>

#include <utility>

#include "backend/htp/qnn_log.h"

namespace hexllm::htp {
namespace {

// What a device reads of a context binary at a time: the artifact is a mapped
// file, so as much of it is in memory at once, twice.
constexpr uint64_t kFileReadMib = 16;

}  // namespace

Result<std::shared_ptr<const QnnSession>> QnnSession::Open(
    std::shared_ptr<const QnnLibrary> library, const Soc& soc) {
  std::shared_ptr<QnnSession> session(new QnnSession);
  session->library_ = std::move(library);
  session->soc_ = soc;
  HX_RETURN_IF_ERROR(session->Start());
  HX_RETURN_IF_ERROR(session->ReadOps());
  return std::shared_ptr<const QnnSession>(std::move(session));
}

Status QnnSession::Start() {
  const abi::Functions& api = library_->api();
  // Without a log handle the library prints.
  HX_RETURN_IF_ERROR(library_->Check(
      "logCreate",
      api.log_create(CollectLogLine, abi::LogLevel::kError, &log_)));
  HX_RETURN_IF_ERROR(library_->Check(
      "backendCreate", api.backend_create(log_, nullptr, &backend_)));
  const abi::HtpDeviceConfig device{.soc = soc_.qnn_id,
                                    .soc_again = soc_.qnn_id};
  const abi::Config config{.custom = &device};
  const abi::Config* configs[] = {&config, nullptr};
  Status made = library_->Check("deviceCreate",
                                api.device_create(log_, configs, &device_),
                                ErrorCode::kUnsupported);
  if (!made.ok()) {
    return std::move(made).error().With(
        fmt::format("the QNN library {} does not take SoC {} (id {})",
                    library_->build_id(), soc_.name, soc_.qnn_id));
  }
  // The library crashes when it is given no device.
  if (device_ == nullptr)
    return Error{ErrorCode::kEnvironment, "deviceCreate gave no device"};
  return OkStatus();
}

Status QnnSession::ReadOps() {
  uint32_t count = 0;
  const abi::OperationName* list = nullptr;
  HX_RETURN_IF_ERROR(
      library_->Check("backendGetSupportedOperations",
                      library_->api().backend_get_supported_operations(
                          backend_, &count, &list)));
  for (uint32_t i = 0; list != nullptr && i < count; ++i) {
    if (list[i].name != nullptr && list[i].package != nullptr &&
        std::string_view(list[i].package) == abi::kPackage) {
      ops_.emplace(list[i].name);
    }
  }
  return OkStatus();
}

QnnSession::~QnnSession() {
  const abi::Functions& api = library_->api();
  if (device_ != nullptr) api.device_free(device_);
  if (backend_ != nullptr) api.backend_free(backend_);
  if (log_ != nullptr) api.log_free(log_);
}

Result<std::shared_ptr<QnnContext>> QnnContext::Create(
    std::shared_ptr<const QnnSession> session, WeightSharing sharing) {
  if (sharing == WeightSharing::kOn) {
    HX_RETURN_IF_ERROR(RequireFeature(session->soc(), Feature::kWeightSharing));
  }
  std::shared_ptr<QnnContext> context(new QnnContext(std::move(session)));
  abi::HtpContextConfig htp{.option = abi::HtpContextOption::kWeightSharing,
                            .group = {}};
  htp.boolean = 1;
  const abi::Config config{.custom = &htp};
  const abi::Config* configs[] = {&config, nullptr};
  const QnnSession& owner = context->session();
  HX_RETURN_IF_ERROR(owner.library().Check(
      "contextCreate", owner.library().api().context_create(
                           owner.backend(), owner.device(),
                           sharing == WeightSharing::kOn ? configs : nullptr,
                           &context->handle_)));
  return context;
}

Result<std::shared_ptr<QnnContext>> QnnContext::FromBinary(
    std::shared_ptr<const QnnSession> session, ByteSpan binary,
    ContextLoad load) {
  std::shared_ptr<QnnContext> context(new QnnContext(std::move(session)));
  const QnnSession& owner = context->session();
  if (binary.empty())
    return Error{ErrorCode::kBadInput, "the QNN context binary is empty"};
  context->spill_fill_owner_ = std::move(load.spill_fill_owner);
  const QnnContext* group = context->spill_fill_owner_.get();
  abi::HtpContextConfig budget{.option = abi::HtpContextOption::kFileReadBudget,
                               .group = {}};
  budget.mib = kFileReadMib;
  const abi::HtpContextConfig spill{
      .option = abi::HtpContextOption::kSpillFillGroup,
      .group = {.first = group == nullptr ? nullptr : group->handle(),
                .bytes = load.spill_fill_bytes}};
  const abi::Config custom[] = {{.custom = &budget}, {.custom = &spill}};
  const abi::Config* configs[] = {
      &custom[0], load.spill_fill_bytes > 0 ? &custom[1] : nullptr, nullptr};
  const abi::Result result = owner.library().api().context_create_from_binary(
      owner.backend(), owner.device(),
      owner.library().is_simulator() ? nullptr : configs, binary.data(),
      binary.size(), &context->handle_, nullptr);
  const bool unsupported = (result & 0xFFFF) == abi::kErrorUnsupported;
  Status made = owner.library().Check(
      "contextCreateFromBinary", result,
      unsupported ? ErrorCode::kUnsupported : ErrorCode::kBadInput);
  if (!made.ok()) {
    return std::move(made).error().With(
        unsupported ? "QNN context binary (with shared weights it loads on a "
                      "device only)"
                    : "QNN context binary");
  }
  return context;
}

Result<uint64_t> QnnContext::SerializeInto(const Allocate& allocate) const {
  const abi::Functions& api = library().api();
  uint64_t bytes = 0;
  HX_RETURN_IF_ERROR(library().Check(
      "contextGetBinarySize", api.context_get_binary_size(handle_, &bytes)));
  HX_ASSIGN_OR_RETURN(const std::span<std::byte> binary, allocate(bytes));
  HX_CHECK(binary.size() == bytes);
  uint64_t written = 0;
  HX_RETURN_IF_ERROR(library().Check(
      "contextGetBinary",
      api.context_get_binary(handle_, binary.data(), bytes, &written)));
  if (written <= bytes) return written;
  return Error{
      ErrorCode::kEnvironment,
      fmt::format("contextGetBinary wrote {} bytes into {}", written, bytes)};
}

Result<std::vector<std::byte>> QnnContext::Serialize() const {
  std::vector<std::byte> binary;
  HX_ASSIGN_OR_RETURN(
      const uint64_t written,
      SerializeInto([&](uint64_t bytes) -> Result<std::span<std::byte>> {
        binary.resize(bytes);
        return std::span(binary);
      }));
  binary.resize(written);
  return binary;
}

QnnContext::~QnnContext() {
  if (handle_ != nullptr) library().api().context_free(handle_, nullptr);
}

}  // namespace hexllm::htp
