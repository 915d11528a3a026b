#include "backend/cpu/engine_load.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "backend/cpu/engine_check.h"
#include "backend/cpu/engine_memory.h"
#include "backend/cpu/kernels/packed.h"
#include "backend/cpu/plan.h"
#include "base/check.h"
#include "base/dequantize.h"
#include "base/quote.h"

namespace hexllm::cpu {
namespace {

using artifact::Artifact;
using artifact::GraphEntry;
using artifact::SegmentInfo;
using artifact::SegmentKind;

// As much as any graph input or output may have (artifact validation).
constexpr uint64_t kMaxArenaBytes = uint64_t{1} << 36;
// What integer kernels expect of panels.
constexpr uintptr_t kPanelAlign = 64;

Error Bad(std::string message) {
  return Error{ErrorCode::kBadInput, std::move(message)};
}

// Bytes of the weight's segment; nothing for one that cannot be.
std::optional<uint64_t> WeightBytes(const PlanWeight& weight) {
  const auto stored = StorageBytes(weight.dtype, {weight.rows, weight.cols});
  if (weight.rows < 1 || weight.cols < 1 || !stored) return std::nullopt;
  if (weight.layout == WeightLayout::kRows) {
    const bool numbers =
        IsFloatLike(weight.dtype) || weight.dtype == DType::kI32;
    return numbers ? stored : std::nullopt;
  }
  // Keeps the sums of PackedBytes from overflowing.
  if (weight.rows > kMaxDim || weight.cols > kMaxDim) return std::nullopt;
  const bool two_planes = weight.dtype == DType::kI16;
  const DType packed = two_planes ? DType::kI8 : weight.dtype;
  if (!IsPackable(packed)) return std::nullopt;
  const auto bytes =
      static_cast<uint64_t>(PackedBytes(packed, weight.rows, weight.cols));
  return two_planes ? 2 * bytes : bytes;
}

class ProgramLoader {
 public:
  ProgramLoader(const Artifact& artifact, const GraphEntry& entry,
                const KernelTable& kernels)
      : artifact_(artifact),
        entry_(entry),
        scope_{.entry = entry, .kernels = kernels} {}

  Result<Program> Run(const Plan& plan);

 private:
  Status CheckHead(const Plan& plan);
  Status AddWeight(const PlanWeight& weight);
  Status AddStep(const Instruction& instruction);
  void AddTokenCheck(const CheckedStep& checked);
  Status CheckOutputs() const;
  Status PlaceOperands();

  const Artifact& artifact_;
  const GraphEntry& entry_;
  PlanScope scope_;
  std::vector<CheckedStep> checked_;
  Program program_;
};

Status ProgramLoader::CheckHead(const Plan& plan) {
  if (plan.step_tokens != int64_t{entry_.step_tokens} ||
      plan.context_tokens != int64_t{entry_.context_tokens} ||
      plan.step_tokens < 1 || plan.step_tokens > plan.context_tokens) {
    return Bad(fmt::format("plan for {} of {} tokens, graph '{}' has {} of {}",
                           plan.step_tokens, plan.context_tokens,
                           Printable(entry_.name), entry_.step_tokens,
                           entry_.context_tokens));
  }
  if (plan.arena_bytes > kMaxArenaBytes) {
    return Bad(fmt::format("an arena of {} bytes; at most {} are possible",
                           plan.arena_bytes, kMaxArenaBytes));
  }
  return OkStatus();
}

Status ProgramLoader::AddWeight(const PlanWeight& weight) {
  const std::vector<SegmentInfo>& segments = artifact_.manifest().segments;
  if (weight.segment >= segments.size() ||
      segments[weight.segment].kind != SegmentKind::kWeights) {
    return Bad(fmt::format("segment {} holds no weights", weight.segment));
  }
  const ByteSpan bytes = artifact_.Segment(weight.segment);
  const auto expected = WeightBytes(weight);
  if (!expected || *expected != bytes.size()) {
    return Bad(
        fmt::format("{}[{},{}] does not fit the {} bytes of segment '{}'",
                    DTypeName(weight.dtype), weight.rows, weight.cols,
                    bytes.size(), Printable(segments[weight.segment].name)));
  }
  const bool panels = weight.layout == WeightLayout::kPanels;
  if (panels && reinterpret_cast<uintptr_t>(bytes.data()) % kPanelAlign != 0) {
    return Bad(fmt::format("segment '{}' lies at no multiple of {}",
                           Printable(segments[weight.segment].name),
                           kPanelAlign));
  }
  scope_.weights.push_back(
      {.data = bytes.data(),
       .dtype = weight.dtype,
       .rows = weight.rows,
       .cols = weight.cols,
       .layout = weight.layout,
       .bytes = static_cast<int64_t>(bytes.size()),
       .row_bytes = static_cast<int64_t>(
           StorageBytes(weight.dtype, {weight.cols}).value_or(0))});
  return OkStatus();
}

Status ProgramLoader::AddStep(const Instruction& instruction) {
  HX_ASSIGN_OR_RETURN(CheckedStep checked,
                      CheckInstruction(instruction, scope_));
  if (instruction.op == PlanOp::kEmbed) AddTokenCheck(checked);
  program_.scratch_floats =
      std::max(program_.scratch_floats, checked.scratch_floats);
  checked_.push_back(std::move(checked));
  return OkStatus();
}

void ProgramLoader::AddTokenCheck(const CheckedStep& checked) {
  program_.token_checks.push_back({.input = checked.operands[0].index,
                                   .vocab = checked.step.weight.rows,
                                   .rows = checked.step.rows});
}

Status ProgramLoader::CheckOutputs() const {
  for (size_t i = 0; i < entry_.outputs.size(); ++i) {
    const auto writes = [&](const CheckedStep& checked) {
      return checked.operands[kOutSlot] ==
             Operand{.kind = OperandKind::kOutput, .index = i};
    };
    if (std::none_of(checked_.begin(), checked_.end(), writes)) {
      return Bad(fmt::format("nothing writes output {}",
                             Printable(RoleToString(entry_.outputs[i].role))));
    }
  }
  return OkStatus();
}

// Allocates the arena, points the steps into it, and notes which slots are to
// be filled in by Bind.
Status ProgramLoader::PlaceOperands() {
  HX_ASSIGN_OR_RETURN(program_.arena, AllocateBuffer(scope_.arena_bytes));
  program_.input_slots.resize(entry_.inputs.size());
  program_.output_slots.resize(entry_.outputs.size());
  std::byte* const arena = program_.arena.bytes().data();
  for (const CheckedStep& checked : checked_) {
    Step step = checked.step;
    for (size_t slot = 0; slot < checked.operands.size(); ++slot) {
      const Operand& operand = checked.operands[slot];
      const IoSlot io{.step = program_.steps.size(), .slot = slot};
      if (operand.kind == OperandKind::kArena) {
        step.at[slot] = arena + operand.index;
      } else if (operand.kind == OperandKind::kInput) {
        program_.input_slots[operand.index].push_back(io);
      } else if (operand.kind == OperandKind::kOutput) {
        program_.output_slots[operand.index].push_back(io);
      }
    }
    program_.steps.push_back(step);
  }
  return OkStatus();
}

Result<Program> ProgramLoader::Run(const Plan& plan) {
  HX_RETURN_IF_ERROR(CheckHead(plan));
  scope_.arena_bytes = plan.arena_bytes;
  for (size_t i = 0; i < plan.weights.size(); ++i) {
    Status status = AddWeight(plan.weights[i]);
    if (!status.ok()) {
      return std::move(status).error().With(fmt::format("weight {}", i));
    }
  }
  for (size_t i = 0; i < plan.code.size(); ++i) {
    Status status = AddStep(plan.code[i]);
    if (!status.ok()) {
      return std::move(status).error().With(
          fmt::format("instruction {} ({} {})", i, PlanOpName(plan.code[i].op),
                      Quoted(plan.code[i].name)));
    }
  }
  HX_RETURN_IF_ERROR(CheckOutputs());
  HX_RETURN_IF_ERROR(PlaceOperands());
  for (const WeightView& weight : scope_.weights) {
    Prefetch({weight.data, static_cast<size_t>(weight.bytes)});
  }
  return std::move(program_);
}

Result<Program> LoadPlan(const Artifact& artifact, const GraphEntry& entry,
                         const KernelTable& kernels) {
  HX_ASSIGN_OR_RETURN(const Plan plan,
                      ParsePlan(artifact.Segment(entry.program)));
  return ProgramLoader(artifact, entry, kernels).Run(plan);
}

}  // namespace

Result<Program> LoadProgram(const Artifact& artifact, size_t index,
                            const KernelTable& kernels) {
  const GraphEntry& entry = artifact.manifest().graphs[index];
  auto program = LoadPlan(artifact, entry, kernels);
  if (program.ok()) return program;
  const std::string& segment = artifact.manifest().segments[entry.program].name;
  return std::move(program).error().With(
      fmt::format("{}: segment {}", artifact.path(), Quoted(segment)));
}

}  // namespace hexllm::cpu
