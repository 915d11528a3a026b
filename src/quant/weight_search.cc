#include "quant/weight_search.h"

#include <fmt/format.h>

#include <utility>
#include <vector>

#include "base/check.h"
#include "base/quote.h"
#include "quant/gptq.h"
#include "quant/input_moments.h"
#include "quant/seq_mse.h"
#include "quant/seq_mse_blocks.h"

namespace hexllm::quant {
namespace {

void AddWeight(const ir::Constant& weight, Hasher& key) {
  HX_CHECK(weight.codes.empty());
  key.AddNumber(weight.type.dtype);
  key.AddNumbers<int64_t>(weight.type.shape);
  key.AddNumbers<int64_t>(weight.rows);
  key.Add(weight.bytes);
}

// Scales and factors alone: the rest follows from the settings.
std::string NumbersOf(const ir::Encoding& encoding) {
  ByteWriter out;
  out.WriteBytes(std::as_bytes(std::span(encoding.scales)));
  out.WriteBytes(std::as_bytes(std::span(encoding.block_scales)));
  return std::move(out).Take();
}

// Of an encoding with as many numbers as `encoding`.
Status ReadNumbers(ByteSpan bytes, ir::Encoding& encoding) {
  ByteReader in(bytes);
  for (float& scale : encoding.scales) {
    HX_ASSIGN_OR_RETURN(scale, in.Read<float>());
  }
  for (uint8_t& factor : encoding.block_scales) {
    HX_ASSIGN_OR_RETURN(factor, in.Read<uint8_t>());
  }
  return OkStatus();
}

}  // namespace

bool WantsSearch(const LayerSettings& settings) {
  return settings.weight_observer == WeightObserverKind::kSeqMse ||
         settings.rounding == RoundingKind::kGptq;
}

WeightSearch::WeightSearch(const SearchContext& context) : context_(context) {}
WeightSearch::~WeightSearch() = default;

Result<InputMoments*> WeightSearch::MomentsOf(const Target& target) {
  const std::string& input = context_.inputs.InputOf(target.layer);
  if (moments_ != nullptr && input_ == input) return moments_.get();
  moments_.reset();
  HX_ASSIGN_OR_RETURN(const InputSample sample,
                      context_.inputs.Sample(target.layer));
  moments_ = std::make_unique<InputMoments>(sample, ir::RowElems(target.weight),
                                            context_);
  input_ = input;
  return moments_.get();
}

Result<Hasher> WeightSearch::KeyOf(std::string_view kind, const Target& target,
                                   const ir::Encoding& encoding) {
  Hasher key = context_.cache->StartKey(kind);
  HX_ASSIGN_OR_RETURN(const Digest inputs, context_.inputs.Key());
  key.Add(inputs);
  key.Add(context_.inputs.InputOf(target.layer));
  AddWeight(target.weight, key);
  key.AddNumber(encoding.bits);
  key.AddNumber(encoding.axis);
  key.AddNumber(encoding.block);
  key.Add(NumbersOf(encoding));
  return key;
}

Result<ir::Encoding> WeightSearch::Scales(const Target& target,
                                          ir::Encoding encoding) {
  Digest key;
  const int candidates = target.settings.seq_mse_candidates;
  if (context_.cache != nullptr) {
    HX_ASSIGN_OR_RETURN(Hasher hasher, KeyOf("seq_mse", target, encoding));
    hasher.AddNumber(candidates);
    key = hasher.Finish();
    if (const auto entry = context_.cache->Find(key, context_.progress)) {
      HX_RETURN_IF_ERROR(ReadNumbers(entry->bytes, encoding));
      return encoding;
    }
  }
  HX_ASSIGN_OR_RETURN(InputMoments* const inputs, MomentsOf(target));
  encoding = encoding.block > 0
                 ? SearchBlockScales(target.weight, *inputs, candidates,
                                     std::move(encoding))
                 : SearchScales(target.weight, *inputs, candidates,
                                std::move(encoding));
  if (context_.cache != nullptr)
    context_.cache->Store(key, AsBytes(NumbersOf(encoding)), context_.progress);
  if (context_.release) context_.release();
  return encoding;
}

Result<ChosenCodes> WeightSearch::Codes(const Target& target,
                                        const ir::Encoding& encoding) {
  Digest key;
  const double damping = target.settings.gptq_damping;
  if (context_.cache != nullptr) {
    HX_ASSIGN_OR_RETURN(Hasher hasher, KeyOf("gptq", target, encoding));
    hasher.AddNumber(damping);
    key = hasher.Finish();
  }
  const auto stored = [&]() -> std::optional<ChosenCodes> {
    if (context_.cache == nullptr) return std::nullopt;
    auto entry = context_.cache->Find(key, context_.progress);
    if (!entry) return std::nullopt;
    auto owner = std::make_shared<FileCache::Entry>(std::move(*entry));
    return ChosenCodes{.bytes = owner->bytes, .owner = owner};
  };
  if (auto found = stored()) return *std::move(found);
  HX_ASSIGN_OR_RETURN(InputMoments* const inputs, MomentsOf(target));
  auto made = std::make_shared<std::vector<std::byte>>(
      GptqCodes(target.weight, encoding, damping, *inputs));
  if (context_.release) context_.release();
  if (context_.cache != nullptr) {
    // From here on the file has them, not memory.
    context_.cache->Store(key, *made, context_.progress);
    if (auto found = stored()) return *std::move(found);
  }
  return ChosenCodes{.bytes = *made, .owner = made};
}

}  // namespace hexllm::quant
