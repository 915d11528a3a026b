// The settings of a layer as a table: key in JSON, place in LayerSettings and
// in Rule, reader and writer. What reads, prints, merges or compares settings
// walks it, so that a setting is named in one place. Used only by recipe*.cc.
// Adding a setting: a member of LayerSettings and Rule, one line in
// ForEachField, one property in recipe.schema.json.
#pragma once

#include <optional>
#include <string_view>

#include "base/json.h"
#include "base/status.h"
#include "quant/recipe.h"

namespace hexllm::quant {

template <typename T>
struct Field {
  std::string_view key;
  T LayerSettings::*setting;
  std::optional<T> Rule::*rule;
  // The value in a recipe's JSON. kBadInput (an unknown scheme: kUnsupported)
  // saying what was expected and found, without the key.
  Result<T> (*read)(const Json& json);
  Json (*write)(const T& value);
};

Result<const Scheme*> ReadScheme(const Json& json);
Json WriteScheme(const Scheme* const& scheme);
Result<int> ReadBlock(const Json& json);
Result<WeightGranularity> ReadGranularity(const Json& json);
Json WriteGranularity(const WeightGranularity& value);
Result<WeightObserverKind> ReadWeightObserver(const Json& json);
Json WriteWeightObserver(const WeightObserverKind& value);
Result<int> ReadMseCandidates(const Json& json);
Result<RoundingKind> ReadRounding(const Json& json);
Json WriteRounding(const RoundingKind& value);
Result<ObserverKind> ReadObserver(const Json& json);
Json WriteObserver(const ObserverKind& value);
Result<double> ReadPercentile(const Json& json);
Result<double> ReadShare(const Json& json);  // above 0, up to 1
Result<bool> ReadBool(const Json& json);
Result<ResidualKind> ReadResidual(const Json& json);
Json WriteResidual(const ResidualKind& value);
Result<RotationKind> ReadRotation(const Json& json);
Json WriteRotation(const RotationKind& value);
Result<Smoothing> ReadSmoothing(const Json& json);
Json WriteSmoothing(const Smoothing& value);
// Whole numbers from `least` to `most`; numbers in those bounds.
Result<int> ReadInt(const Json& json, int least, int most);
Result<double> ReadNumber(const Json& json, double least, double most);
template <typename T>
Json WritePlain(const T& value) {
  return value;
}

// Calls visit(Field<T>) for each setting, in the order in which they are
// written, until one returns an error; returns that.
template <typename Visit>
Status ForEachField(Visit&& visit) {
  using S = LayerSettings;
  Status status;
  const auto next = [&]<typename T>(const Field<T>& field) {
    status = visit(field);
    return status.ok();
  };
  // The first error ends it.
  (void)(next(Field<const Scheme*>{"scheme", &S::scheme, &Rule::scheme,
                                   ReadScheme, WriteScheme}) &&
         next(Field<int>{"block", &S::block, &Rule::block, ReadBlock,
                         WritePlain}) &&
         next(Field<WeightGranularity>{"granularity", &S::granularity,
                                       &Rule::granularity, ReadGranularity,
                                       WriteGranularity}) &&
         next(Field<WeightObserverKind>{
             "weight_observer", &S::weight_observer, &Rule::weight_observer,
             ReadWeightObserver, WriteWeightObserver}) &&
         next(Field<int>{"mse_candidates", &S::mse_candidates,
                         &Rule::mse_candidates, ReadMseCandidates,
                         WritePlain}) &&
         next(Field<int>{"seq_mse_candidates", &S::seq_mse_candidates,
                         &Rule::seq_mse_candidates, ReadMseCandidates,
                         WritePlain}) &&
         next(Field<RoundingKind>{"rounding", &S::rounding, &Rule::rounding,
                                  ReadRounding, WriteRounding}) &&
         next(Field<double>{"gptq_damping", &S::gptq_damping,
                            &Rule::gptq_damping, ReadShare, WritePlain}) &&
         next(Field<ObserverKind>{"observer", &S::observer, &Rule::observer,
                                  ReadObserver, WriteObserver}) &&
         next(Field<double>{"percentile", &S::percentile, &Rule::percentile,
                            ReadPercentile, WritePlain}) &&
         next(Field<double>{"momentum", &S::momentum, &Rule::momentum,
                            ReadShare, WritePlain}) &&
         next(Field<bool>{"symmetric_activations", &S::symmetric_activations,
                          &Rule::symmetric_activations, ReadBool, WritePlain}));
  return status;
}

}  // namespace hexllm::quant
