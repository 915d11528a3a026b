#include "backend/htp/lower_graph.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <numeric>

#include "backend/htp/ops/ops.h"
#include "backend/htp/soc_table.h"
#include "backend/htp/tensor_name.h"
#include "base/check.h"
#include "base/quote.h"
#include "ir/text.h"

namespace hexllm::htp {
namespace {

constexpr size_t kRank = 4;

Shape Identity(const Shape& shape) {
  Shape perm(shape.size());
  std::iota(perm.begin(), perm.end(), int64_t{0});
  return perm;
}

Shape Permuted(const Shape& shape, const Shape& perm) {
  Shape out;
  for (const int64_t axis : perm) {
    out.push_back(shape[static_cast<size_t>(axis)]);
  }
  return out;
}

// True when elements follow one another in the same order: axes of size 1 may
// stand anywhere.
bool SameOrder(const Shape& shape, const Shape& a, const Shape& b) {
  const auto long_axes = [&shape](const Shape& perm) {
    Shape out;
    std::copy_if(
        perm.begin(), perm.end(), std::back_inserter(out),
        [&](int64_t axis) { return shape[static_cast<size_t>(axis)] != 1; });
    return out;
  };
  return long_axes(a) == long_axes(b);
}

bool IsEmpty(const Shape& shape) {
  return std::find(shape.begin(), shape.end(), int64_t{0}) != shape.end();
}

Shape InputDims(RoleKind role, const Shape& shape) {
  switch (role) {
    case RoleKind::kToken:
      return {1, 1, shape[0]};
    case RoleKind::kRopeCos:
    case RoleKind::kRopeSin:
      return {1, shape[0], shape[1]};
    default:
      return Rank4(shape);
  }
}

// The parameter of a QNN Transpose from axes in the order `from` to `to`, both
// seen at rank 4.
ArrayParam<uint32_t> RelativePerm(const Shape& from, const Shape& to) {
  const size_t ones = kRank - from.size();
  ArrayParam<uint32_t> perm{.shape = {kRank}, .values = {}};
  for (size_t i = 0; i < ones; ++i) {
    perm.values.push_back(static_cast<uint32_t>(i));
  }
  for (const int64_t axis : to) {
    const auto at = std::find(from.begin(), from.end(), axis) - from.begin();
    perm.values.push_back(static_cast<uint32_t>(ones) +
                          static_cast<uint32_t>(at));
  }
  return perm;
}

}  // namespace

Shape Rank4(const Shape& shape) {
  HX_CHECK(shape.size() <= kRank);
  Shape dims(kRank - shape.size(), 1);
  dims.insert(dims.end(), shape.begin(), shape.end());
  return dims;
}

GraphLowering::GraphLowering(const ir::Module& module, const ir::Graph& graph,
                             const LowerOptions& options, QnnGraph& qnn)
    : module_(module),
      graph_(graph),
      options_(options),
      qnn_(qnn),
      factors_(graph),
      views_(graph.values.size()),
      readers_(graph.values.size()),
      written_(graph.outputs.size()) {
  for (const ir::Node& node : graph.nodes) {
    for (const ir::ValueId id : node.inputs)
      readers_[static_cast<size_t>(id.index)].push_back(&node);
  }
}

Status GraphLowering::Run() {
  HX_RETURN_IF_ERROR(CheckValueEncodings(graph_));
  if (HasHalves(graph_))
    HX_RETURN_IF_ERROR(RequireFeature(session().soc(), Feature::kHalf));
  HX_RETURN_IF_ERROR(AddInputs());
  for (const ir::Node& node : graph_.nodes) {
    HX_RETURN_IF_ERROR(RunNode(node));
  }
  return FinishOutputs();
}

Status GraphLowering::AddInputs() {
  for (const ir::GraphIo& io : graph_.inputs) {
    const ir::Value& value = graph_[io.value];
    if (IsEmpty(value.type.shape)) continue;  // a cache of no columns
    TensorSpec spec{.name = TensorNameOf(io.role),
                    .use = TensorUse::kInput,
                    .dtype = value.type.dtype,
                    .shape = InputDims(io.role.kind, value.type.shape)};
    if (value.encoding) {
      spec.dtype = value.encoding->dtype;
      spec.encoding = TensorEncodingOf(*value.encoding);
    }
    HX_ASSIGN_OR_RETURN(const TensorId id, qnn_.AddTensor(std::move(spec)));
    views_[static_cast<size_t>(io.value.index)].push_back(
        {.perm = Identity(value.type.shape), .tensor = id});
  }
  return OkStatus();
}

Status GraphLowering::RunNode(const ir::Node& node) {
  for (const ir::ValueId id : node.inputs) {
    if (shape(id).size() > kRank) {
      return Unsupported(node, "an input has more than 4 axes");
    }
  }
  if (shape(node.output).size() > kRank) {
    return Unsupported(node, "the output has more than 4 axes");
  }
  if (IsEmpty(shape(node.output))) {
    return Unsupported(node, "the output has no elements");
  }
  return EmitNode(*this, node);
}

Status GraphLowering::FinishOutputs() {
  for (size_t i = 0; i < graph_.outputs.size(); ++i) {
    if (written_[i]) continue;
    HX_RETURN_IF_ERROR(FinishOutput(graph_.outputs[i]));
  }
  return OkStatus();
}

// A value that is stored in no tensor of the right layout that may be an
// output, or that is a graph input or two outputs, is copied.
Status GraphLowering::FinishOutput(const ir::GraphIo& io) {
  const Shape& shape = graph_.type(io.value).shape;
  const auto index = static_cast<size_t>(&io - graph_.outputs.data());
  const Wanted wanted{
      .value = io.value, .perm = Identity(shape), .dims = Rank4(shape)};
  HX_ASSIGN_OR_RETURN(const TensorId from, Find(wanted));
  if (written_[index]) return OkStatus();
  HX_ASSIGN_OR_RETURN(const TensorId output, NewTensor(wanted));
  HX_CHECK(written_[index]);
  return AddMove(qnn_.tensor(output).name, {.op = "Reshape", .inputs = {from}},
                 output);
}

// --- What a node is ---

Result<const ir::Constant*> GraphLowering::ConstantOf(const ir::Node& node,
                                                      size_t i) const {
  const ir::ConstantId id = graph_[node.inputs[i]].constant;
  if (id.valid()) return &module_.constants[id];
  return Unsupported(node, fmt::format("input {} is not a constant", i));
}

bool GraphLowering::HasOp(std::string_view op) const {
  const auto& absent = options_.absent_ops;
  return session().HasOp(op) &&
         std::find(absent.begin(), absent.end(), op) == absent.end();
}

const ir::Node* GraphLowering::OnlyReader(ir::ValueId id) const {
  const auto& readers = readers_[static_cast<size_t>(id.index)];
  const bool shown =
      std::ranges::count(graph_.outputs, id, &ir::GraphIo::value) > 0;
  return readers.size() == 1 && !shown ? readers[0] : nullptr;
}

ir::Encoding GraphLowering::EncodingOf(ir::ValueId id) const {
  const ir::Value& value = graph_[id];
  HX_CHECK(value.encoding.has_value());
  return ScaledBy(FactorOf(id), *value.encoding);
}

DType GraphLowering::ArithmeticOf(const ir::Node& node) const {
  DType dtype = graph_[node.output].encoding->dtype;
  for (const ir::ValueId id : node.inputs) {
    const ir::Value& value = graph_[id];
    if (value.constant.valid() || !value.encoding) continue;
    dtype = WiderType(dtype, value.encoding->dtype);
  }
  return dtype;
}

// --- Tensors ---

Result<TensorId> GraphLowering::Input(const ir::Node& node, size_t i,
                                      const Layout& layout) {
  const ir::ValueId id = node.inputs[i];
  if (ViewsOf(id).empty()) {
    return Unsupported(node,
                       fmt::format("input {} is {}", i,
                                   graph_[id].constant.valid()
                                       ? "a constant; expected a computed value"
                                       : "empty"));
  }
  return Find({.value = id,
               .perm = layout.perm.empty() ? Identity(shape(id)) : layout.perm,
               .dims = layout.dims});
}

Result<TensorId> GraphLowering::Input(const ir::Node& node, size_t i,
                                      DType dtype, const Layout& layout) {
  HX_ASSIGN_OR_RETURN(const TensorId id, Input(node, i, layout));
  return Converted(id, dtype);
}

Result<TensorId> GraphLowering::Input(const ir::Node& node, size_t i,
                                      DType dtype) {
  return Input(node, i, dtype, {.dims = Rank4(shape(node.inputs[i]))});
}

Layout GraphLowering::AnyLayout(const ir::Node& node, size_t i) const {
  const Layout ordered = OrderedLayout(node, i);
  const auto& views = ViewsOf(node.inputs[i]);
  if (views.empty() || HasLayout(node.inputs[i], ordered)) return ordered;
  return {.perm = views.front().perm, .dims = DimsOf(views.front().tensor)};
}

Layout GraphLowering::RowLayout(const ir::Node& node, size_t i) const {
  const Shape& axes = shape(node.inputs[i]);
  const Layout any = AnyLayout(node, i);
  const bool last_is_last =
      any.perm.empty() || any.perm.back() + 1 == std::ssize(axes);
  if (last_is_last && any.dims.back() == axes.back()) return any;
  return {.dims = Rank4(axes)};
}

Layout GraphLowering::OrderedLayout(const ir::Node& node, size_t i) const {
  const ir::ValueId id = node.inputs[i];
  for (const View& view : ViewsOf(id)) {
    if (SameOrder(shape(id), view.perm, Identity(shape(id)))) {
      return {.dims = DimsOf(view.tensor)};
    }
  }
  return {.dims = Rank4(shape(id))};
}

Result<TensorId> GraphLowering::Static(const ir::Node& node,
                                       std::string_view suffix,
                                       StaticTensor made) {
  made.spec.name = FreshName(graph_[node.output].name + std::string(suffix));
  return qnn_.AddStatic(std::move(made.spec), made.bytes);
}

Result<TensorId> GraphLowering::Scalar(const ir::Node& node, DType dtype,
                                       double value) {
  const ScalarConstant scalar = MakeScalar(dtype, value);
  std::vector<std::byte> bytes(GetDTypeInfo(dtype).block_bytes);
  std::memcpy(bytes.data(), &scalar.code, bytes.size());
  return Static(node, ".factor",
                {.spec = {.name = {},
                          .use = TensorUse::kStatic,
                          .dtype = dtype,
                          .shape = {1, 1, 1, 1},
                          .encoding = TensorEncodingOf(scalar.encoding)},
                 .bytes = std::move(bytes)});
}

Result<TensorId> GraphLowering::Inner(const ir::Node& node, InnerSpec spec) {
  return qnn_.AddTensor(
      {.name = FreshName(graph_[node.output].name + std::string(spec.suffix)),
       .use = TensorUse::kInner,
       .dtype = spec.encoding.dtype,
       .shape = std::move(spec.dims),
       .encoding = TensorEncodingOf(spec.encoding)});
}

Result<TensorId> GraphLowering::Repeated(TensorId mask, int64_t times) {
  if (times == 1) return mask;
  const auto key = std::pair(mask.index, times);
  if (const auto found = repeated_.find(key); found != repeated_.end()) {
    return found->second;
  }
  TensorSpec spec = qnn_.tensor(mask);
  spec.name = FreshName(spec.name);
  spec.use = TensorUse::kInner;
  HX_CHECK(spec.shape.size() == kRank);
  spec.shape[2] *= times;
  HX_ASSIGN_OR_RETURN(const TensorId id, qnn_.AddTensor(spec));
  NodeDraft concat{.op = "Concat",
                   .inputs = std::vector(static_cast<size_t>(times), mask),
                   .params = {{"axis", uint32_t{2}}}};
  HX_RETURN_IF_ERROR(AddMove(spec.name, std::move(concat), id));
  repeated_[key] = id;
  return id;
}

std::string GraphLowering::FreshName(std::string_view base) {
  return fmt::format("{}:{}", base, names_++);
}

bool GraphLowering::HasLayout(ir::ValueId id, const Layout& ordered) const {
  const auto& views = ViewsOf(id);
  return std::any_of(views.begin(), views.end(), [&](const View& view) {
    return DimsOf(view.tensor) == ordered.dims &&
           SameOrder(shape(id), view.perm, Identity(shape(id)));
  });
}

const ir::GraphIo* GraphLowering::PendingOutput(const Wanted& wanted) const {
  const Shape& axes = shape(wanted.value);
  if (!SameOrder(axes, wanted.perm, Identity(axes))) return nullptr;
  for (size_t i = 0; i < graph_.outputs.size(); ++i) {
    const ir::GraphIo& io = graph_.outputs[i];
    if (io.value == wanted.value && !written_[i]) return &io;
  }
  return nullptr;
}

Result<TensorId> GraphLowering::NewTensor(const Wanted& wanted) {
  const ir::Encoding encoding = EncodingOf(wanted.value);
  TensorSpec spec{.name = {},
                  .use = TensorUse::kInner,
                  .dtype = encoding.dtype,
                  .shape = wanted.dims,
                  .encoding = TensorEncodingOf(encoding)};
  if (const ir::GraphIo* io = PendingOutput(wanted)) {
    spec.use = TensorUse::kOutput;
    spec.name = TensorNameOf(io->role);
    written_[static_cast<size_t>(io - graph_.outputs.data())] = true;
  } else {
    spec.name = FreshName(graph_[wanted.value].name);
  }
  return qnn_.AddTensor(std::move(spec));
}

Result<TensorId> GraphLowering::Find(const Wanted& wanted) {
  const auto& views = ViewsOf(wanted.value);
  const Shape& axes = shape(wanted.value);
  const View* same_order = nullptr;
  for (const View& view : views) {
    if (!SameOrder(axes, view.perm, wanted.perm)) continue;
    if (DimsOf(view.tensor) == wanted.dims) return view.tensor;
    same_order = &view;
  }
  if (same_order != nullptr) return Reshaped(wanted, same_order->tensor);
  HX_CHECK(!views.empty());
  return Transposed(wanted, View(views.front()));
}

Result<TensorId> GraphLowering::Reshaped(const Wanted& wanted, TensorId from) {
  HX_ASSIGN_OR_RETURN(const TensorId to, NewTensor(wanted));
  HX_RETURN_IF_ERROR(AddMove(graph_[wanted.value].name,
                             {.op = "Reshape", .inputs = {from}}, to));
  views_[static_cast<size_t>(wanted.value.index)].push_back(
      {.perm = wanted.perm, .tensor = to});
  return to;
}

Result<TensorId> GraphLowering::Transposed(const Wanted& wanted,
                                           const View& from) {
  const Shape& axes = shape(wanted.value);
  HX_ASSIGN_OR_RETURN(const TensorId source,
                      Find({.value = wanted.value,
                            .perm = from.perm,
                            .dims = Rank4(Permuted(axes, from.perm))}));
  const Wanted whole{.value = wanted.value,
                     .perm = wanted.perm,
                     .dims = Rank4(Permuted(axes, wanted.perm))};
  HX_ASSIGN_OR_RETURN(const TensorId to, NewTensor(whole));
  HX_RETURN_IF_ERROR(
      AddMove(graph_[wanted.value].name,
              {.op = "Transpose",
               .inputs = {source},
               .params = {{"perm", RelativePerm(from.perm, wanted.perm)}}},
              to));
  views_[static_cast<size_t>(wanted.value.index)].push_back(
      {.perm = wanted.perm, .tensor = to});
  return Find(wanted);
}

Result<TensorId> GraphLowering::Converted(TensorId from, DType dtype) {
  TensorSpec spec = qnn_.tensor(from);
  if (spec.dtype == dtype) return from;
  const auto key = std::pair(from.index, dtype);
  if (const auto found = converted_.find(key); found != converted_.end()) {
    return found->second;
  }
  const ir::Encoding encoding = WidenedTo(dtype, EncodingOfSpec(spec));
  spec.name = FreshName(spec.name);
  spec.use = TensorUse::kInner;
  spec.dtype = dtype;
  spec.encoding = TensorEncodingOf(encoding);
  HX_ASSIGN_OR_RETURN(const TensorId to, qnn_.AddTensor(spec));
  HX_RETURN_IF_ERROR(
      AddMove(spec.name, {.op = "Convert", .inputs = {from}}, to));
  converted_[key] = to;
  return to;
}

// --- Nodes ---

Status GraphLowering::AddMove(std::string_view name, NodeDraft draft,
                              TensorId output) {
  return qnn_.AddNode({.name = FreshName(name),
                       .op = std::move(draft.op),
                       .inputs = std::move(draft.inputs),
                       .outputs = {output},
                       .params = std::move(draft.params)});
}

Status GraphLowering::Emit(const ir::Node& node, NodeDraft draft,
                           TensorId output) {
  return AddMove(graph_[node.output].name, std::move(draft), output);
}

Result<TensorId> GraphLowering::EmitInner(const ir::Node& node, InnerSpec spec,
                                          NodeDraft draft) {
  HX_ASSIGN_OR_RETURN(const TensorId made, Inner(node, std::move(spec)));
  HX_RETURN_IF_ERROR(Emit(node, std::move(draft), made));
  return made;
}

Status GraphLowering::EmitOutput(const ir::Node& node, DType dtype,
                                 const Layout& layout, NodeDraft draft) {
  const Shape perm =
      layout.perm.empty() ? Identity(shape(node.output)) : layout.perm;
  const ir::Encoding encoding = EncodingOf(node.output);
  HX_ASSIGN_OR_RETURN(
      const TensorId output,
      NewTensor({.value = node.output, .perm = perm, .dims = layout.dims}));
  views_[static_cast<size_t>(node.output.index)].push_back(
      {.perm = perm, .tensor = output});
  if (encoding.dtype == dtype) return Emit(node, std::move(draft), output);
  HX_ASSIGN_OR_RETURN(const TensorId wide,
                      Inner(node, {.suffix = ".wide",
                                   .dims = layout.dims,
                                   .encoding = WidenedTo(dtype, encoding)}));
  HX_RETURN_IF_ERROR(Emit(node, std::move(draft), wide));
  return Emit(node, {.op = "Convert", .inputs = {wide}}, output);
}

Status GraphLowering::CheckSameEncoding(const ir::Node& node, size_t i) const {
  if (EncodingOf(node.inputs[i]) == EncodingOf(node.output)) return OkStatus();
  return Unsupported(node, "the encodings of input and output differ");
}

Status GraphLowering::AliasReshape(const ir::Node& node, size_t i) {
  HX_RETURN_IF_ERROR(CheckSameEncoding(node, i));
  HX_ASSIGN_OR_RETURN(const TensorId tensor,
                      Input(node, i, OrderedLayout(node, i)));
  views_[static_cast<size_t>(node.output.index)].push_back(
      {.perm = Identity(shape(node.output)), .tensor = tensor});
  return OkStatus();
}

// Output axis j is input axis perm[j]; a tensor's axis j is input axis
// view.perm[j]. So it is the output axis that perm has that input axis at.
Status GraphLowering::AliasTranspose(const ir::Node& node, const Shape& perm) {
  HX_RETURN_IF_ERROR(CheckSameEncoding(node, 0));
  const auto& from = ViewsOf(node.inputs[0]);
  if (from.empty()) return Unsupported(node, "the input is no computed value");
  for (const View& view : from) {
    View to{.perm = {}, .tensor = view.tensor};
    for (const int64_t axis : view.perm) {
      to.perm.push_back(std::find(perm.begin(), perm.end(), axis) -
                        perm.begin());
    }
    views_[static_cast<size_t>(node.output.index)].push_back(std::move(to));
  }
  return OkStatus();
}

Error GraphLowering::Unsupported(const ir::Node& node,
                                 std::string_view reason) const {
  return Error{
      ErrorCode::kUnsupported,
      fmt::format("graph {}: {} = {}{}: {}", Quoted(graph_.name),
                  Quoted(graph_[node.output].name), ir::GetOpInfo(node.op).name,
                  ShapeToString(shape(node.output)), reason)};
}

}  // namespace hexllm::htp
