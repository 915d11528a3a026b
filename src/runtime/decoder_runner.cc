#include "runtime/decoder_runner.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <string>

#include "base/check.h"
#include "runtime/io_codec.h"

namespace hexllm {

using artifact::IoSpec;

DecoderRunner::DecoderRunner(const RunnerConfig& config, const StepGraph& step)
    : config_(config), step_(step) {
  const auto& manifest = config_.artifact->manifest();
  past_columns_ = manifest.context_tokens - step_.step_tokens;
  columns_.k.resize(manifest.layers);
  columns_.v.resize(manifest.layers);
  columns_.step_tokens = step_.step_tokens;
  chain_.resize(step_.step_tokens);
  ids_.resize(step_.step_tokens);
  positions_.resize(step_.step_tokens);
  parents_.resize(step_.step_tokens);
  row_numbers_.resize(step_.step_tokens);
  std::iota(row_numbers_.begin(), row_numbers_.end(), 0U);
}

Result<std::unique_ptr<DecoderRunner>> DecoderRunner::Create(
    const RunnerConfig& config, const StepGraph& step) {
  std::unique_ptr<DecoderRunner> runner(new DecoderRunner(config, step));
  for (const size_t index : step.shards) {
    if (auto status = runner->LoadShard(index); !status.ok()) {
      const auto& name = config.artifact->manifest().graphs[index].name;
      return std::move(status).error().With("graph \"" + name + "\"");
    }
  }
  HX_RETURN_IF_ERROR(runner->BindCache());
  return runner;
}

// With the smart mask once, with the shift pointer before each step.
Status DecoderRunner::BindCache() {
  for (const CacheInput& input : cache_inputs_) {
    const auto memory = input.kind == RoleKind::kKIn
                            ? config_.kv->K(input.layer, past_columns_)
                            : config_.kv->V(input.layer, past_columns_);
    HX_RETURN_IF_ERROR(
        input.graph->Bind(IoDirection::kInput, input.index, memory));
  }
  return OkStatus();
}

Status DecoderRunner::LoadShard(size_t index) {
  HX_ASSIGN_OR_RETURN(auto graph,
                      config_.engine->Load(config_.artifact, index));
  HX_RETURN_IF_ERROR(BindShard(*graph));
  graphs_.push_back(std::move(graph));
  return OkStatus();
}

Status DecoderRunner::BindShard(ExecutableGraph& graph) {
  const auto& entry = graph.entry();
  for (size_t i = 0; i < entry.inputs.size(); ++i) {
    const Role& role = entry.inputs[i].role;
    if (role.kind == RoleKind::kKIn || role.kind == RoleKind::kVIn) {
      cache_inputs_.push_back(
          {&graph, i, role.kind, static_cast<size_t>(role.index)});
      continue;
    }
    HX_ASSIGN_OR_RETURN(auto memory, InputMemory(entry.inputs[i]));
    HX_RETURN_IF_ERROR(graph.Bind(IoDirection::kInput, i, memory));
  }
  for (size_t i = 0; i < entry.outputs.size(); ++i) {
    HX_ASSIGN_OR_RETURN(auto memory, OutputMemory(entry.outputs[i]));
    HX_RETURN_IF_ERROR(graph.Bind(IoDirection::kOutput, i, memory));
  }
  return OkStatus();
}

Result<std::span<std::byte>> DecoderRunner::InputMemory(const IoSpec& spec) {
  // hidden_in is the last hidden_out; the others may be shared by shards.
  const Role role = spec.role.kind == RoleKind::kHiddenIn
                        ? Role{RoleKind::kHiddenOut}
                        : spec.role;
  for (auto io = ios_.rbegin(); io != ios_.rend(); ++io) {
    if (!((*io)->spec.role == role)) continue;
    if (SameStorage((*io)->spec, spec) &&
        (*io)->spec.mask_visible == spec.mask_visible &&
        (*io)->spec.mask_hidden == spec.mask_hidden)
      return (*io)->buffer.bytes();
    return Error{ErrorCode::kBadInput,
                 RoleToString(spec.role) +
                     " differs in form from the same input of a shard before"};
  }
  HX_ASSIGN_OR_RETURN(auto memory, NewIo(spec));
  AddFiller(spec, memory);
  return memory;
}

Result<std::span<std::byte>> DecoderRunner::OutputMemory(const IoSpec& spec) {
  HX_ASSIGN_OR_RETURN(auto memory, NewIo(spec));
  const auto index = static_cast<size_t>(spec.role.index);
  if (spec.role.kind == RoleKind::kKOut) columns_.k[index] = memory;
  if (spec.role.kind == RoleKind::kVOut) columns_.v[index] = memory;
  if (spec.role.kind == RoleKind::kLogits) {
    logits_ = ios_.back().get();
    if (spec.dtype != DType::kF32)
      logits_row_.resize(config_.artifact->manifest().vocab_size);
  }
  if (spec.role.kind == RoleKind::kTap) {
    taps_.push_back(ios_.back().get());
    const size_t values = memory.size() / ElementBytes(spec.dtype);
    if (spec.dtype != DType::kF32 && values > tap_values_.size())
      tap_values_.resize(values);
  }
  return memory;
}

Result<std::span<std::byte>> DecoderRunner::NewIo(const IoSpec& spec) {
  // The artifact's reader has bounded it.
  const uint64_t bytes = StorageBytes(spec.dtype, spec.shape).value();
  HX_ASSIGN_OR_RETURN(Buffer buffer,
                      config_.engine->Allocate(static_cast<size_t>(bytes)));
  ios_.push_back(std::make_unique<Io>(Io{spec, std::move(buffer)}));
  return ios_.back()->buffer.bytes();
}

void DecoderRunner::AddFiller(const IoSpec& spec, std::span<std::byte> memory) {
  const auto& manifest = config_.artifact->manifest();
  const auto index = static_cast<size_t>(spec.role.index);
  if (spec.role.kind == RoleKind::kToken) {
    tokens_ = memory;
  } else if (spec.role.kind == RoleKind::kEmbedding) {
    // The artifact's reader has matched the two.
    const artifact::EmbeddingTable& table = manifest.embedding.value();
    embedding_.emplace(spec, table.dtype,
                       config_.artifact->Segment(table.segment), memory);
  } else if (spec.role.kind == RoleKind::kMask) {
    masks_.emplace_back(spec, manifest.mask_windows[index], memory);
  } else {
    HX_CHECK(spec.role.kind == RoleKind::kRopeCos ||
             spec.role.kind == RoleKind::kRopeSin);
    ropes_.emplace_back(spec, RopeRowsOf(*config_.artifact, spec.role), memory);
  }
}

// Row `first_row_ + i` gets token i. Padding stands at position 0.
void DecoderRunner::PlaceRows(std::span<const StepToken> tokens) {
  first_row_ = step_tokens() - static_cast<uint32_t>(tokens.size());
  const uint32_t past = config_.kv->tokens();
  std::fill_n(ids_.begin(), first_row_, 0);
  std::fill_n(positions_.begin(), first_row_, 0U);
  for (uint32_t i = 0; i < tokens.size(); ++i) {
    const StepToken& token = tokens[i];
    const uint32_t row = first_row_ + i;
    const bool follows = token.parent != kNoParent;
    HX_CHECK(!follows || token.parent < i);
    ids_[row] = token.id;
    parents_[row] = follows ? first_row_ + token.parent : kNoParent;
    positions_[row] = follows ? positions_[parents_[row]] + 1 : past;
  }
}

void DecoderRunner::FillInputs() {
  if (embedding_) {
    embedding_->Fill(std::span(ids_).subspan(first_row_));
  } else {
    std::memcpy(tokens_.data(), ids_.data(), ids_.size() * sizeof(int32_t));
  }
  for (RopeFiller& rope : ropes_) rope.Fill(positions_);
  for (MaskWriter& mask : masks_) {
    mask.Write({.past_tokens = config_.kv->tokens(),
                .first_row = first_row_,
                .first_column = config_.kv->first_column(),
                .parents = parents_});
  }
}

void DecoderRunner::ChooseRope(uint32_t prompt_tokens) {
  for (RopeFiller& rope : ropes_) rope.Choose(prompt_tokens);
}

bool DecoderRunner::HasSameRope(uint32_t prompt_tokens,
                                uint32_t other_tokens) const {
  return std::all_of(ropes_.begin(), ropes_.end(), [&](const RopeFiller& rope) {
    return rope.IsSame(prompt_tokens, other_tokens);
  });
}

Status DecoderRunner::Step(std::span<const int32_t> ids) {
  HX_CHECK(ids.size() <= step_tokens());
  for (uint32_t i = 0; i < ids.size(); ++i)
    chain_[i] = {.id = ids[i], .parent = i == 0 ? kNoParent : i - 1};
  return StepTree(std::span(chain_).first(ids.size()));
}

Status DecoderRunner::StepTree(std::span<const StepToken> tokens) {
  KvManager& kv = *config_.kv;
  HX_CHECK(!tokens.empty() && tokens.size() <= step_tokens());
  HX_CHECK(kv.tokens() <= past_columns_);
  kv.Arrange(past_columns_);
  if (kv.update() == KvUpdate::kShiftPointer) HX_RETURN_IF_ERROR(BindCache());
  PlaceRows(tokens);
  FillInputs();
  for (auto& graph : graphs_)
    HX_RETURN_IF_ERROR(graph->Execute(StepRows{.begin = first_row_}));
  return config_.on_tap ? ShowTaps() : OkStatus();
}

Status DecoderRunner::ShowTaps() {
  for (const Io* tap : taps_) {
    const IoSpec& spec = tap->spec;
    const std::span<const std::byte> bytes = tap->buffer.bytes();
    std::span<const float> values(reinterpret_cast<const float*>(bytes.data()),
                                  bytes.size() / sizeof(float));
    if (spec.dtype != DType::kF32) {
      const auto decoded =
          std::span(tap_values_).first(bytes.size() / ElementBytes(spec.dtype));
      DecodeFloats(bytes, spec, decoded);
      values = decoded;
    }
    HX_RETURN_IF_ERROR(config_.on_tap({.name = spec.role.name,
                                       .shape = spec.shape,
                                       .values = values,
                                       .first_row = first_row_}));
  }
  return OkStatus();
}

void DecoderRunner::Commit() {
  config_.kv->Commit(columns_, std::span(row_numbers_).subspan(first_row_));
}

void DecoderRunner::Commit(uint32_t token) {
  HX_CHECK(token < step_tokens() - first_row_);
  config_.kv->Commit(columns_,
                     std::span(row_numbers_).subspan(first_row_ + token, 1));
}

std::span<const float> DecoderRunner::Logits(uint32_t token) {
  const uint32_t row = first_row_ + token;
  const bool is_last = row + 1 == step_tokens();
  HX_CHECK(row < step_tokens() && logits_ != nullptr);
  HX_CHECK(step_.logits_rows == LogitsRows::kAll || is_last);
  const size_t vocab = config_.artifact->manifest().vocab_size;
  const size_t row_bytes = vocab * ElementBytes(logits_->spec.dtype);
  const size_t out_row = step_.logits_rows == LogitsRows::kAll ? row : 0;
  const std::span<const std::byte> bytes =
      std::as_const(*logits_).buffer.bytes().subspan(out_row * row_bytes,
                                                     row_bytes);
  if (logits_->spec.dtype == DType::kF32)
    return {reinterpret_cast<const float*>(bytes.data()), vocab};
  DecodeFloats(bytes, logits_->spec, logits_row_);
  return logits_row_;
}

}  // namespace hexllm
