#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "cli/recipe_search.h"
#include "eval/svg_plot.h"
#include "eval/taps.h"
#include "quant/scheme.h"

namespace hexllm::cli {
namespace {

// "q_proj" of "model.layers.0.self_attn.q_proj".
std::string KindOf(const std::string& layer) {
  return layer.substr(layer.rfind('.') + 1);
}

// "16a4w_block 180, 16a8w 31".
std::string CountSchemes(const SearchResult& result, const SearchPoint& point) {
  std::map<std::string_view, size_t> counts;
  for (size_t i = 0; i < point.chosen.size(); ++i)
    ++counts[result.layers[i].ways[point.chosen[i]].settings.scheme->name];
  std::string text;
  for (const auto& [scheme, count] : counts)
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", scheme, count);
  return text;
}

std::string FrontPlot(const SearchResult& result, quant::CostKind kind) {
  const bool in_time = kind == quant::CostKind::kMicroseconds;
  std::vector<PlotSeries> series = {{"predicted", {}}, {"measured", {}}};
  PlotSeries chosen{"chosen", {}};
  for (size_t i = 0; i < result.points.size(); ++i) {
    const SearchPoint& point = result.points[i];
    const double cost = in_time ? point.us / 1e3 : point.bytes / 1e6;
    const PlotPoint measured{cost, point.measured.mean_kld};
    if (i == result.best) chosen.points.push_back(measured);
    if (point.label != "front") continue;
    series[0].points.push_back({cost, point.predicted_kld});
    series[1].points.push_back(measured);
  }
  series.push_back(std::move(chosen));
  return LinePlot({.title = "KL divergence from the float graph",
                   .x_axis = in_time ? "estimated ms a token" : "weights, MB",
                   .y_axis = "nats a token"},
                  series);
}

// Lines over the layers' numbers, one for each kind; the head has none.
std::string LayerPlot(const SearchResult& result) {
  const SearchPoint& best = result.points[result.best];
  std::vector<PlotSeries> series;
  for (size_t i = 0; i < result.layers.size(); ++i) {
    const quant::LayerSensitivity& layer = result.layers[i];
    const auto number = LayerOf(layer.layer.name);
    if (!number) continue;
    const std::string kind = KindOf(layer.layer.name);
    auto at = std::ranges::find(series, kind, &PlotSeries::name);
    if (at == series.end()) at = series.insert(at, {kind, {}});
    at->points.push_back({static_cast<double>(*number),
                          quant::SqnrOf(layer.ways[best.chosen[i]])});
  }
  return LinePlot({.title = "SQNR of the layers' outputs, " + best.recipe.name,
                   .x_axis = "layer",
                   .y_axis = "dB"},
                  series);
}

}  // namespace

std::string SearchTable(const SearchResult& result, const SearchWish& wish) {
  const bool in_time = wish.kind == quant::CostKind::kMicroseconds;
  std::string text = fmt::format(
      "{}, judged on {} tokens; budget {}\n"
      "  {:<8} {:>10} {:>8} {:>12} {:>12} {:>11}  {}\n"
      "  {:<8} {:>10} {:>8} {:>12} {:>12} {:>11.4f}\n",
      result.base.model_name, result.held_out_tokens,
      in_time ? fmt::format("{:.3f} ms a token on {}", wish.budget / 1e3,
                            wish.options.target.soc)
              : fmt::format("{:.3f} MB of weights", wish.budget / 1e6),
      "", "weights MB", in_time ? "ms" : "", "predicted KL", "measured KL",
      "perplexity", "layers", "fp32", "", "", "", "", result.float_perplexity);
  for (size_t i = 0; i < result.points.size(); ++i) {
    const SearchPoint& point = result.points[i];
    const std::string ms =
        in_time ? fmt::format("{}{:.3f}", point.estimated ? "" : "~",
                              point.us / 1e3)
                : "";
    text += fmt::format(
        "{} {:<8} {:>10.3f} {:>8} {:>12.5f} {:>12.5f} {:>11.4f}  {}\n",
        i == result.best ? '*' : ' ', point.label, point.bytes / 1e6, ms,
        point.predicted_kld, point.measured.mean_kld, point.measured.perplexity,
        CountSchemes(result, point));
  }
  if (in_time)
    text +=
        "ms are estimates of the QNN compiler's cost model, of the whole step "
        "or with ~ the sum of its layers; nothing was measured on a device\n";
  return text;
}

std::string SearchSvg(const SearchResult& result, quant::CostKind kind) {
  const std::string plots[] = {FrontPlot(result, kind), LayerPlot(result)};
  return SvgDocument(plots);
}

}  // namespace hexllm::cli
