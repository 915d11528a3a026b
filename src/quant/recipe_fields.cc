#include "quant/recipe_fields.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <span>
#include <vector>

#include "base/near_name.h"
#include "base/quote.h"

namespace hexllm::quant {
namespace {

// The JSON spelling of an enum's values.
template <typename E>
struct EnumName {
  std::string_view name;
  E value;
};

constexpr EnumName<WeightGranularity> kGranularities[] = {
    {"per_channel", WeightGranularity::kPerChannel},
    {"per_tensor", WeightGranularity::kPerTensor},
};
constexpr EnumName<WeightObserverKind> kWeightObservers[] = {
    {"min_max", WeightObserverKind::kMinMax},
    {"mse", WeightObserverKind::kMse},
    {"seq_mse", WeightObserverKind::kSeqMse},
};
constexpr EnumName<RoundingKind> kRoundings[] = {
    {"nearest", RoundingKind::kNearest},
    {"gptq", RoundingKind::kGptq},
};
constexpr EnumName<ObserverKind> kObservers[] = {
    {"min_max", ObserverKind::kMinMax},
    {"moving_average", ObserverKind::kMovingAverage},
    {"percentile", ObserverKind::kPercentile},
    {"histogram_mse", ObserverKind::kHistogramMse},
};

constexpr EnumName<ResidualKind> kResiduals[] = {
    {"auto", ResidualKind::kAuto},
    {"activations", ResidualKind::kActivations},
    {"float16", ResidualKind::kFloat16},
};

// A number stands for kAlpha.
constexpr EnumName<Smoothing::Kind> kSmoothings[] = {
    {"none", Smoothing::Kind::kNone},
    {"search", Smoothing::Kind::kSearch},
};

constexpr EnumName<RotationKind> kRotations[] = {
    {"none", RotationKind::kNone},
    {"hadamard", RotationKind::kHadamard},
    {"random", RotationKind::kRandom},
};

std::string Found(const Json& json) {
  if (json.is_string()) return Quoted(json.get_ref<const std::string&>());
  if (json.is_number()) return DumpJson(json);
  return std::string(JsonTypeName(json));
}

Error Expected(const std::string& expected, const Json& found) {
  return {ErrorCode::kBadInput,
          fmt::format("expected {}, found {}", expected, Found(found))};
}

// The row of `table` whose `name` is the string in `json`, or why there is
// none: `what` names the kind of thing.
template <typename Table>
Result<const typename Table::value_type*> ReadRow(const Json& json,
                                                  const Table& table,
                                                  std::string_view what,
                                                  ErrorCode unknown) {
  if (!json.is_string())
    return Expected(fmt::format("the name of a {} as a string", what), json);
  const auto& name = json.get_ref<const std::string&>();
  const auto found = std::ranges::find(table, name, &Table::value_type::name);
  if (found != table.end()) return &*found;
  std::vector<std::string_view> names;
  for (const auto& row : table) names.push_back(row.name);
  return Error{unknown, fmt::format("unknown {} {}; {}", what, Quoted(name),
                                    SuggestNames(name, names))};
}

template <typename E, size_t kCount>
Result<E> ReadEnum(const Json& json, const EnumName<E> (&table)[kCount],
                   std::string_view what) {
  HX_ASSIGN_OR_RETURN(const auto* row,
                      ReadRow(json, std::span<const EnumName<E>>(table), what,
                              ErrorCode::kBadInput));
  return row->value;
}

template <typename E, size_t kCount>
Json WriteEnum(E value, const EnumName<E> (&table)[kCount]) {
  const auto* row = std::ranges::find(table, value, &EnumName<E>::value);
  HX_CHECK(row != std::end(table));
  return row->name;
}

}  // namespace

Result<const Scheme*> ReadScheme(const Json& json) {
  return ReadRow(json, AllSchemes(), "scheme", ErrorCode::kUnsupported);
}

Json WriteScheme(const Scheme* const& scheme) { return scheme->name; }

Result<WeightGranularity> ReadGranularity(const Json& json) {
  return ReadEnum(json, kGranularities, "granularity");
}

Json WriteGranularity(const WeightGranularity& value) {
  return WriteEnum(value, kGranularities);
}

Result<WeightObserverKind> ReadWeightObserver(const Json& json) {
  return ReadEnum(json, kWeightObservers, "weight observer");
}

Json WriteWeightObserver(const WeightObserverKind& value) {
  return WriteEnum(value, kWeightObservers);
}

Result<RoundingKind> ReadRounding(const Json& json) {
  return ReadEnum(json, kRoundings, "rounding");
}

Json WriteRounding(const RoundingKind& value) {
  return WriteEnum(value, kRoundings);
}

Result<ObserverKind> ReadObserver(const Json& json) {
  return ReadEnum(json, kObservers, "observer");
}

Json WriteObserver(const ObserverKind& value) {
  return WriteEnum(value, kObservers);
}

Result<ResidualKind> ReadResidual(const Json& json) {
  return ReadEnum(json, kResiduals, "residual stream");
}

Json WriteResidual(const ResidualKind& value) {
  return WriteEnum(value, kResiduals);
}

Result<RotationKind> ReadRotation(const Json& json) {
  return ReadEnum(json, kRotations, "rotation");
}

Json WriteRotation(const RotationKind& value) {
  return WriteEnum(value, kRotations);
}

Result<Smoothing> ReadSmoothing(const Json& json) {
  if (json.is_string()) {
    HX_ASSIGN_OR_RETURN(const Smoothing::Kind kind,
                        ReadEnum(json, kSmoothings, "smoothing"));
    return Smoothing{.kind = kind};
  }
  const auto alpha = ReadNumber(json, 0, 1);
  if (!alpha.ok() || alpha.value() == 0)
    return Expected("none, search or a number above 0 and up to 1", json);
  return Smoothing{.kind = Smoothing::Kind::kAlpha, .alpha = alpha.value()};
}

Json WriteSmoothing(const Smoothing& value) {
  if (value.kind == Smoothing::Kind::kAlpha) return value.alpha;
  return WriteEnum(value.kind, kSmoothings);
}

Result<int> ReadInt(const Json& json, int least, int most) {
  const double number = json.is_number() ? json.get<double>() : NAN;
  if (!(least <= number && number <= most) || std::trunc(number) != number) {
    return Expected(fmt::format("a whole number from {} to {}", least, most),
                    json);
  }
  return static_cast<int>(number);
}

Result<int> ReadBlock(const Json& json) {
  const auto block =
      ReadInt(json, std::ranges::min(kBlocks), std::ranges::max(kBlocks));
  if (!block.ok() || std::ranges::count(kBlocks, block.value()) == 0)
    return Expected("16, 32 or 64", json);
  return block.value();
}

Result<int> ReadMseCandidates(const Json& json) {
  return ReadInt(json, 1, 1000);
}

Result<double> ReadNumber(const Json& json, double least, double most) {
  const double number = json.is_number() ? json.get<double>() : NAN;
  if (!(least <= number && number <= most)) {
    return Expected(fmt::format("a number from {} to {}", least, most), json);
  }
  return number;
}

Result<double> ReadPercentile(const Json& json) {
  const auto number = ReadNumber(json, 50, 100);
  if (!number.ok() || number.value() == 50)
    return Expected("a number above 50 and up to 100", json);
  return number.value();
}

Result<double> ReadShare(const Json& json) {
  const auto number = ReadNumber(json, 0, 1);
  if (!number.ok() || number.value() == 0)
    return Expected("a number above 0 and up to 1", json);
  return number.value();
}

Result<bool> ReadBool(const Json& json) {
  if (!json.is_boolean()) return Expected("true or false", json);
  return json.get<bool>();
}

}  // namespace hexllm::quant
