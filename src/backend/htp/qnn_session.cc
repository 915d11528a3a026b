#include "backend/htp/qnn_session.h"

#include <fmt/format.h>

#include <utility>

#include "backend/htp/qnn_log.h"

namespace hexllm::htp {

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
                            .pair = {}};
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
    std::shared_ptr<const QnnSession> session, ByteSpan binary) {
  std::shared_ptr<QnnContext> context(new QnnContext(std::move(session)));
  const QnnSession& owner = context->session();
  if (binary.empty())
    return Error{ErrorCode::kBadInput, "the QNN context binary is empty"};
  const abi::Result result = owner.library().api().context_create_from_binary(
      owner.backend(), owner.device(), nullptr, binary.data(), binary.size(),
      &context->handle_, nullptr);
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

Result<std::vector<std::byte>> QnnContext::Serialize() const {
  const abi::Functions& api = library().api();
  uint64_t bytes = 0;
  HX_RETURN_IF_ERROR(library().Check(
      "contextGetBinarySize", api.context_get_binary_size(handle_, &bytes)));
  std::vector<std::byte> binary(bytes);
  uint64_t written = 0;
  HX_RETURN_IF_ERROR(library().Check(
      "contextGetBinary",
      api.context_get_binary(handle_, binary.data(), bytes, &written)));
  if (written > bytes) {
    return Error{
        ErrorCode::kEnvironment,
        fmt::format("contextGetBinary wrote {} bytes into {}", written, bytes)};
  }
  binary.resize(written);
  return binary;
}

QnnContext::~QnnContext() {
  if (handle_ != nullptr) library().api().context_free(handle_, nullptr);
}

}  // namespace hexllm::htp
