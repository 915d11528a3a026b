#include "backend/htp/qnn_library.h"

#include <fmt/format.h>

#include <iterator>

#include "backend/htp/qnn_log.h"
#include "base/quote.h"

namespace hexllm::htp {
namespace {

std::string VersionText(abi::Version version) {
  return fmt::format("{}.{}.{}", version.major, version.minor, version.patch);
}

bool Speaks(abi::Version version) {
  return version.major == kCoreMajor && version.minor >= kOldestCoreMinor;
}

// What the numbers mean that a user may meet; the library's own texts say
// little more than the name of a constant.
struct ErrorRow {
  uint64_t code;
  std::string_view text;
};
constexpr ErrorRow kErrors[] = {
    {1000, "not supported on this platform"},
    {1002, "the compiler gave up, or no memory"},
    {1003, "system"},
    {1004, "invalid argument"},
    {1006, "platform"},
    {1008, "incompatible binary"},
    {1009, "loading the binary"},
    {1100, "general"},
    {3110, "op validation failed"},
    {4005, "no such op"},
    {5003, "a graph of the context is not finalized"},
    {5004, "version of the binary"},
    {5005, "context from binary"},
    {6002, "no such graph"},
    {6003, "duplicate or bad graph name"},
    {6004, "bad tensor"},
    {6005, "bad op configuration"},
    {6007, "unconnected node"},
    {6020, "creating the graph"},
    {6021, "optimizing the graph"},
    {6022, "finalizing the graph"},
    {6023, "graph not finalized"},
    {6024, "graph finalized already"},
    {7002, "no such tensor"},
    {7003, "duplicate tensor name"},
    {7004, "bad tensor parameter"},
    {7005, "unsupported tensor parameter"},
    {8001, "bad memory handle"},
    {8002, "memory registered already"},
    {8003, "mapping memory"},
    {8004, "shape of the memory"},
    {8005, "kind of memory"},
    {13001, "bad power configuration"},
    {13002, "unsupported power configuration"},
    {13003, "no way to the device"},
    {14001, "bad device configuration"},
    {14002, "no such hardware"},
    {30010, "malformed context binary"},
};

bool IsSimulator([[maybe_unused]] const abi::Functions& api) {
#ifdef __x86_64__
  return api.property_has_capability(abi::kTensorMemoryHandles) != abi::kOk;
#else
  return false;
#endif
}

std::string_view ErrorMeaning(uint64_t code) {
  for (const ErrorRow& row : kErrors)
    if (row.code == code) return row.text;
  return {};
}

}  // namespace

Result<const abi::Provider*> ChooseProvider(
    std::span<const abi::Provider* const> providers) {
  std::string found;
  for (const abi::Provider* provider : providers) {
    if (provider == nullptr || provider->backend != abi::kBackendHtp) continue;
    if (Speaks(provider->core_version)) return provider;
    found = VersionText(provider->core_version);
  }
  if (found.empty()) {
    return Error{ErrorCode::kEnvironment,
                 fmt::format("none of its {} providers is for the HTP",
                             providers.size())};
  }
  return Error{
      ErrorCode::kUnsupported,
      fmt::format("it speaks QNN core API {}, but this needs {}.{} or a later "
                  "{}.x (tested with {}.{}); get the tested libraries with "
                  "scripts/setup-qnn",
                  found, kCoreMajor, kOldestCoreMinor, kCoreMajor, kCoreMajor,
                  kTestedCoreMinor)};
}

Result<std::shared_ptr<const QnnLibrary>> QnnLibrary::Open(
    const std::string& folder) {
  std::shared_ptr<QnnLibrary> library(new QnnLibrary);
  library->folder_ = folder;
  HX_ASSIGN_OR_RETURN(library->library_,
                      DynamicLibrary::Load(folder, kLibraryFile));
  Status resolved = library->Resolve();
  if (!resolved.ok()) {
    return std::move(resolved).error().With(
        Printable(library->library_.path()));
  }
  return std::shared_ptr<const QnnLibrary>(std::move(library));
}

Status QnnLibrary::Resolve() {
  const auto get_providers = reinterpret_cast<abi::GetProviders>(
      library_.Find("QnnInterface_getProviders"));
  if (get_providers == nullptr) {
    return Error{ErrorCode::kEnvironment,
                 "it lacks QnnInterface_getProviders: not a QNN library"};
  }
  const abi::Provider** list = nullptr;
  uint32_t count = 0;
  HX_RETURN_IF_ERROR(
      Check("QnnInterface_getProviders", get_providers(&list, &count)));
  if (list == nullptr) count = 0;
  HX_ASSIGN_OR_RETURN(const abi::Provider* provider,
                      ChooseProvider({list, count}));
  api_ = provider->functions;
  core_ = provider->core_version;
  backend_ = provider->backend_version;
  HX_RETURN_IF_ERROR(CheckFunctions());
  is_simulator_ = IsSimulator(api_);
  const char* build_id = nullptr;
  HX_RETURN_IF_ERROR(
      Check("backendGetBuildId", api_.backend_get_build_id(&build_id)));
  build_id_ = build_id == nullptr ? "" : Printable(build_id);
  return OkStatus();
}

Status QnnLibrary::CheckFunctions() const {
  const bool present[] = {
      api_.property_has_capability != nullptr,
      api_.backend_create != nullptr,
      api_.backend_get_build_id != nullptr,
      api_.backend_get_supported_operations != nullptr,
      api_.backend_validate_op_config != nullptr,
      api_.backend_free != nullptr,
      api_.context_create != nullptr,
      api_.context_get_binary_size != nullptr,
      api_.context_get_binary != nullptr,
      api_.context_create_from_binary != nullptr,
      api_.context_free != nullptr,
      api_.graph_create != nullptr,
      api_.graph_add_node != nullptr,
      api_.graph_finalize != nullptr,
      api_.graph_retrieve != nullptr,
      api_.graph_execute != nullptr,
      api_.tensor_create_graph_tensor != nullptr,
      api_.log_create != nullptr,
      api_.log_free != nullptr,
      api_.device_create != nullptr,
      api_.device_free != nullptr,
  };
  for (const bool there : present) {
    if (!there) {
      return Error{ErrorCode::kUnsupported,
                   fmt::format("its function table (core API {}) lacks a "
                               "function that is needed",
                               VersionText(core_))};
    }
  }
  return OkStatus();
}

std::string QnnLibrary::ErrorText(std::string_view call, uint64_t code) const {
  code &= 0xFFFF;
  const std::string_view meaning = ErrorMeaning(code);
  return fmt::format("QNN error {} from {}{}", code, call,
                     meaning.empty() ? "" : fmt::format(" ({})", meaning));
}

Status QnnLibrary::Check(std::string_view call, uint64_t result,
                         ErrorCode code) const {
  const std::string lines = TakeLogLines();
  if (result == abi::kOk) return OkStatus();
  std::string message = ErrorText(call, result);
  if (!lines.empty()) message += ": " + lines;
  return Error{code, std::move(message)};
}

std::string QnnLibrary::VersionNote() const {
  if (core_.minor <= kTestedCoreMinor) return "";
  return fmt::format(
      "{}: QNN core API {} is newer than what this was tested with ({}.{})",
      Printable(library_.path()), VersionText(core_), kCoreMajor,
      kTestedCoreMinor);
}

}  // namespace hexllm::htp
