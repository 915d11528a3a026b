// Small plots as inline SVG: lines over a row of places, and clouds of points.
// Used by eval/report_html and cli/ (recipe search).
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace hexllm {

// `text` for HTML and SVG: & < > " ' as entities, control characters but line
// breaks and tabs, and what is not UTF-8, as U+FFFD.
std::string HtmlEscaped(std::string_view text);

struct PlotPoint {
  double x = 0;
  double y = 0;
};

struct PlotSeries {
  std::string name;
  std::vector<PlotPoint> points;  // finite
};

struct PlotText {
  std::string title, x_axis, y_axis;
};

// An <svg> with a line for each series (at most eight are told apart by
// colour), and points that show their values when pointed at.
std::string LinePlot(const PlotText& text, std::span<const PlotSeries> series);

// An <svg> with one cloud and the line y = x, both axes of one scale.
std::string ScatterPlot(const PlotText& text,
                        std::span<const PlotPoint> points);

// Plots of these functions one below the other, as a file of its own.
std::string SvgDocument(std::span<const std::string> plots);
// How axes and titles look, as CSS for the page that plots stand in.
inline constexpr std::string_view kPlotStyle =
    "svg .g{stroke:#e3e6ea}svg .t{font-weight:600;font-size:13px}";

}  // namespace hexllm
