#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "core/base/text.h"
#include "core/report/axis.h"
#include "core/report/chart.h"
#include "core/report/frame.h"
#include "core/report/svg.h"

namespace elastor {
namespace {

constexpr double kPlotHeight = 300;
constexpr double kLegendRow = 22;
constexpr double kSideBySide = 7;         // pixels between bars at one category
constexpr size_t kDescribedPoints = 200;  // more are told by their ends
constexpr size_t kMarkedPoints = 48;      // of a series; more would hide its line
constexpr size_t kMarkedInHalf = 24;

double WidthOf(const LineChart& chart) { return chart.half ? kHalfChartWidth : kChartWidth; }

bool HasMarkers(const LineChart& chart, const ChartSeries& series) {
  return series.points.size() <= (chart.half ? kMarkedInHalf : kMarkedPoints);
}

// What has to lie on the vertical axis: all lines, and of intervals as much as leaves the lines
// half of the height. Where nothing is negative, no interval makes the axis so.
std::vector<double> VerticalExtent(const LineChart& chart) {
  std::vector<double> ys;
  for (const ChartSeries& series : chart.series) {
    for (const auto* points : {&series.points, &series.raw}) {
      for (const ChartPoint& point : *points) {
        if (IsDrawable(point.x, chart.x) && IsDrawable(point.y, chart.y)) ys.push_back(point.y);
      }
    }
  }
  if (IsDrawable(chart.level, chart.y)) ys.push_back(chart.level);
  if (ys.empty()) return ys;
  const auto [least, most] = std::ranges::minmax(ys);
  double low = least - (most - least) / 2, high = most + (most - least) / 2;
  if (chart.y.logarithmic) {
    const double room = std::sqrt(most / least);
    low = least / room;
    high = most * room;
  } else if (least >= 0) {
    low = std::max(low, 0.0);
  }
  if (most == least) {
    low = -HUGE_VAL;
    high = HUGE_VAL;
  }
  for (const ChartSeries& series : chart.series) {
    for (const ChartPoint& point : series.points) {
      if (!IsDrawable(point.x, chart.x) || !IsDrawable(point.y, chart.y)) continue;
      for (const double end : {point.low, point.high}) {
        if (IsDrawable(end, chart.y)) ys.push_back(std::clamp(end, low, high));
      }
    }
  }
  return ys;
}

std::string NameOf(const ChartSeries& series, const LineChart& chart) {
  const bool any = std::ranges::any_of(series.points, [&](const ChartPoint& point) {
    return IsDrawable(point.x, chart.x) && IsDrawable(point.y, chart.y);
  });
  return any ? series.name : series.name + " (no data)";
}

// What the picture shows, for those who do not see it.
std::string Describe(const LineChart& chart) {
  size_t count = 0;
  for (const ChartSeries& series : chart.series) count += series.points.size();
  std::string text = chart.subtitle + " " + chart.y.title + " by " + chart.x.title + ".";
  for (const ChartSeries& series : chart.series) {
    text += " " + NameOf(series, chart) + ":";
    for (size_t i = 0; i < series.points.size(); ++i) {
      const bool end = i == 0 || i + 1 == series.points.size();
      if (count > kDescribedPoints && !end) continue;
      const ChartPoint& point = series.points[i];
      const auto category = static_cast<size_t>(std::max(point.x, 0.0));
      text += (i == 0 ? " " : ", ") +
              (category < chart.x.categories.size() ? chart.x.categories[category]
                                                    : ShortNumber(point.x)) +
              " " + ShortNumber(point.y);
      if (!std::isfinite(point.low) || !std::isfinite(point.high)) continue;
      text += " (" + ShortNumber(point.low) + " to " + ShortNumber(point.high) + ")";
    }
    text += ".";
  }
  return text;
}

// Places of the legend's entries, row after row.
std::vector<SvgPoint> LegendPlaces(const LineChart& chart, double top) {
  std::vector<SvgPoint> places;
  SvgPoint next = {kChartMargin, top};
  for (const ChartSeries& series : chart.series) {
    constexpr double kGap = 18;
    const double width = 34 + TextWidth(NameOf(series, chart), 13);
    if (next.x > kChartMargin && next.x + width > WidthOf(chart) - kChartMargin) {
      next = {kChartMargin, next.y + kLegendRow};
    }
    places.push_back(next);
    next.x += width + kGap;
  }
  return places;
}

// One series on the plot.
class SeriesDrawer {
 public:
  SeriesDrawer(const LineChart& chart, const Scale& x, const Scale& y, size_t series,
               SvgWriter* svg)
      : chart_(chart), x_(x), y_(y), series_(series), svg_(svg) {
    if (!chart.x.categories.empty() && chart.interval == LineChart::Interval::kBars) {
      const auto middle = static_cast<double>(chart.series.size() - 1) / 2;
      shift_ = (static_cast<double>(series) - middle) * kSideBySide;
    }
  }

  void DrawInterval() {
    std::vector<SvgPoint> upper, lower;
    for (const ChartPoint& point : points()) {
      if (!Draws(point) || !IsDrawable(point.low, chart_.y) || !IsDrawable(point.high, chart_.y)) {
        EndBand(&upper, &lower);
        continue;
      }
      const double x = At(point).x;
      upper.push_back({x, Inside(point.high)});
      lower.push_back({x, Inside(point.low)});
      if (chart_.interval == LineChart::Interval::kBars) DrawBar(point, upper.back(), lower.back());
    }
    EndBand(&upper, &lower);
  }

  void DrawRaw() {
    std::vector<SvgPoint> line;
    for (const ChartPoint& point : chart_.series[series_].raw) {
      if (Draws(point)) line.push_back(At(point));
    }
    if (line.size() > 1) svg_->Polyline(line, ColorClass(series_, "raw"));
  }

  void DrawLine() {
    std::vector<SvgPoint> line;
    for (const ChartPoint& point : points()) {
      if (Draws(point)) {
        line.push_back(At(point));
      } else {
        EndLine(&line);
      }
    }
    EndLine(&line);
    if (!HasMarkers(chart_, chart_.series[series_])) return;
    for (const ChartPoint& point : points()) {
      if (Draws(point)) {
        svg_->Marker(At(point), static_cast<int>(series_), ColorClass(series_, "marker"));
      }
    }
  }

 private:
  const std::vector<ChartPoint>& points() const { return chart_.series[series_].points; }
  bool Draws(const ChartPoint& point) const {
    return IsDrawable(point.x, chart_.x) && IsDrawable(point.y, chart_.y);
  }
  SvgPoint At(const ChartPoint& point) const { return {x_.At(point.x) + shift_, y_.At(point.y)}; }

  // An interval that is larger than the plot is cut off at its edge.
  double Inside(double value) const {
    return std::clamp(y_.At(value), y_.At(y_.high_value()), y_.At(y_.low_value()));
  }
  bool IsCut(double value) const { return Inside(value) != y_.At(value); }

  void DrawBar(const ChartPoint& point, SvgPoint high, SvgPoint low) {
    const std::string css = ColorClass(series_, "whisker");
    svg_->Line(high, low, css);
    const auto cap = [&](SvgPoint end) {
      svg_->Line({end.x - 3.5, end.y}, {end.x + 3.5, end.y}, css);
    };
    if (!IsCut(point.high)) cap(high);
    if (!IsCut(point.low)) cap(low);
  }
  void EndBand(std::vector<SvgPoint>* upper, std::vector<SvgPoint>* lower) {
    if (upper->size() > 1 && chart_.interval == LineChart::Interval::kBand) {
      upper->insert(upper->end(), lower->rbegin(), lower->rend());
      svg_->Polygon(*upper, ColorClass(series_, "area"));
    }
    upper->clear();
    lower->clear();
  }
  void EndLine(std::vector<SvgPoint>* line) {
    if (line->size() > 1) svg_->Polyline(*line, ColorClass(series_, "line"));
    line->clear();
  }

  const LineChart& chart_;
  const Scale& x_;
  const Scale& y_;
  const size_t series_;
  SvgWriter* const svg_;
  double shift_ = 0;
};

}  // namespace

std::string ToSvg(const LineChart& chart) {
  std::vector<double> xs;
  for (const ChartSeries& series : chart.series) {
    for (const ChartPoint& point : series.points) {
      if (IsDrawable(point.x, chart.x) && IsDrawable(point.y, chart.y)) xs.push_back(point.x);
    }
  }
  const double legend_top = HeadHeight(chart.subtitle, WidthOf(chart)) + 10;
  const std::vector<SvgPoint> legend = LegendPlaces(chart, legend_top);
  const double top = (legend.empty() ? legend_top - kLegendRow : legend.back().y) + kLegendRow;
  const double bottom = top + kPlotHeight;
  const Scale y(chart.y, VerticalExtent(chart), /*ticks=*/7, bottom, top);
  double labels = 0;
  for (const Scale::Tick& tick : y.ticks()) labels = std::max(labels, TextWidth(tick.label, 12));
  const double left = kChartMargin + (chart.y.title.empty() ? 0 : 22) + labels + 8;
  const double right = WidthOf(chart) - kChartMargin;
  const Scale x(chart.x, xs, /*ticks=*/chart.half ? 5 : 9, left, right);
  const double spacing =
      (right - left) / static_cast<double>(std::max<size_t>(x.ticks().size(), 1));
  const bool turned = TurnsLabels(x, spacing);
  const double height = bottom + BottomAxisHeight(x, chart.x.title, turned) + 14;

  SvgWriter svg(WidthOf(chart), height, chart.title, Describe(chart));
  DrawHead(chart.title, chart.subtitle, WidthOf(chart), &svg);
  for (size_t s = 0; s < legend.size(); ++s) {
    const auto [at_x, at_y] = legend[s];
    svg.Line({at_x, at_y}, {at_x + 26, at_y}, ColorClass(s, "line"));
    if (HasMarkers(chart, chart.series[s])) {
      svg.Marker({at_x + 13, at_y}, static_cast<int>(s), ColorClass(s, "marker"));
    }
    svg.Text({at_x + 34, at_y + 4.5}, TextAnchor::kStart, "", NameOf(chart.series[s], chart));
  }
  for (const Scale::Tick& tick : y.ticks()) {
    svg.Line({left, tick.at}, {right, tick.at}, "grid");
    svg.Text({left - 8, tick.at + 4}, TextAnchor::kEnd, "label", tick.label);
  }
  if (!chart.y.title.empty()) {
    svg.Text({kChartMargin + 8, (top + bottom) / 2}, TextAnchor::kMiddle, "", chart.y.title, -90);
  }
  // A category needs no line: its points stand above its name.
  DrawBottomAxis(x, chart.x.title, left, right, chart.x.categories.empty() ? top : bottom - 4,
                 bottom, turned, &svg);
  if (IsDrawable(chart.level, chart.y)) {
    svg.Line({left, y.At(chart.level)}, {right, y.At(chart.level)}, "ghost");
  }
  for (size_t s = 0; s < chart.series.size(); ++s) SeriesDrawer(chart, x, y, s, &svg).DrawRaw();
  for (size_t s = 0; s < chart.series.size(); ++s)
    SeriesDrawer(chart, x, y, s, &svg).DrawInterval();
  for (size_t s = 0; s < chart.series.size(); ++s) SeriesDrawer(chart, x, y, s, &svg).DrawLine();
  if (xs.empty()) {
    svg.Text({(left + right) / 2, (top + bottom) / 2}, TextAnchor::kMiddle, "subtitle", "no data");
  }
  return std::move(svg).Finish();
}

}  // namespace elastor
