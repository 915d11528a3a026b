// Small helpers for tests that run graphs: tensors from literals, made-up
// tensors, comparison.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "ir/axes.h"
#include "ir/ops.h"
#include "ir/pseudo_random.h"

namespace hexllm::testing {

inline ir::TensorType F32Type(Shape shape) {
  return {.dtype = DType::kF32, .shape = std::move(shape)};
}

inline ir::HostTensor F32(Shape shape, std::vector<float> values) {
  return {.type = F32Type(std::move(shape)), .floats = std::move(values)};
}

inline ir::HostTensor I32(Shape shape, std::vector<int64_t> values) {
  return {.type = {.dtype = DType::kI32, .shape = std::move(shape)},
          .floats = {},
          .ints = std::move(values)};
}

// Uniform in -1 .. 1.
inline ir::HostTensor RandomF32(Shape shape, ir::PseudoRandom& random) {
  ir::HostTensor out = F32(std::move(shape), {});
  out.floats.resize(static_cast<size_t>(*NumElements(out.type.shape)));
  for (float& value : out.floats) value = 2 * random.Unit() - 1;
  return out;
}

// Runs one op on tensors. A type error of the inputs fails the test.
inline ir::HostTensor RunOp(ir::OpKind op,
                            const std::vector<ir::HostTensor>& inputs,
                            const ir::Attrs& attrs = {}) {
  std::vector<const ir::TensorType*> types;
  std::vector<const ir::HostTensor*> tensors;
  for (const ir::HostTensor& input : inputs) {
    types.push_back(&input.type);
    tensors.push_back(&input);
  }
  const ir::OpContext context{.inputs = types, .attrs = attrs};
  auto type = ir::InferType(op, context);
  if (!type.ok()) {
    ADD_FAILURE() << type.error().message;
    return {};
  }
  return ir::GetOpInfo(op).interpret(context, tensors, *type);
}

// Same type, and |a - b| <= tolerance * max(1, |b|) everywhere; 0 = bit-exact
// but for the sign of zero.
inline void ExpectTensor(const ir::HostTensor& found,
                         const ir::HostTensor& wanted, double tolerance = 0) {
  EXPECT_EQ(ir::TypeToString(found.type), ir::TypeToString(wanted.type));
  EXPECT_EQ(found.ints, wanted.ints);
  ASSERT_EQ(found.floats.size(), wanted.floats.size());
  for (size_t i = 0; i < found.floats.size(); ++i) {
    const auto a = static_cast<double>(found.floats[i]);
    const auto b = static_cast<double>(wanted.floats[i]);
    ASSERT_TRUE(std::abs(a - b) <= tolerance * std::max(1.0, std::abs(b)))
        << "element " << i << ": found " << a << ", expected " << b;
  }
}

}  // namespace hexllm::testing
