#include "cli/suggest.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <optional>

#include "base/json.h"
#include "cli/held_out.h"
#include "cli/model_argument.h"
#include "cli/output.h"
#include "cli/search_base.h"
#include "cli/sensitivity.h"
#include "quant/sensitivity.h"

namespace hexllm::cli {
namespace {

constexpr std::string_view kFlag = "--quant-recipe-suggestion";

// `name` as the beginning of a file's name.
std::string FileStem(const std::string& name) {
  std::string stem = name;
  for (char& c : stem) {
    const auto byte = static_cast<unsigned char>(c);
    if (std::isalnum(byte) == 0 && c != '-' && c != '_' && c != '.') c = '_';
  }
  return stem.empty() || stem.front() == '.' ? "model" + stem : stem;
}

std::string Row(std::string_view name, double bytes, double predicted,
                const HeldOutFigures& measured) {
  return fmt::format("  {:<8} {:>10.3f} {:>12.5f} {:>12.5f} {:>11.4f}", name,
                     bytes / 1e6, predicted, measured.mean_kld,
                     measured.perplexity);
}

// The layers in which most of the loss is.
std::string MostSensitive(std::span<const quant::LayerSensitivity> layers) {
  std::vector<const quant::LayerSensitivity*> order;
  double sum = 0;
  for (const auto& layer : layers) {
    order.push_back(&layer);
    sum += quant::LossOf(layer, layer.base);
  }
  const auto loss = [](const quant::LayerSensitivity* layer) {
    return quant::LossOf(*layer, layer->base);
  };
  std::ranges::stable_sort(order, std::greater(), loss);
  std::string text = "most sensitive:";
  for (size_t i = 0; i < std::min<size_t>(5, order.size()); ++i) {
    text +=
        fmt::format("{} {} ({:.0f}%)", i == 0 ? "" : ",", order[i]->layer.name,
                    sum > 0 ? 100 * loss(order[i]) / sum : 0);
  }
  return text + "\n";
}

// The names of the files, beside the artifact.
struct Place {
  std::filesystem::path folder;
  std::string stem;

  std::string Csv() const {
    return (folder / (stem + "_quantization_error.csv")).string();
  }
  // Of the recipe suggested as `name`.
  std::string Recipe(std::string_view name) const {
    return (folder / fmt::format("{}_suggested_{}.json", stem, name)).string();
  }
};

// kUsage when one of the files is what this command reads or writes otherwise.
Status CheckFree(const Place& place, const std::string& model,
                 const std::vector<std::string>& inputs,
                 const std::vector<std::string>& outputs) {
  std::vector<std::string> paths = {place.Csv()};
  for (const std::string_view name : quant::kSuggestionNames)
    paths.push_back(place.Recipe(name));
  for (const std::string& path : paths) {
    if (const Status checked = CheckOutput(path, model, inputs);
        !checked.ok()) {
      return Error{checked.error().code,
                   fmt::format("{}: expected a name that {} is free to write, "
                               "found an input of this command; give the input "
                               "another name, or -o another folder",
                               path, kFlag)};
    }
    for (const std::string& output : outputs) {
      if (output.empty()) continue;
      HX_RETURN_IF_ERROR(CheckOutputsDiffer(output, path, kFlag));
    }
  }
  return OkStatus();
}

// kUsage when the artifact goes to a device or a pipe, beside which no files
// belong.
Status CheckFolder(const std::string& artifact) {
  std::error_code error;
  const auto status = std::filesystem::status(artifact, error);
  if (!std::filesystem::exists(status) ||
      std::filesystem::is_regular_file(status))
    return OkStatus();
  return Error{ErrorCode::kUsage,
               fmt::format("{}: expected -o FILE, beside which suggestions go, "
                           "found {}, which is no file",
                           kFlag, artifact)};
}

// How the description of a suggestion begins.
std::string Signature() {
  return fmt::format("Suggested by `hexllm compile {}`", kFlag);
}

// True for a file that an earlier run suggested.
bool IsSuggestion(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(
          std::filesystem::symlink_status(path, error)))
    return false;
  const auto json = ReadJsonFile(path);
  if (!json.ok()) return false;
  const auto description = GetString(*json, "description");
  return description.ok() && description->starts_with(Signature());
}

// Judges one suggestion after the other.
class Judge {
 public:
  Judge(const SearchBase& base, std::span<const quant::LayerSensitivity> layers,
        HeldOut& held_out)
      : base_(base), layers_(layers), held_out_(held_out) {}

  // The table's head and the base's row.
  Status Begin(ProgressSink& progress) {
    HX_ASSIGN_OR_RETURN(of_base_, held_out_.Measure(base_.recipe, progress));
    const quant::Allocation start =
        quant::BaseAllocation(layers_, quant::CostKind::kBytes);
    fixed_ = static_cast<double>(base_.weight_bytes) - start.cost;
    table_ = fmt::format(
        "{}, judged on {} tokens: perplexity {:.4f} in fp32\n"
        "  {:<8} {:>10} {:>12} {:>12} {:>11}  {}\n{}  {}\n",
        base_.model_name, held_out_.tokens(), held_out_.float_perplexity(), "",
        "weights MB", "predicted KL", "measured KL", "perplexity", "file",
        Row("base", fixed_ + start.cost, start.loss, of_base_),
        base_.recipe.name);
    return OkStatus();
  }

  // Adds a row. The recipe's file when it measures no worse than the base.
  Result<std::optional<OutputFile>> Add(const quant::Suggestion& suggestion,
                                        const Place& place,
                                        ProgressSink& progress) {
    HX_ASSIGN_OR_RETURN(
        quant::Recipe recipe,
        quant::RecipeOf(base_.recipe, layers_, suggestion.allocation.chosen));
    recipe.name = fmt::format("{}_{}", base_.recipe.name, suggestion.name);
    recipe.description = fmt::format("{}, from {}. {}", Signature(),
                                     base_.recipe.name, suggestion.meaning);
    HX_ASSIGN_OR_RETURN(const HeldOutFigures measured,
                        held_out_.Measure(recipe, progress));
    table_ += Row(suggestion.name, fixed_ + suggestion.allocation.cost,
                  suggestion.allocation.loss, measured);
    if (measured.mean_kld > of_base_.mean_kld) {
      table_ += "  none: the base measures better\n";
      return std::optional<OutputFile>();
    }
    const std::string path = place.Recipe(suggestion.name);
    HX_ASSIGN_OR_RETURN(OutputFile file, OutputFile::Create(path));
    table_ += fmt::format("  {}\n", path);
    HX_RETURN_IF_ERROR(file.Write(AsBytes(quant::RecipeToJson(recipe))));
    return std::optional<OutputFile>(std::move(file));
  }

  const std::string& table() const { return table_; }

 private:
  const SearchBase& base_;
  std::span<const quant::LayerSensitivity> layers_;
  HeldOut& held_out_;
  HeldOutFigures of_base_;
  double fixed_ = 0;  // bytes that no linear has
  std::string table_;
};

}  // namespace

Result<Suggestions> Suggestions::Make(const std::string& model,
                                      const std::string& artifact,
                                      const CompileOptions& options,
                                      const std::vector<std::string>& inputs,
                                      ProgressSink& progress) {
  HX_RETURN_IF_ERROR(CheckFolder(artifact));
  HX_ASSIGN_OR_RETURN(const SearchBase base,
                      FindSearchBase(model, options, kFlag, progress));
  const Place place{std::filesystem::path(artifact).parent_path(),
                    FileStem(base.model_name)};
  HX_RETURN_IF_ERROR(
      CheckFree(place, model, inputs, {artifact, options.quant_attrs_path}));
  HX_ASSIGN_OR_RETURN(OutputFile csv, OutputFile::Create(place.Csv()));
  HX_ASSIGN_OR_RETURN(
      HeldOut held_out,
      HeldOut::Open(model, options, BuiltinHeldOutText(), progress));
  HX_ASSIGN_OR_RETURN(
      const std::vector<quant::LayerSensitivity> layers,
      MeasureSensitivities(model, options, base.recipe, progress));
  HX_RETURN_IF_ERROR(csv.Write(AsBytes(quant::SensitivityCsv(layers))));
  Suggestions made;
  made.files_.push_back(std::move(csv));
  Judge judge(base, layers, held_out);
  HX_RETURN_IF_ERROR(judge.Begin(progress));
  std::vector<std::string_view> written;
  for (const quant::Suggestion& suggestion : quant::Suggest(layers)) {
    HX_ASSIGN_OR_RETURN(auto file, judge.Add(suggestion, place, progress));
    if (!file) continue;
    made.files_.push_back(*std::move(file));
    written.push_back(suggestion.name);
  }
  for (const std::string_view name : quant::kSuggestionNames) {
    const std::string path = place.Recipe(name);
    if (std::ranges::find(written, name) == written.end() && IsSuggestion(path))
      made.stale_.push_back(path);
  }
  HX_RETURN_IF_ERROR(PrintNow(judge.table() + MostSensitive(layers)));
  return made;
}

Status Suggestions::Commit(ProgressSink& progress) {
  for (OutputFile& file : files_) HX_RETURN_IF_ERROR(file.Commit());
  for (const std::string& path : stale_) {
    std::error_code error;
    std::filesystem::remove(path, error);
    if (!error) {
      progress.Note(path + ": a suggestion of an earlier run, removed");
      continue;
    }
    return Error{ErrorCode::kEnvironment,
                 fmt::format("{}: cannot remove this suggestion of an earlier "
                             "run: {}",
                             path, error.message())};
  }
  return OkStatus();
}

}  // namespace hexllm::cli
