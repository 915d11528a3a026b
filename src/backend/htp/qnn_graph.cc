#include "backend/htp/qnn_graph.h"

#include <fmt/format.h>

#include <utility>

#include "base/quote.h"

namespace hexllm::htp {
namespace {

abi::Scalar ScalarOf(bool value) {
  return {.type = abi::DataType::kBool8, .boolean = value};
}
abi::Scalar ScalarOf(uint32_t value) {
  return {.type = abi::DataType::kUint32, .u32 = value};
}
abi::Scalar ScalarOf(int32_t value) {
  return {.type = abi::DataType::kInt32, .i32 = value};
}
abi::Scalar ScalarOf(float value) {
  return {.type = abi::DataType::kFloat32, .f32 = value};
}

template <typename T>
constexpr DType kArrayType = std::is_signed_v<T> ? DType::kI32 : DType::kU32;

// The custom configurations of a graph, in the form the library takes.
class GraphConfigs {
 public:
  GraphConfigs(const GraphOptions& options, const Soc& soc) {
    abi::HtpGraphConfig flag = Make(abi::HtpGraphOption::kOptimization);
    flag.optimization = {abi::kOptimizationFlag,
                         static_cast<float>(options.optimization)};
    custom_.push_back(flag);
    abi::HtpGraphConfig vtcm = Make(abi::HtpGraphOption::kVtcmMb);
    vtcm.u32 = options.vtcm_mb != 0 ? options.vtcm_mb : soc.vtcm_mb;
    custom_.push_back(vtcm);
    if (options.f32_as_f16) {
      abi::HtpGraphConfig precision = Make(abi::HtpGraphOption::kPrecision);
      precision.u32 = 1;
      custom_.push_back(precision);
    }
    for (const auto& [key, value] : options.finalize_keys) {
      abi::HtpGraphConfig custom = Make(abi::HtpGraphOption::kFinalizeKey);
      custom.finalize_key = {
          key.c_str(),
          {.type = abi::DataType::kString, .string = value.c_str()}};
      custom_.push_back(custom);
    }
    for (const abi::HtpGraphConfig& custom : custom_)
      configs_.push_back({.option = 0, .custom = &custom});
    for (const abi::Config& config : configs_) pointers_.push_back(&config);
    pointers_.push_back(nullptr);
  }
  GraphConfigs(const GraphConfigs&) = delete;
  GraphConfigs& operator=(const GraphConfigs&) = delete;

  const abi::Config** pointers() { return pointers_.data(); }

 private:
  static abi::HtpGraphConfig Make(abi::HtpGraphOption option) {
    return {.option = option, .reserved = {}};
  }

  std::vector<abi::HtpGraphConfig> custom_;
  std::vector<abi::Config> configs_;
  std::vector<const abi::Config*> pointers_;
};

Error Misuse(const std::string& name, const std::string& what) {
  return {ErrorCode::kUsage,
          fmt::format("QNN graph {}: {}", Quoted(name), what)};
}

}  // namespace

// Makes one node's form in the library's structs: copies of its tensors and,
// for array parameters, constants of their own.
class QnnGraph::NodeBuilder {
 public:
  NodeBuilder(QnnGraph& graph, const NodeSpec& node)
      : graph_(graph), node_(node) {}
  NodeBuilder(const NodeBuilder&) = delete;
  NodeBuilder& operator=(const NodeBuilder&) = delete;

  Status Build() {
    for (const TensorId id : node_.inputs)
      inputs_.push_back(graph_.tensors_[id.index]->raw());
    for (const TensorId id : node_.outputs)
      outputs_.push_back(graph_.tensors_[id.index]->raw());
    for (const NodeParam& param : node_.params) {
      HX_RETURN_IF_ERROR(
          std::visit([&](const auto& value) { return Add(param.name, value); },
                     param.value));
    }
    return OkStatus();
  }

  // Valid while this lives.
  abi::OpConfig config() {
    return {
        .version = 1,
        .name = node_.name.c_str(),
        .package = abi::kPackage,
        .op = node_.op.c_str(),
        .param_count = static_cast<uint32_t>(params_.size()),
        .params = params_.data(),
        .input_count = static_cast<uint32_t>(inputs_.size()),
        .inputs = inputs_.data(),
        .output_count = static_cast<uint32_t>(outputs_.size()),
        .outputs = outputs_.data(),
    };
  }

 private:
  template <typename T>
  Status Add(const std::string& name, T value) {
    abi::Param param = {
        .kind = abi::ParamKind::kScalar, .name = name.c_str(), .tensor = {}};
    param.scalar = ScalarOf(value);
    params_.push_back(param);
    return OkStatus();
  }

  template <typename T>
  Status Add(const std::string& name, const ArrayParam<T>& array) {
    TensorSpec spec{.name = fmt::format("{}#{}.{}", node_.name,
                                        graph_.tensors_.size(), name),
                    .use = TensorUse::kStatic,
                    .dtype = kArrayType<T>,
                    .shape = {array.shape.begin(), array.shape.end()}};
    const auto data = std::as_bytes(std::span(array.values));
    HX_ASSIGN_OR_RETURN(const TensorId id,
                        graph_.AddStatic(std::move(spec), data));
    abi::Param param = {.kind = abi::ParamKind::kTensor,
                        .name = name.c_str(),
                        .tensor = graph_.tensors_[id.index]->raw()};
    // Validation reads the values.
    param.tensor.v1.buffer = {
        const_cast<std::byte*>(data.data()),  // NOLINT: not written to
        static_cast<uint32_t>(data.size())};
    params_.push_back(param);
    return OkStatus();
  }

  QnnGraph& graph_;
  const NodeSpec& node_;
  std::vector<abi::Tensor> inputs_;
  std::vector<abi::Tensor> outputs_;
  std::vector<abi::Param> params_;
};

Result<std::unique_ptr<QnnGraph>> QnnGraph::Create(
    std::shared_ptr<QnnContext> context, std::string name,
    const GraphOptions& options) {
  std::unique_ptr<QnnGraph> graph(
      new QnnGraph(std::move(context), std::move(name)));
  HX_RETURN_IF_ERROR(graph->Open(options));
  return graph;
}

Status QnnGraph::Open(const GraphOptions& options) {
  // The library does not check its range.
  if (options.optimization < 1 || options.optimization > 3) {
    return Misuse(name_, fmt::format("optimization {} is not 1, 2 or 3",
                                     options.optimization));
  }
  if (options.vtcm_mb > session().soc().vtcm_mb) {
    return Misuse(name_,
                  fmt::format("{} MB of VTCM, but {} has {}", options.vtcm_mb,
                              session().soc().name, session().soc().vtcm_mb));
  }
  GraphConfigs configs(options, session().soc());
  Status made = context_->library().Check(
      "graphCreate",
      context_->library().api().graph_create(context_->handle(), name_.c_str(),
                                             configs.pointers(), &handle_),
      ErrorCode::kUsage);
  if (!made.ok())
    return std::move(made).error().With("QNN graph " + Quoted(name_));
  return OkStatus();
}

const TensorSpec& QnnGraph::tensor(TensorId id) const {
  HX_CHECK(id.index < tensors_.size());
  return tensors_[id.index]->spec();
}

Result<TensorId> QnnGraph::AddTensor(TensorSpec spec) {
  if (spec.use == TensorUse::kStatic)
    return Misuse(name_,
                  fmt::format("constant {} without data", Quoted(spec.name)));
  return Register(std::move(spec), {});
}

Result<TensorId> QnnGraph::AddStatic(TensorSpec spec, ByteSpan data) {
  const std::optional<uint64_t> bytes = StorageBytes(spec.dtype, spec.shape);
  if (spec.use != TensorUse::kStatic || !bytes || *bytes != data.size()) {
    return Misuse(name_, fmt::format("constant {} with {} bytes of data",
                                     DescribeTensor(spec), data.size()));
  }
  return Register(std::move(spec), data);
}

Result<TensorId> QnnGraph::Register(TensorSpec spec, ByteSpan data) {
  if (finalized_) return Misuse(name_, "finalized already");
  HX_RETURN_IF_ERROR(CheckTensorSpec(spec));
  if (!names_.insert(spec.name).second)
    return Misuse(name_, fmt::format("two tensors {}", Quoted(spec.name)));
  auto record = std::make_unique<TensorRecord>(std::move(spec));
  record->raw().v1.buffer = {
      const_cast<std::byte*>(data.data()),  // NOLINT: not written to
      static_cast<uint32_t>(data.size())};
  Status made = context_->library().Check(
      "tensorCreateGraphTensor",
      context_->library().api().tensor_create_graph_tensor(handle_,
                                                           &record->raw()),
      ErrorCode::kUnsupported);
  if (!made.ok())
    return std::move(made).error().With(
        fmt::format("QNN graph {}, tensor {}", Quoted(name_),
                    DescribeTensor(record->spec())));
  record->raw().v1.buffer = {};
  tensors_.push_back(std::move(record));
  return TensorId{static_cast<uint32_t>(tensors_.size() - 1)};
}

Status QnnGraph::CheckNode(const NodeSpec& node) const {
  if (finalized_) return Misuse(name_, "finalized already");
  for (const auto* list : {&node.inputs, &node.outputs}) {
    for (const TensorId id : *list) {
      if (id.index >= tensors_.size())
        return Misuse(name_, fmt::format("node {} has a tensor of another "
                                         "graph",
                                         Quoted(node.name)));
    }
  }
  if (!session().HasOp(node.op)) {
    return Error{ErrorCode::kUnsupported,
                 fmt::format("QNN graph {}, node {}: the library {} has no op "
                             "{}",
                             Quoted(name_), Quoted(node.name),
                             context_->library().build_id(), node.op)};
  }
  return OkStatus();
}

Status QnnGraph::AddNode(const NodeSpec& node) {
  HX_RETURN_IF_ERROR(CheckNode(node));
  NodeBuilder builder(*this, node);
  HX_RETURN_IF_ERROR(builder.Build());
  const QnnLibrary& library = context_->library();
  Status done = library.Check("backendValidateOpConfig",
                              library.api().backend_validate_op_config(
                                  session().backend(), builder.config()),
                              ErrorCode::kUnsupported);
  if (done.ok()) {
    done = library.Check(
        "graphAddNode", library.api().graph_add_node(handle_, builder.config()),
        ErrorCode::kUnsupported);
  }
  if (!done.ok()) return std::move(done).error().With(DescribeNode(node));
  nodes_.push_back(node);
  return OkStatus();
}

std::string QnnGraph::DescribeNode(const NodeSpec& node) const {
  std::string text = fmt::format(
      "QNN graph {}, node {}: {} (v{}) refuses {}(", Quoted(name_),
      Quoted(node.name), session().soc().name, session().soc().htp, node.op);
  for (const TensorId id : node.inputs)
    text += fmt::format("{}{}", id == node.inputs[0] ? "" : ", ",
                        DescribeTensor(tensor(id)));
  text += ") ->";
  for (const TensorId id : node.outputs)
    text += " " + DescribeTensor(tensor(id));
  return text;
}

Status QnnGraph::Compile() {
  const QnnLibrary& library = context_->library();
  return library.Check("graphFinalize",
                       library.api().graph_finalize(handle_, nullptr, nullptr),
                       ErrorCode::kUnsupported);
}

Status QnnGraph::Finalize() {
  if (finalized_) return Misuse(name_, "finalized already");
  Status done = Compile();
  if (!done.ok()) {
    Error error = std::move(done).error();
    error.message += "; " + FindRefused();
    return std::move(error).With(fmt::format(
        "QNN graph {} of {} nodes does not compile for {} (v{})", Quoted(name_),
        nodes_.size(), session().soc().name, session().soc().htp));
  }
  finalized_ = true;
  return OkStatus();
}

GraphInfo QnnGraph::Info() const {
  GraphInfo info{.name = name_, .inputs = {}, .outputs = {}};
  for (const auto& record : tensors_) {
    const TensorSpec& spec = record->spec();
    TensorInfo tensor{.spec = spec,
                      .id = record->raw().v1.id,
                      .bytes = StorageBytes(spec.dtype, spec.shape).value()};
    if (spec.use == TensorUse::kInput) info.inputs.push_back(tensor);
    if (spec.use == TensorUse::kOutput) info.outputs.push_back(tensor);
  }
  return info;
}

}  // namespace hexllm::htp
