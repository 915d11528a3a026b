// Ops that only move numbers.
#include <cstring>

#include "backend/cpu/engine_split.h"

namespace hexllm::cpu {

// [R,G,D] to [G,D,R]: a transpose of R x (G D).
void RunStoreK(const Step& step, const RunContext& context) {
  const ActiveRows rows = Active(step, context);
  const int64_t columns = step.kv_heads * step.head_dim;
  Split(context, columns, rows.end, [&](int64_t begin, int64_t end) {
    for (int64_t c = begin; c < end; ++c) {
      const float* from = step.In(0) + c;
      float* to = step.Out() + c * rows.end;
      for (int64_t r = rows.begin; r < rows.end; ++r) to[r] = from[r * columns];
    }
  });
}

// [R,G,D] to [G,R,D].
void RunStoreV(const Step& step, const RunContext& context) {
  const ActiveRows rows = Active(step, context);
  const auto head_bytes = static_cast<size_t>(step.head_dim) * sizeof(float);
  const int64_t row_work = step.kv_heads * step.head_dim;
  Split(context, rows.count(), row_work, [&](int64_t begin, int64_t end) {
    for (int64_t r = rows.begin + begin; r < rows.begin + end; ++r) {
      for (int64_t g = 0; g < step.kv_heads; ++g) {
        const int64_t from = (r * step.kv_heads + g) * step.head_dim;
        const int64_t to = (g * rows.end + r) * step.head_dim;
        std::memcpy(step.Out() + to, step.In(0) + from, head_bytes);
      }
    }
  });
}

void RunCopyRows(const Step& step, const RunContext& context) {
  const int64_t from = step.from_row * step.width;
  SplitElements(step, context, 1, [&](int64_t at, int64_t n) {
    std::memmove(step.Out() + at, step.In(0) + from + at,
                 static_cast<size_t>(n) * sizeof(float));
  });
}

void RunConcat(const Step& step, const RunContext& context) {
  const ActiveRows rows = Active(step, context);
  const int64_t left = step.left;
  const int64_t right = step.width - left;
  Split(context, rows.count(), step.width, [&](int64_t begin, int64_t end) {
    for (int64_t r = rows.begin + begin; r < rows.begin + end; ++r) {
      float* out = step.Out() + r * step.width;
      if (left > 0) {
        std::memmove(out, step.In(0) + r * left,
                     static_cast<size_t>(left) * sizeof(float));
      }
      std::memmove(out + left, step.In(1) + r * right,
                   static_cast<size_t>(right) * sizeof(float));
    }
  });
}

// Split over the two outer axes of the output.
void RunTranspose(const Step& step, const RunContext& context) {
  const std::array<int64_t, 4>& dims = step.dims;  // of the output
  const std::array<int64_t, 4>& strides = step.strides;
  Split(context, dims[0] * dims[1], dims[2] * dims[3],
        [&](int64_t begin, int64_t end) {
          for (int64_t outer = begin; outer < end; ++outer) {
            const float* from = step.In(0) + outer / dims[1] * strides[0] +
                                outer % dims[1] * strides[1];
            float* to = step.Out() + outer * dims[2] * dims[3];
            for (int64_t i = 0; i < dims[2]; ++i) {
              for (int64_t j = 0; j < dims[3]; ++j) {
                to[i * dims[3] + j] = from[i * strides[2] + j * strides[3]];
              }
            }
          }
        });
}

}  // namespace hexllm::cpu
