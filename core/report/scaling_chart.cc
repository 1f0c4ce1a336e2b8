#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "core/base/text.h"
#include "core/report/axis.h"
#include "core/report/chart.h"
#include "core/report/frame.h"
#include "core/report/svg.h"

namespace elastor {
namespace {

constexpr double kCurvesHeight = 250;
constexpr double kResidualHeight = 76;
constexpr double kPlotGap = 30;  // between the plots: the residuals' title
constexpr double kCurveRow = 20;
constexpr double kBarCap = 3;  // half an error bar's end
constexpr double kCross = 4;   // half a cross
constexpr size_t kDescribedMeans = 60;

std::string Describe(const ScalingChart& chart) {
  std::string text = chart.subtitle + " " + chart.y.title + " by " + chart.x.title + ".";
  for (const ScalingSeries& series : chart.series) {
    text += " " + series.name + ":";
    for (size_t i = 0; i < std::min(series.points.size(), kDescribedMeans); ++i) {
      const ScalingPoint& point = series.points[i];
      text += (i == 0 ? " " : ", ") + PrefixedNumber(point.mean.x, 3) + " " +
              NumberText(point.mean.y, 4);
    }
    text += series.points.size() > kDescribedMeans ? ", and more." : ".";
  }
  return text;
}

// A plot and its two axes.
struct Panel {
  const ChartAxis& x_axis;
  const ChartAxis& y_axis;
  const Scale& x;
  const Scale& y;

  bool Draws(const ChartPoint& point) const {
    return IsDrawable(point.x, x_axis) && IsDrawable(point.y, y_axis);
  }
  bool DrawsInterval(const ChartPoint& point) const {
    return Draws(point) && IsDrawable(point.low, y_axis) && IsDrawable(point.high, y_axis);
  }
  SvgPoint At(const ChartPoint& point) const { return {x.At(point.x), y.At(point.y)}; }
  // An interval that is larger than the plot is cut off at its edge.
  double Inside(double value) const {
    return std::clamp(y.At(value), y.At(y.high_value()), y.At(y.low_value()));
  }
  bool IsCut(double value) const { return Inside(value) != y.At(value); }

  void DrawBar(const ChartPoint& point, const std::string& css, SvgWriter* svg) const {
    if (!DrawsInterval(point)) return;
    const double at = x.At(point.x);
    svg->Line({at, Inside(point.high)}, {at, Inside(point.low)}, css);
    for (const double end : {point.high, point.low}) {
      if (IsCut(end)) continue;
      svg->Line({at - kBarCap, y.At(end)}, {at + kBarCap, y.At(end)}, css);
    }
  }
};

void DrawCurve(const Panel& panel, const ScalingSeries& series, size_t color, SvgWriter* svg) {
  std::vector<SvgPoint> upper, lower, inside, beyond;
  bool fills = true;  // the whole height, which tells nothing
  for (const ChartPoint& point : series.curve) {
    if (!panel.Draws(point)) continue;
    const SvgPoint at = panel.At(point);
    if (point.x <= series.fitted_until) inside.push_back(at);
    if (point.x >= series.fitted_until) beyond.push_back(at);
    if (!panel.DrawsInterval(point)) continue;
    upper.push_back({at.x, panel.Inside(point.high)});
    lower.push_back({at.x, panel.Inside(point.low)});
    fills = fills && panel.IsCut(point.high) && panel.IsCut(point.low);
  }
  upper.insert(upper.end(), lower.rbegin(), lower.rend());
  if (upper.size() > 2 && !fills) svg->Polygon(upper, ColorClass(color, "area"));
  if (inside.size() > 1) svg->Polyline(inside, ColorClass(color, "line"));
  if (beyond.size() > 1) svg->Polyline(beyond, ColorClass(color, "line beyond"));
}

void DrawMarker(const Panel& panel, const ScalingPoint& point, size_t color, SvgWriter* svg) {
  const bool hollow = std::isfinite(point.held_out.x);
  svg->Marker(panel.At(point.mean), static_cast<int>(color),
              ColorClass(color, hollow ? "hollow" : "marker"));
}

void DrawPoints(const Panel& panel, const ScalingSeries& series, size_t color, SvgWriter* svg) {
  for (const ScalingPoint& point : series.points) {
    if (!panel.Draws(point.mean)) continue;
    svg->BeginGroup(point.tip);
    for (const double run : point.runs) {
      const ChartPoint at = {.x = point.mean.x, .y = run};
      if (panel.Draws(at)) svg->Dot(panel.At(at), ColorClass(color, "run"));
    }
    const std::string whisker = ColorClass(color, "whisker");
    panel.DrawBar(point.mean, whisker, svg);
    if (panel.Draws(point.held_out)) {
      panel.DrawBar(point.held_out, whisker + " beyond", svg);
      const SvgPoint at = panel.At(point.held_out);
      svg->Line({at.x - kCross, at.y - kCross}, {at.x + kCross, at.y + kCross}, whisker);
      svg->Line({at.x - kCross, at.y + kCross}, {at.x + kCross, at.y - kCross}, whisker);
    }
    DrawMarker(panel, point, color, svg);
    svg->EndGroup();
  }
}

// The corners of the front, which goes on to the right end.
std::vector<SvgPoint> FrontSteps(const Panel& panel, const ScalingChart& chart, double right) {
  std::vector<SvgPoint> steps;
  for (const ChartPoint& point : chart.front) {
    if (!panel.Draws(point)) continue;
    const SvgPoint at = panel.At(point);
    if (!steps.empty()) steps.push_back({at.x, steps.back().y});
    steps.push_back(at);
  }
  if (!steps.empty()) steps.push_back({right, steps.back().y});
  return steps;
}

struct Box {
  double left, top, right, bottom;

  bool Overlaps(const Box& other) const {
    return left < other.right && other.left < right && top < other.bottom && other.top < bottom;
  }
};

// Names beside points, each where it covers no other name and as little else as can be.
void DrawLabels(const Panel& panel, const ScalingChart& chart, const Box& plot, SvgWriter* svg) {
  constexpr double kSize = 12, kAscent = 10, kDescent = 3, kMarker = 6;
  std::vector<Box> names, lines;
  const std::vector<SvgPoint> steps = FrontSteps(panel, chart, plot.right);
  for (size_t i = 1; i < steps.size(); ++i) {
    const auto [x0, x1] = std::minmax(steps[i - 1].x, steps[i].x);
    const auto [y0, y1] = std::minmax(steps[i - 1].y, steps[i].y);
    lines.push_back({x0 - 1, y0 - 1, x1 + 1, y1 + 1});
  }
  for (const ScalingSeries& series : chart.series) {
    for (const ScalingPoint& point : series.points) {
      if (!panel.Draws(point.mean)) continue;
      const SvgPoint at = panel.At(point.mean);
      lines.push_back({at.x - kMarker, at.y - kMarker, at.x + kMarker, at.y + kMarker});
    }
  }
  for (const ScalingSeries& series : chart.series) {
    for (const ScalingPoint& point : series.points) {
      if (point.label.empty() || !panel.Draws(point.mean)) continue;
      const SvgPoint at = panel.At(point.mean);
      const double width = TextWidth(point.label, kSize);
      // Places of the text's left end: above, below, and beside the point.
      const SvgPoint places[] = {{at.x - width / 2, at.y - 9},  {at.x - width / 2, at.y + 19},
                                 {at.x - width - 9, at.y + 4},  {at.x + 9, at.y + 4},
                                 {at.x - width - 3, at.y - 9},  {at.x + 3, at.y + 17},
                                 {at.x - width - 3, at.y + 17}, {at.x + 3, at.y - 9}};
      int64_t least = INT64_MAX;
      Box best = {};
      for (const SvgPoint& place : places) {
        const double begin =
            std::clamp(place.x, plot.left, std::max(plot.right - width, plot.left));
        const Box box = {begin, place.y - kAscent, begin + width, place.y + kDescent};
        const auto covers = [&](const Box& other) { return box.Overlaps(other); };
        if (box.top < plot.top || box.bottom > plot.bottom) continue;
        if (std::ranges::any_of(names, covers)) continue;
        const int64_t covered = std::ranges::count_if(lines, covers);
        if (covered >= least) continue;
        least = covered;
        best = box;
      }
      if (least == INT64_MAX) continue;
      names.push_back(best);
      svg->Text({best.left, best.bottom - kDescent}, TextAnchor::kStart, "label name", point.label);
    }
  }
}

void DrawResiduals(const Panel& panel, const ScalingSeries& series, size_t color, SvgWriter* svg) {
  for (const ScalingPoint& point : series.points) {
    ScalingPoint residual = point;
    residual.mean.y -= point.fitted;
    residual.mean.low -= point.fitted;
    residual.mean.high -= point.fitted;
    if (!panel.Draws(residual.mean)) continue;
    svg->BeginGroup(point.tip);
    panel.DrawBar(residual.mean, ColorClass(color, "whisker"), svg);
    DrawMarker(panel, residual, color, svg);
    svg->EndGroup();
  }
}

void DrawFront(const Panel& panel, const ScalingChart& chart, double right, SvgWriter* svg) {
  const std::vector<SvgPoint> steps = FrontSteps(panel, chart, right);
  if (!steps.empty()) svg->Polyline(steps, "front");
}

void DrawVerticalAxis(const Panel& panel, const std::string& title, double left, double right,
                      double top, double bottom, SvgWriter* svg) {
  for (const Scale::Tick& tick : panel.y.ticks()) {
    svg->Line({left, tick.at}, {right, tick.at}, "grid");
    svg->Text({left - 6, tick.at + 4}, TextAnchor::kEnd, "label", tick.label);
  }
  svg->Text({kHalfChartMargin + 9, (top + bottom) / 2}, TextAnchor::kMiddle, "", title, -90);
}

// What has to lie on the plot, by axis: all points and curves, and of the intervals of fits as much
// as leaves the points half of the height.
struct Extent {
  std::vector<double> xs, ys, residuals;

  explicit Extent(const ScalingChart& chart) {
    std::vector<double> of_fits;
    for (const ScalingSeries& series : chart.series) {
      for (const ScalingPoint& point : series.points) {
        xs.push_back(point.mean.x);
        ys.insert(ys.end(), {point.mean.y, point.mean.low, point.mean.high, point.held_out.y});
        ys.insert(ys.end(), point.runs.begin(), point.runs.end());
        of_fits.insert(of_fits.end(), {point.held_out.low, point.held_out.high});
        if (!std::isfinite(point.fitted)) continue;
        for (const double value : {point.mean.y, point.mean.low, point.mean.high}) {
          residuals.push_back(value - point.fitted);
        }
      }
      for (const ChartPoint& point : series.curve) {
        xs.push_back(point.x);
        ys.push_back(point.y);
        of_fits.insert(of_fits.end(), {point.low, point.high});
      }
    }
    std::erase_if(ys, [&](double y) { return !IsDrawable(y, chart.y); });
    if (!residuals.empty()) residuals.push_back(0);
    if (ys.empty() || chart.y.logarithmic) return;
    const auto [least, most] = std::ranges::minmax(ys);
    const double room = (most - least) / 2;
    for (const double y : of_fits) {
      if (std::isfinite(y)) ys.push_back(std::clamp(y, least - room, most + room));
    }
  }
};

}  // namespace

std::string ToSvg(const ScalingChart& chart) {
  const Extent extent(chart);
  const double text_width = kHalfChartWidth - 2 * kHalfChartMargin;
  const std::vector<std::string> subtitle = WrapText(chart.subtitle, 12, text_width);
  double legend_y = 28 + 16 * static_cast<double>(subtitle.size()) + 20;
  std::vector<SvgPoint> legend;
  double legend_x = kHalfChartMargin;
  for (const ScalingSeries& series : chart.series) {
    const double width = 30 + TextWidth(series.name, kTextSize) + 14;
    if (legend_x > kHalfChartMargin && legend_x + width > kHalfChartWidth - kHalfChartMargin) {
      legend_x = kHalfChartMargin;
      legend_y += kCurveRow;
    }
    legend.push_back({legend_x, legend_y});
    legend_x += width;
  }
  const double top = legend_y + 16, bottom = top + kCurvesHeight;
  const Scale y(chart.y, extent.ys, /*ticks=*/6, bottom, top);
  const bool has_residuals = !extent.residuals.empty();
  const double residual_top = bottom + kPlotGap;
  const double foot = has_residuals ? residual_top + kResidualHeight : bottom;
  const ChartAxis residual_axis = {.title = "residual"};
  const Scale residual_y(residual_axis, extent.residuals, /*ticks=*/5, foot, residual_top);
  const double labels = std::max(LongestLabel(y), has_residuals ? LongestLabel(residual_y) : 0.0);
  const double left = kHalfChartMargin + 18 + labels + 6,
               right = kHalfChartWidth - kHalfChartMargin;
  const Scale x(chart.x, extent.xs, /*ticks=*/8, left, right);
  const double height = foot + 46;

  SvgWriter svg(kHalfChartWidth, height, chart.title, Describe(chart));
  svg.Text({kHalfChartMargin, 24}, TextAnchor::kStart, "strong", chart.title);
  for (size_t i = 0; i < subtitle.size(); ++i) {
    svg.Text({kHalfChartMargin, 44 + 16 * static_cast<double>(i)}, TextAnchor::kStart, "label",
             subtitle[i]);
  }
  for (size_t s = 0; s < legend.size(); ++s) {
    const auto [at_x, at_y] = legend[s];
    if (!chart.series[s].curve.empty()) {
      svg.Line({at_x, at_y}, {at_x + 22, at_y}, ColorClass(s, "line"));
    }
    svg.Marker({at_x + 11, at_y}, static_cast<int>(s), ColorClass(s, "marker"));
    svg.Text({at_x + 29, at_y + 4.5}, TextAnchor::kStart, "", chart.series[s].name);
  }
  const Panel panel = {chart.x, chart.y, x, y};
  DrawVerticalAxis(panel, chart.y.title, left, right, top, bottom, &svg);
  const Panel residual_panel = {chart.x, residual_axis, x, residual_y};
  if (has_residuals) {
    DrawVerticalAxis(residual_panel, "", left, right, residual_top, foot, &svg);
    svg.Text({left, residual_top - 8}, TextAnchor::kStart, "label", "observed \u2212 law");
  }
  for (const Scale::Tick& tick : x.ticks()) {
    svg.Line({tick.at, top}, {tick.at, bottom}, "grid");
    if (has_residuals) svg.Line({tick.at, residual_top}, {tick.at, foot}, "grid");
    svg.Text({tick.at, foot + 17}, TextAnchor::kMiddle, "label", tick.label);
  }
  svg.Line({left, bottom}, {right, bottom}, "axis");
  svg.Text({(left + right) / 2, foot + 37}, TextAnchor::kMiddle, "", chart.x.title);
  for (size_t s = 0; s < chart.series.size(); ++s) DrawCurve(panel, chart.series[s], s, &svg);
  DrawFront(panel, chart, right, &svg);
  for (size_t s = 0; s < chart.series.size(); ++s) DrawPoints(panel, chart.series[s], s, &svg);
  DrawLabels(panel, chart, {left, top, right, bottom}, &svg);
  if (has_residuals) {
    svg.Line({left, residual_y.At(0)}, {right, residual_y.At(0)}, "axis");
    for (size_t s = 0; s < chart.series.size(); ++s) {
      DrawResiduals(residual_panel, chart.series[s], s, &svg);
    }
  }
  if (extent.xs.empty()) {
    svg.Text({(left + right) / 2, (top + bottom) / 2}, TextAnchor::kMiddle, "subtitle", "no data");
  }
  return std::move(svg).Finish();
}

}  // namespace elastor
