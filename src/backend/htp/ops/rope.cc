// rope: RotaryEmbedding of [1,H,T,D]. Where the library has no such op (older
// than QAIRT 2.51), from the halves x1, x2 of the rotary dims and the rest:
//   x1*cos - x2*sin | x2*cos + x1*sin | rest
#include <algorithm>

#include "backend/htp/ops/ops.h"

namespace hexllm::htp {
namespace {

constexpr std::string_view kRotaryEmbedding = "RotaryEmbedding";

// One rope node's tensors.
struct Rope {
  const ir::Node& node;
  DType dtype;    // of all of them: u16 or f16
  Layout layout;  // of x and the output, [1,H,T,D]
  int64_t half;   // R/2
  TensorId x = {};
  TensorId cos = {};
  TensorId sin = {};
};

Status EmitOneOp(GraphLowering& lowering, const Rope& rope) {
  return lowering.EmitOutput(
      rope.node, rope.dtype, rope.layout,
      {.op = std::string(kRotaryEmbedding),
       .inputs = {rope.x, rope.cos, rope.sin},
       .params = {
           {"interleaved", false},
           {"rotary_embedding_dim", static_cast<uint32_t>(2 * rope.half)}}});
}

double Magnitude(const TensorSpec& spec) {
  const TensorEncoding& encoding = *spec.encoding;
  const int32_t zero_point =
      encoding.zero_points.empty() ? 0 : encoding.zero_points[0];
  return static_cast<double>(encoding.scales[0]) *
         std::max(zero_point, UINT16_MAX - zero_point);
}

// The formula, tensor by tensor.
class RopeFormula {
 public:
  RopeFormula(GraphLowering& lowering, const Rope& rope)
      : lowering_(lowering), rope_(rope) {}

  Status Run() {
    const int64_t width = rope_.layout.dims.back();
    HX_ASSIGN_OR_RETURN(const TensorId x1, Columns(0, rope_.half));
    HX_ASSIGN_OR_RETURN(const TensorId x2, Columns(rope_.half, 2 * rope_.half));
    HX_ASSIGN_OR_RETURN(const TensorId x1_cos, Product(x1, rope_.cos));
    HX_ASSIGN_OR_RETURN(const TensorId x2_sin, Product(x2, rope_.sin));
    HX_ASSIGN_OR_RETURN(const TensorId x2_cos, Product(x2, rope_.cos));
    HX_ASSIGN_OR_RETURN(const TensorId x1_sin, Product(x1, rope_.sin));
    HX_ASSIGN_OR_RETURN(
        const TensorId first,
        OfOutput({.op = "ElementWiseSubtract", .inputs = {x1_cos, x2_sin}},
                 rope_.half));
    HX_ASSIGN_OR_RETURN(
        const TensorId second,
        OfOutput({.op = "ElementWiseAdd", .inputs = {x2_cos, x1_sin}},
                 rope_.half));
    NodeDraft concat{.op = "Concat",
                     .inputs = {first, second},
                     .params = {{"axis", uint32_t{3}}}};
    if (width > 2 * rope_.half) {
      HX_ASSIGN_OR_RETURN(const TensorId rest, Columns(2 * rope_.half, width));
      HX_ASSIGN_OR_RETURN(const TensorId converted,
                          OfOutput({.op = "Convert", .inputs = {rest}},
                                   width - 2 * rope_.half));
      concat.inputs.push_back(converted);
    }
    return lowering_.EmitOutput(rope_.node, rope_.dtype, rope_.layout,
                                std::move(concat));
  }

 private:
  Shape DimsOf(int64_t width) const {
    Shape dims = rope_.layout.dims;
    dims.back() = width;
    return dims;
  }

  // x[..,begin:end].
  Result<TensorId> Columns(int64_t begin, int64_t end) {
    const TensorSpec& spec = lowering_.SpecOf(rope_.x);
    NodeDraft slice{
        .op = "StridedSlice",
        .inputs = {rope_.x},
        .params = {{"ranges", SliceRanges(spec.shape, 3, begin, end)}}};
    return lowering_.EmitInner(rope_.node,
                               {.suffix = ".columns",
                                .dims = DimsOf(end - begin),
                                .encoding = EncodingOfSpec(spec)},
                               std::move(slice));
  }

  // A part of x times a table, on a grid that holds all that it can be.
  Result<TensorId> Product(TensorId part, TensorId table) {
    ir::Encoding encoding{.dtype = rope_.dtype};
    if (rope_.dtype == DType::kU16) {
      const double most = Magnitude(lowering_.SpecOf(part)) *
                          Magnitude(lowering_.SpecOf(table));
      encoding.scales = {static_cast<float>(most / INT16_MAX)};
      encoding.zero_points = {INT16_MAX + 1};
    }
    return lowering_.EmitInner(
        rope_.node,
        {.suffix = ".product",
         .dims = DimsOf(rope_.half),
         .encoding = std::move(encoding)},
        {.op = "ElementWiseMultiply", .inputs = {part, table}});
  }

  // Columns of the output.
  Result<TensorId> OfOutput(NodeDraft draft, int64_t width) {
    return lowering_.EmitInner(
        rope_.node,
        {.suffix = ".half",
         .dims = DimsOf(width),
         .encoding =
             WidenedTo(rope_.dtype, lowering_.EncodingOf(rope_.node.output))},
        std::move(draft));
  }

  GraphLowering& lowering_;
  const Rope& rope_;
};

}  // namespace

Status EmitRope(GraphLowering& lowering, const ir::Node& node) {
  const Shape& x = lowering.shape(node.inputs[0]);      // [T,H,D]
  const Shape& table = lowering.shape(node.inputs[1]);  // [T,R/2]
  const bool has_op = lowering.HasOp(kRotaryEmbedding);
  // The op is there in u16 and f16.
  const DType dtype = WiderType(DType::kU16, lowering.ArithmeticOf(node));
  Rope rope{.node = node,
            .dtype = dtype,
            .layout = {.perm = {1, 0, 2}, .dims = {1, x[1], x[0], x[2]}},
            .half = table[1]};
  Layout table_layout{.dims = {1, table[0], table[1]}};
  if (!has_op) table_layout.dims = Rank4(table);
  HX_ASSIGN_OR_RETURN(rope.x, lowering.Input(node, 0, dtype, rope.layout));
  HX_ASSIGN_OR_RETURN(rope.cos, lowering.Input(node, 1, dtype, table_layout));
  HX_ASSIGN_OR_RETURN(rope.sin, lowering.Input(node, 2, dtype, table_layout));
  return has_op ? EmitOneOp(lowering, rope) : RopeFormula(lowering, rope).Run();
}

}  // namespace hexllm::htp
