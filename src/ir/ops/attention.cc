// attention: q[T,H,D], k_past[G,D,P], v_past[G,P,D], k_new[G,D,T],
// v_new[G,T,D], mask[T,C] {scale, softcap} -> [T,H,D], C = P + T.
//
// Scaled dot product attention (Vaswani et al. 2017) over the P past and then
// the T new columns. Query head h reads KV head h / (H/G) (grouped queries,
// Ainslie et al. 2023). For each row t and head h:
//
//   s[c] = (q[t,h] . k[c]) * scale
//   s[c] = softcap * tanh(s[c] / softcap)        if softcap > 0
//   s[c] = s[c] + mask[t,c]
//   out[t,h] = sum over c of softmax(s)[c] * v[c]
//
// mask: 0 = visible, -infinity = hidden. A row that sees no column (padding)
// gives zeros.
#include <cmath>

#include "ir/axes.h"
#include "ir/ops/softmax.h"
#include "ir/ops/table.h"

namespace hexllm::ir {
namespace {

// One side of the cache: k [G,D,columns], v [G,columns,D].
struct KvPart {
  const float* k;
  const float* v;
  size_t columns;
};

// Where the query is and what it sees.
struct QueryRow {
  const float* q;     // [D]
  const float* mask;  // [C]
  size_t kv_head;
  size_t head_dim;
};

// Appends the scores of one part's columns, before the mask.
void AppendScores(const QueryRow& row, const KvPart& part, double scale,
                  std::vector<double>& scores) {
  for (size_t c = 0; c < part.columns; ++c) {
    double dot = 0;
    for (size_t d = 0; d < row.head_dim; ++d) {
      const size_t at = (row.kv_head * row.head_dim + d) * part.columns + c;
      dot += static_cast<double>(row.q[d]) * static_cast<double>(part.k[at]);
    }
    scores.push_back(dot * scale);
  }
}

// Adds weights . v of one part to out [D].
void AddWeighted(const QueryRow& row, const KvPart& part, const double* weights,
                 std::vector<double>& out) {
  for (size_t c = 0; c < part.columns; ++c) {
    for (size_t d = 0; d < row.head_dim; ++d) {
      const size_t at = (row.kv_head * part.columns + c) * row.head_dim + d;
      out[d] += weights[c] * static_cast<double>(part.v[at]);
    }
  }
}

std::vector<double> AttendRow(const QueryRow& row, const KvPart& past,
                              const KvPart& fresh, const Attrs& attrs) {
  const double scale = FloatAttr(attrs, AttrName::kScale);
  const double softcap = FloatAttr(attrs, AttrName::kSoftcap);
  std::vector<double> scores;
  AppendScores(row, past, scale, scores);
  AppendScores(row, fresh, scale, scores);
  for (size_t c = 0; c < scores.size(); ++c) {
    if (softcap > 0) scores[c] = softcap * std::tanh(scores[c] / softcap);
    scores[c] += static_cast<double>(row.mask[c]);
  }
  Softmax(scores);
  std::vector<double> out(row.head_dim, 0.0);
  AddWeighted(row, past, scores.data(), out);
  AddWeighted(row, fresh, scores.data() + past.columns, out);
  return out;
}

}  // namespace

Result<TensorType> InferAttention(const OpContext& context) {
  constexpr TensorSpec kInputs[] = {{"q", "THD"},      {"k_past", "GDP"},
                                    {"v_past", "GPD"}, {"k_new", "GDT"},
                                    {"v_new", "GTD"},  {"mask", "TC"}};
  HX_ASSIGN_OR_RETURN(const Axes axes, MatchInputs(context, kInputs));
  if (axes['C'] < axes['T'] || axes['C'] - axes['T'] != axes['P']) {
    return Error{ErrorCode::kBadInput,
                 "mask: expected [T,P+T] with T=" + std::to_string(axes['T']) +
                     ", P=" + std::to_string(axes['P']) + ", found " +
                     TypeToString(*context.inputs[5])};
  }
  if (axes['H'] % axes['G'] != 0) {
    return Error{ErrorCode::kBadInput,
                 "q: expected a multiple of G=" + std::to_string(axes['G']) +
                     " heads, found " + std::to_string(axes['H'])};
  }
  if (FloatAttr(context.attrs, AttrName::kSoftcap) < 0) {
    return Error{ErrorCode::kBadInput,
                 "attribute softcap: expected 0 (none) or more, found a "
                 "negative number"};
  }
  return axes.Activation("THD");
}

HostTensor InterpretAttention(const OpContext& context,
                              std::span<const HostTensor* const> inputs,
                              const TensorType& output) {
  const auto steps = static_cast<size_t>(output.shape[0]);
  const auto heads = static_cast<size_t>(output.shape[1]);
  const auto head_dim = static_cast<size_t>(output.shape[2]);
  const auto group = heads / static_cast<size_t>(inputs[1]->type.shape[0]);
  const auto past_columns = static_cast<size_t>(inputs[1]->type.shape[2]);
  const KvPart past{.k = inputs[1]->floats.data(),
                    .v = inputs[2]->floats.data(),
                    .columns = past_columns};
  const KvPart fresh{.k = inputs[3]->floats.data(),
                     .v = inputs[4]->floats.data(),
                     .columns = steps};
  HostTensor out{.type = output};
  for (size_t t = 0; t < steps; ++t) {
    for (size_t h = 0; h < heads; ++h) {
      const QueryRow row{
          .q = inputs[0]->floats.data() + (t * heads + h) * head_dim,
          .mask = inputs[5]->floats.data() + t * (past_columns + steps),
          .kv_head = h / group,
          .head_dim = head_dim};
      for (const double value : AttendRow(row, past, fresh, context.attrs)) {
        out.floats.push_back(static_cast<float>(value));
      }
    }
  }
  return out;
}

}  // namespace hexllm::ir
