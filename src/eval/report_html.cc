#include "eval/report_html.h"

#include <fmt/format.h>

#include <algorithm>

#include "eval/report_text.h"
#include "eval/svg_plot.h"

namespace hexllm {
namespace {

constexpr std::string_view kStyle =
    "body{font:15px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:60rem;"
    "padding:0 1rem;color:#1c1e21}table{border-collapse:collapse;margin:1rem 0}"
    "th,td{border:1px solid #d0d4d9;padding:.3rem .7rem;text-align:right}"
    "th:first-child,td:first-child{text-align:left}th{background:#f3f5f7}"
    "svg{width:100%;max-width:44rem;font:11px system-ui,sans-serif}"
    "p.m{color:#586069}pre{background:#f3f5f7;padding:1rem;overflow:auto}";

std::string Cell(std::string_view tag, std::string_view text) {
  return fmt::format("<{0}>{1}</{0}>", tag, HtmlEscaped(text));
}

std::string FigureText(const Figure& figure) {
  return figure.standard_error
             ? fmt::format("{:.4f} \u00B1 {:.4f}", figure.value,
                           *figure.standard_error)
             : fmt::format("{:.4f}", figure.value);
}

std::string TaskSection(const TaskResult& task) {
  std::string html =
      fmt::format("<h2>{}</h2>\n<p class=\"m\">{}</p>\n",
                  HtmlEscaped(task.name), HtmlEscaped(DescribeMeasure(task)));
  html += "<table><tr><th>stage</th><th>recipe</th><th>weights MB</th>";
  if (task.stages.empty()) return html + "</tr></table>\n";
  for (const Figure& figure : task.stages.front().figures)
    html += Cell("th", figure.name);
  html += "</tr>\n";
  for (const StageResult& stage : task.stages) {
    html +=
        "<tr>" + Cell("td", stage.stage) + Cell("td", stage.recipe) +
        Cell("td", fmt::format("{:.1f}",
                               static_cast<double>(stage.weight_bytes) / 1e6));
    for (const Figure& figure : stage.figures)
      html += Cell("td", FigureText(figure));
    html += "</tr>\n";
  }
  return html + "</table>\n";
}

std::string ComparisonTable(std::span<const StageComparison> comparisons) {
  std::string html =
      "<h2>Logits against the reference</h2>\n<table><tr><th>stage</th>"
      "<th>reference</th><th>tokens</th><th>SQNR dB</th><th>mean KLD nats</th>"
      "<th>top-1 flips</th></tr>\n";
  for (const StageComparison& one : comparisons) {
    html += "<tr>" + Cell("td", one.stage) + Cell("td", one.reference) +
            Cell("td", fmt::to_string(one.positions.size())) +
            Cell("td", fmt::format("{:.2f}", one.sqnr_db)) +
            Cell("td", fmt::format("{:.6f}", one.mean_kld)) +
            Cell("td", fmt::to_string(one.flips)) + "</tr>\n";
  }
  return html + "</table>\n";
}

PlotSeries PositionsOf(const StageComparison& comparison) {
  PlotSeries series{.name = comparison.stage, .points = {}};
  for (size_t i = 0; i < comparison.positions.size(); ++i)
    series.points.push_back(
        {static_cast<double>(i), comparison.positions[i].sqnr_db});
  return series;
}

PlotSeries LayersOf(const StageComparison& comparison) {
  PlotSeries series{.name = comparison.stage, .points = {}};
  for (size_t i = 0; i < comparison.layers.size(); ++i)
    series.points.push_back(
        {static_cast<double>(i), comparison.layers[i].sqnr_db});
  return series;
}

std::string ComparisonSection(std::span<const StageComparison> comparisons) {
  if (comparisons.empty()) return "";
  std::string html = ComparisonTable(comparisons);
  std::vector<PlotSeries> layers, positions;
  for (const StageComparison& one : comparisons) {
    if (!one.layers.empty()) layers.push_back(LayersOf(one));
    positions.push_back(PositionsOf(one));
  }
  if (!layers.empty()) {
    html += LinePlot(
        {"SQNR of the residual stream after each layer", "layer", "SQNR dB"},
        layers);
  }
  html +=
      LinePlot({"SQNR of the logits at each position", "position", "SQNR dB"},
               positions);
  for (const StageComparison& one : comparisons) {
    std::vector<PlotPoint> points;
    for (const LogitPair& pair : one.scatter)
      points.push_back(
          {static_cast<double>(pair.reference), static_cast<double>(pair.x)});
    html += ScatterPlot({fmt::format("Logits of {} against {} (a sample)",
                                     one.stage, one.reference),
                         one.reference, one.stage},
                        points);
  }
  return html;
}

}  // namespace

std::string ResultToHtml(const EvalResult& result) {
  std::string html = fmt::format(
      "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
      "<meta name=\"viewport\" content=\"width=device-width\">"
      "<title>{0}: evaluation</title><style>{1}{4}</style></head><body>\n"
      "<h1>{0}</h1>\n<p class=\"m\">{2}{3}. Stage fp is the float graph, qdq "
      "the quantized one on the CPU, device the compiled one, here on "
      "Qualcomm&#39;s x86 simulator unless it ran on a phone.</p>\n",
      HtmlEscaped(result.model), kStyle, HtmlEscaped(result.producer),
      result.mode.empty() ? "" : ", mode " + HtmlEscaped(result.mode),
      kPlotStyle);
  if (result.shard.count > 1) {
    html += fmt::format(
        "<p>Only shard {} of {}: not the figures of the whole "
        "task.</p>\n",
        result.shard.number, result.shard.count);
  }
  for (const TaskResult& task : result.tasks) html += TaskSection(task);
  html += ComparisonSection(result.comparisons);
  for (const Bisection& bisection : result.bisections)
    html += Cell("p", BisectionLine(bisection));
  for (const StageRecipe& recipe : result.recipes) {
    html += fmt::format("<h2>Recipe of {}</h2>\n<pre>{}</pre>\n",
                        HtmlEscaped(recipe.stage), HtmlEscaped(recipe.json));
  }
  return html + "</body></html>\n";
}

}  // namespace hexllm
