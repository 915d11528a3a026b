#include "eval/svg_plot.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "text/utf8.h"

namespace hexllm {
namespace {

constexpr double kWidth = 640, kHeight = 320;
constexpr double kLeft = 64, kRight = 16, kTop = 32, kBottom = 48;
constexpr int kTicks = 5;
constexpr const char* kColours[] = {"#1f6feb", "#d1495b", "#2e8b57", "#8a5a00",
                                    "#7b4fa3", "#11838d", "#c2185b", "#5f6b76"};

struct Range {
  double min = INFINITY, max = -INFINITY;
  void Add(double value) {
    min = std::min(min, value);
    max = std::max(max, value);
  }
  // Never empty or of no width.
  void Widen() {
    if (min > max) min = max = 0;
    if (max - min < 1e-9) {
      min -= 1;
      max += 1;
    }
  }
};

// Where numbers come to lie on the picture.
struct Frame {
  Range x, y;
  double X(double value) const {
    return kLeft +
           (value - x.min) / (x.max - x.min) * (kWidth - kLeft - kRight);
  }
  double Y(double value) const {
    return kHeight - kBottom -
           (value - y.min) / (y.max - y.min) * (kHeight - kTop - kBottom);
  }
};

std::string Axes(const Frame& frame, const PlotText& text) {
  std::string svg = fmt::format(
      R"(<text x="{:.0f}" y="18" class="t">{}</text>)"
      R"(<text x="{:.0f}" y="{:.0f}" text-anchor="middle">{}</text>)"
      R"svg(<text transform="translate(14,{:.0f}) rotate(-90)" text-anchor="middle">{}</text>)svg",
      kLeft, HtmlEscaped(text.title), (kLeft + kWidth - kRight) / 2,
      kHeight - 10, HtmlEscaped(text.x_axis), (kTop + kHeight - kBottom) / 2,
      HtmlEscaped(text.y_axis));
  for (int i = 0; i <= kTicks; ++i) {
    const double share = static_cast<double>(i) / kTicks;
    const double x = frame.x.min + share * (frame.x.max - frame.x.min);
    const double y = frame.y.min + share * (frame.y.max - frame.y.min);
    svg += fmt::format(
        R"(<line x1="{:.1f}" x2="{:.1f}" y1="{:.1f}" y2="{:.1f}" class="g"/>)"
        R"(<text x="{:.1f}" y="{:.1f}" text-anchor="end">{:.3g}</text>)"
        R"(<text x="{:.1f}" y="{:.1f}" text-anchor="middle">{:.3g}</text>)",
        kLeft, kWidth - kRight, frame.Y(y), frame.Y(y), kLeft - 6,
        frame.Y(y) + 4, y, frame.X(x), kHeight - kBottom + 16, x);
  }
  return svg;
}

std::string Svg(const std::string& body, const std::string& label) {
  return fmt::format(
      R"(<svg viewBox="0 0 {:.0f} {:.0f}" role="img" aria-label="{}">{}</svg>)"
      "\n",
      kWidth, kHeight, HtmlEscaped(label), body);
}

std::string Dot(const Frame& frame, const PlotPoint& point, double radius,
                std::string_view colour) {
  return fmt::format(
      R"(<circle cx="{:.1f}" cy="{:.1f}" r="{}" fill="{}"><title>{:.4g}, {:.4g}</title></circle>)",
      frame.X(point.x), frame.Y(point.y), radius, colour, point.x, point.y);
}

}  // namespace

std::string HtmlEscaped(std::string_view text) {
  std::string valid;
  AppendValidUtf8(text, valid);
  std::string out;
  for (const char c : valid) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\'':
        out += "&#39;";
        break;
      default:
        if ((static_cast<unsigned char>(c) < 0x20 && c != '\n' && c != '\t') ||
            c == 0x7F)
          out += kReplacementUtf8;
        else
          out += c;
    }
  }
  return out;
}

std::string LinePlot(const PlotText& text, std::span<const PlotSeries> series) {
  Frame frame;
  for (const PlotSeries& one : series) {
    for (const PlotPoint& point : one.points) {
      frame.x.Add(point.x);
      frame.y.Add(point.y);
    }
  }
  frame.x.Widen();
  frame.y.Widen();
  std::string body = Axes(frame, text);
  for (size_t i = 0; i < series.size(); ++i) {
    const char* const colour = kColours[i % std::size(kColours)];
    std::string line;
    for (const PlotPoint& point : series[i].points)
      line += fmt::format("{:.1f},{:.1f} ", frame.X(point.x), frame.Y(point.y));
    body += fmt::format(
        R"(<polyline points="{}" fill="none" stroke="{}" stroke-width="2"/>)",
        line, colour);
    for (const PlotPoint& point : series[i].points)
      body += Dot(frame, point, 2.5, colour);
    body += fmt::format(
        R"(<text x="{:.0f}" y="{:.0f}" text-anchor="end" fill="{}">{}</text>)",
        kWidth - kRight, 18 + 14 * static_cast<double>(i), colour,
        HtmlEscaped(series[i].name));
  }
  return Svg(body, text.title);
}

std::string ScatterPlot(const PlotText& text,
                        std::span<const PlotPoint> points) {
  Range both;
  for (const PlotPoint& point : points) {
    both.Add(point.x);
    both.Add(point.y);
  }
  both.Widen();
  const Frame frame{both, both};
  std::string body = Axes(frame, text);
  body += fmt::format(
      R"(<line x1="{:.1f}" y1="{:.1f}" x2="{:.1f}" y2="{:.1f}" stroke="#888"/>)",
      frame.X(both.min), frame.Y(both.min), frame.X(both.max),
      frame.Y(both.max));
  for (const PlotPoint& point : points) {
    body += fmt::format(
        R"(<circle cx="{:.1f}" cy="{:.1f}" r="1.5" fill="{}" fill-opacity="0.5"/>)",
        frame.X(point.x), frame.Y(point.y), kColours[0]);
  }
  return Svg(body, text.title);
}

std::string SvgDocument(std::span<const std::string> plots) {
  const double height = kHeight * static_cast<double>(plots.size());
  std::string svg = fmt::format(
      R"(<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {:.0f} {:.0f}" font-family="sans-serif" font-size="11">)"
      "<style>{}</style><rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n",
      kWidth, height, kPlotStyle);
  for (size_t i = 0; i < plots.size(); ++i) {
    svg += fmt::format(R"(<svg y="{:.0f}" width="{:.0f}" height="{:.0f}">)",
                       kHeight * static_cast<double>(i), kWidth, kHeight);
    svg += plots[i] + "</svg>\n";
  }
  return svg + "</svg>\n";
}

}  // namespace hexllm
