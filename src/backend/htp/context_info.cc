#include "backend/htp/context_info.h"

#include <fmt/format.h>

#include <utility>

#include "backend/htp/qnn_log.h"
#include "backend/htp/soc_table.h"
#include "base/quote.h"

namespace hexllm::htp {
namespace {

constexpr const char* kFileName = "libQnnSystem.so";
constexpr uint32_t kApiMajor = 1;
constexpr uint32_t kMaxTensors = 1U << 16;
constexpr uint32_t kMaxGraphs = 1U << 12;

Error Damaged(const std::string& what) {
  return {ErrorCode::kBadInput, "QNN context binary: " + what};
}

// An open reader of the library; what it tells lives as long.
class Reader {
 public:
  explicit Reader(const abi::SystemFunctions& api) : api_(api) {}
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;
  ~Reader() {
    if (handle_ != nullptr) api_.context_free(handle_);
    TakeLogLines();
  }

  Result<const abi::BinaryInfo*> Read(ByteSpan binary) {
    abi::Result result = api_.context_create(&handle_);
    if (result != abi::kOk) {
      return Error{ErrorCode::kEnvironment,
                   fmt::format("QNN error {} from systemContextCreate",
                               result & 0xFFFF)};
    }
    const abi::BinaryInfo* info = nullptr;
    result =
        api_.context_get_metadata(handle_, binary.data(), binary.size(), &info);
    if (result != abi::kOk || info == nullptr) {
      return Damaged(fmt::format(
          "QNN error {} from systemContextGetMetaData: damaged, or written by "
          "a later version",
          result & 0xFFFF));
    }
    return info;
  }

 private:
  const abi::SystemFunctions& api_;
  abi::Handle handle_ = nullptr;
};

struct RawTensors {
  const abi::Tensor* first;
  uint32_t count;
};

Result<std::vector<TensorInfo>> ReadTensors(RawTensors raw) {
  if (raw.count > kMaxTensors || (raw.count > 0 && raw.first == nullptr))
    return Damaged(fmt::format("a graph with {} tensors", raw.count));
  std::vector<TensorInfo> tensors;
  for (uint32_t i = 0; i < raw.count; ++i) {
    HX_ASSIGN_OR_RETURN(TensorInfo tensor, ReadTensor(raw.first[i]));
    tensors.push_back(std::move(tensor));
  }
  return tensors;
}

Result<ContextGraph> ReadGraph(const abi::BinaryGraph& raw) {
  if (raw.version < 1 || raw.version > 3 || raw.graph.name == nullptr)
    return Damaged(fmt::format("a graph of version {}", raw.version));
  ContextGraph graph;
  graph.info.name = raw.graph.name;
  HX_ASSIGN_OR_RETURN(graph.info.inputs,
                      ReadTensors({raw.graph.inputs, raw.graph.input_count}));
  HX_ASSIGN_OR_RETURN(graph.info.outputs,
                      ReadTensors({raw.graph.outputs, raw.graph.output_count}));
  if (raw.version == 3 && raw.graph.blob != nullptr &&
      raw.graph.blob_bytes >= sizeof(abi::HtpGraphBlob)) {
    const auto& blob = *static_cast<const abi::HtpGraphBlob*>(raw.graph.blob);
    graph.vtcm_bytes = blob.vtcm_bytes;
    graph.optimization = blob.optimization;
    graph.spill_fill_bytes = blob.spill_fill_bytes;
  }
  return graph;
}

Result<ContextInfo> ReadInfo(const abi::BinaryInfo& raw) {
  if (raw.version != 3) {
    return Error{ErrorCode::kUnsupported,
                 fmt::format("QNN context binary: description of version {}, "
                             "but only 3 (QAIRT 2.43 and later) is read",
                             raw.version)};
  }
  const abi::BinaryInfoV3& from = raw.v3;
  if (from.backend != abi::kBackendHtp)
    return Damaged(fmt::format("it is for QNN backend {}, not for the HTP ({})",
                               from.backend, abi::kBackendHtp));
  if (from.graph_count > kMaxGraphs ||
      (from.graph_count > 0 && from.graphs == nullptr))
    return Damaged(fmt::format("{} graphs", from.graph_count));
  ContextInfo info;
  info.build_id = from.build_id == nullptr ? "" : from.build_id;
  info.core_version = from.core_version;
  info.backend_version = from.backend_version;
  if (from.soc != 0) info.soc_id = from.soc;
  if (from.metadata != nullptr &&
      from.metadata_bytes >= sizeof(abi::HtpContextBlob))
    info.htp = static_cast<const abi::HtpContextBlob*>(from.metadata)->arch;
  for (uint32_t i = 0; i < from.graph_count; ++i) {
    HX_ASSIGN_OR_RETURN(ContextGraph graph, ReadGraph(from.graphs[i]));
    info.graphs.push_back(std::move(graph));
  }
  return info;
}

std::string TensorLine(std::string_view direction, const TensorInfo& tensor) {
  std::string line =
      fmt::format("  {} {}", direction, DescribeTensor(tensor.spec));
  if (tensor.spec.encoding) {
    line +=
        fmt::format(" scale {} zero point {}", tensor.spec.encoding->scales[0],
                    tensor.spec.encoding->zero_points[0]);
  }
  return line + "\n";
}

}  // namespace

Result<std::shared_ptr<const QnnSystemLibrary>> QnnSystemLibrary::Open(
    const std::string& folder) {
  std::shared_ptr<QnnSystemLibrary> library(new QnnSystemLibrary);
  HX_ASSIGN_OR_RETURN(library->library_,
                      DynamicLibrary::Load(folder, kFileName));
  const std::string path = Printable(library->library_.path());
  const auto get_providers = reinterpret_cast<abi::GetSystemProviders>(
      library->library_.Find("QnnSystemInterface_getProviders"));
  const abi::SystemProvider** list = nullptr;
  uint32_t count = 0;
  if (get_providers == nullptr || get_providers(&list, &count) != abi::kOk ||
      list == nullptr || count == 0 || list[0] == nullptr) {
    return Error{ErrorCode::kEnvironment,
                 path + ": it offers no interface: not a QNN system library"};
  }
  const abi::SystemProvider& provider = *list[0];
  const abi::SystemFunctions& api = provider.functions;
  if (provider.version.major != kApiMajor || api.context_create == nullptr ||
      api.context_get_metadata == nullptr || api.context_free == nullptr) {
    return Error{ErrorCode::kUnsupported,
                 fmt::format("{}: it speaks QNN system API {}.{}, but this "
                             "needs {}.x (tested with 1.15); get the tested "
                             "libraries with scripts/setup-qnn",
                             path, provider.version.major,
                             provider.version.minor, kApiMajor)};
  }
  library->api_ = api;
  return std::shared_ptr<const QnnSystemLibrary>(std::move(library));
}

Result<ContextInfo> QnnSystemLibrary::Read(ByteSpan binary) const {
  if (binary.empty()) return Damaged("it is empty");
  Reader reader(api_);
  HX_ASSIGN_OR_RETURN(const abi::BinaryInfo* info, reader.Read(binary));
  return ReadInfo(*info);
}

std::string DescribeContext(const ContextInfo& info) {
  std::string text = "QNN context binary for ";
  const Soc* soc = info.soc_id ? FindSocById(*info.soc_id) : nullptr;
  if (soc != nullptr) {
    text += soc->name;
  } else {
    text += info.soc_id ? fmt::format("SoC {}", *info.soc_id) : "any SoC";
  }
  if (info.htp) text += fmt::format(" (HTP v{})", *info.htp);
  text += fmt::format(", by QAIRT {}, core API {}.{}.{}\n",
                      Printable(info.build_id), info.core_version.major,
                      info.core_version.minor, info.core_version.patch);
  for (const ContextGraph& graph : info.graphs) {
    text += fmt::format("graph {}", Printable(graph.info.name));
    if (graph.optimization)
      text += fmt::format(", optimization {}", *graph.optimization);
    if (graph.vtcm_bytes)
      text += fmt::format(", VTCM {} MB", *graph.vtcm_bytes >> 20);
    if (graph.spill_fill_bytes)
      text += fmt::format(", spill buffer {} bytes", *graph.spill_fill_bytes);
    text += "\n";
    for (const TensorInfo& tensor : graph.info.inputs)
      text += TensorLine("in ", tensor);
    for (const TensorInfo& tensor : graph.info.outputs)
      text += TensorLine("out", tensor);
  }
  return text;
}

}  // namespace hexllm::htp
