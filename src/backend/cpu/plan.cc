#include "backend/cpu/plan.h"

#include <fmt/format.h>

#include <cstring>

#include "backend/cpu/plan_generated.h"
#include "base/check.h"

namespace hexllm::cpu {
namespace {

// --- Writing ---

fb::Operand ToFb(const Operand& operand) {
  return fb::Operand(static_cast<fb::OperandKind>(operand.kind), operand.index);
}

flatbuffers::Offset<fb::Instruction> Write(
    flatbuffers::FlatBufferBuilder& builder, const Instruction& instruction) {
  std::vector<fb::Operand> in;
  in.reserve(instruction.in.size());
  for (const Operand& operand : instruction.in) in.push_back(ToFb(operand));
  const fb::Operand out = ToFb(instruction.out);
  const auto in_offset = builder.CreateVectorOfStructs(in);
  const auto ints = builder.CreateVector(instruction.ints);
  const auto floats = builder.CreateVector(instruction.floats);
  const auto name = builder.CreateString(instruction.name);
  fb::InstructionBuilder table(builder);
  table.add_op(static_cast<uint16_t>(instruction.op));
  table.add_in(in_offset);
  table.add_out(&out);
  table.add_rows(instruction.rows.count);
  table.add_first_row(instruction.rows.first);
  table.add_ints(ints);
  table.add_floats(floats);
  table.add_name(name);
  return table.Finish();
}

// --- Reading ---

// The elements of a vector, which may be absent. FlatBuffers 2.0 verifies that
// they lie inside, not that they are aligned; so they are copied as bytes.
template <typename T, typename Vector>
std::vector<T> Elements(const Vector* vector) {
  std::vector<T> elements(vector == nullptr ? 0 : vector->size());
  if (!elements.empty()) {
    std::memcpy(elements.data(), vector->Data(), elements.size() * sizeof(T));
  }
  return elements;
}

Result<Operand> Read(const fb::Operand& operand) {
  const auto kind = static_cast<uint8_t>(operand.kind());
  if (kind > static_cast<uint8_t>(OperandKind::kWeight)) {
    return Error{ErrorCode::kBadInput,
                 fmt::format("unknown operand kind {}", kind)};
  }
  return Operand{static_cast<OperandKind>(kind), operand.index()};
}

Result<Instruction> Read(const fb::Instruction& table) {
  if (table.op() >= kNumPlanOps) {
    return Error{ErrorCode::kBadInput,
                 fmt::format("unknown op {}", table.op())};
  }
  Instruction instruction;
  instruction.op = static_cast<PlanOp>(table.op());
  for (const fb::Operand& operand : Elements<fb::Operand>(table.in())) {
    HX_ASSIGN_OR_RETURN(const Operand in, Read(operand));
    instruction.in.push_back(in);
  }
  HX_ASSIGN_OR_RETURN(instruction.out, Read(*table.out()));
  instruction.rows = {.first = table.first_row(), .count = table.rows()};
  instruction.ints = Elements<int64_t>(table.ints());
  instruction.floats = Elements<float>(table.floats());
  if (table.name() != nullptr) instruction.name = table.name()->str();
  return instruction;
}

Result<PlanWeight> Read(const fb::Weight& table) {
  if (table.dtype() >= AllDTypes().size()) {
    return Error{ErrorCode::kBadInput,
                 fmt::format("unknown dtype {}", table.dtype())};
  }
  if (table.layout() > static_cast<uint8_t>(WeightLayout::kPanels)) {
    return Error{ErrorCode::kBadInput,
                 fmt::format("unknown layout {}", table.layout())};
  }
  return PlanWeight{.segment = table.segment(),
                    .dtype = static_cast<DType>(table.dtype()),
                    .rows = table.rows(),
                    .cols = table.cols(),
                    .layout = static_cast<WeightLayout>(table.layout())};
}

}  // namespace

std::string SerializePlan(const Plan& plan) {
  flatbuffers::FlatBufferBuilder builder;
  std::vector<flatbuffers::Offset<fb::Weight>> weights;
  for (const PlanWeight& weight : plan.weights) {
    weights.push_back(fb::CreateWeight(
        builder, weight.segment, static_cast<uint8_t>(weight.dtype),
        weight.rows, weight.cols, static_cast<uint8_t>(weight.layout)));
  }
  std::vector<flatbuffers::Offset<fb::Instruction>> code;
  for (const Instruction& instruction : plan.code) {
    code.push_back(Write(builder, instruction));
  }
  const auto weights_offset = builder.CreateVector(weights);
  const auto code_offset = builder.CreateVector(code);
  fb::FinishPlanBuffer(
      builder, fb::CreatePlan(builder, kPlanFormatVersion, plan.arena_bytes,
                              plan.step_tokens, plan.context_tokens,
                              weights_offset, code_offset));
  return std::string(reinterpret_cast<const char*>(builder.GetBufferPointer()),
                     builder.GetSize());
}

Result<Plan> ParsePlan(ByteSpan bytes) {
  HX_CHECK(reinterpret_cast<uintptr_t>(bytes.data()) % sizeof(uint64_t) == 0);
  flatbuffers::Verifier verifier(reinterpret_cast<const uint8_t*>(bytes.data()),
                                 bytes.size());
  // The identifier is read before the verifier looks at the size.
  if (bytes.size() < 8 || !fb::VerifyPlanBuffer(verifier)) {
    return Error{ErrorCode::kBadInput,
                 "damaged: not a CPU plan; compile the model again"};
  }
  const fb::Plan& table = *fb::GetPlan(bytes.data());
  if (table.format_version() != kPlanFormatVersion) {
    return Error{
        ErrorCode::kBadInput,
        fmt::format("CPU plan of format version {}, this program reads "
                    "version {}; compile the model again",
                    table.format_version(), kPlanFormatVersion)};
  }
  Plan plan{.arena_bytes = table.arena_bytes(),
            .step_tokens = table.step_tokens(),
            .context_tokens = table.context_tokens()};
  for (const fb::Weight* weight : *table.weights()) {
    auto read = Read(*weight);
    if (!read.ok()) {
      return std::move(read).error().With(
          fmt::format("weight {}", plan.weights.size()));
    }
    plan.weights.push_back(*read);
  }
  for (const fb::Instruction* instruction : *table.code()) {
    auto read = Read(*instruction);
    if (!read.ok()) {
      return std::move(read).error().With(
          fmt::format("instruction {}", plan.code.size()));
    }
    plan.code.push_back(*std::move(read));
  }
  return plan;
}

}  // namespace hexllm::cpu
