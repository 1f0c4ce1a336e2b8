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

constexpr double kRow = 46, kName = 21;  // of a row, and of the name in it
constexpr double kIntervalCap = 4;       // half an interval's end

std::string SignedText(double value) {
  return (value < 0 ? "\u2212" : "+") + Format("%.4f", std::abs(value));
}

std::string NumbersOf(const ForestRow& row) {
  std::string text = SignedText(row.value);
  if (!std::isfinite(row.low) || !std::isfinite(row.high)) return text;
  return text + " [" + SignedText(row.low) + ", " + SignedText(row.high) + "]";
}

// As much of the name as stands beside the numbers.
std::string Fitting(const std::string& name, double width) {
  if (TextWidth(name, kTextSize) <= width) return name;
  std::string shorter = name;
  while (!shorter.empty() && TextWidth(shorter + "\u2026", kTextSize) > width) {
    do {
      shorter.pop_back();
    } while (!shorter.empty() && (static_cast<unsigned char>(shorter.back()) & 0xc0) == 0x80);
  }
  // A character of several bytes may have lost its end.
  while (!shorter.empty() && static_cast<unsigned char>(shorter.back()) >= 0x80) shorter.pop_back();
  return shorter + "\u2026";
}

// The values and 0, and of the intervals as much as leaves the values a quarter of the width.
std::vector<double> ExtentOf(const ForestChart& chart) {
  std::vector<double> values = {0};
  for (const ForestRow& row : chart.rows) {
    if (std::isfinite(row.value)) values.push_back(row.value);
  }
  const auto [least, most] = std::ranges::minmax(values);
  const double room = most > least ? 1.5 * (most - least) : HUGE_VAL;
  std::vector<double> extent = values;
  for (const ForestRow& row : chart.rows) {
    for (const double end : {row.low, row.high}) {
      if (std::isfinite(end)) extent.push_back(std::clamp(end, least - room, most + room));
    }
  }
  return extent;
}

}  // namespace

std::string ToSvg(const ForestChart& chart) {
  const double left = kHalfChartMargin + 8, right = kHalfChartWidth - kHalfChartMargin - 8;
  const std::vector<std::string> title =
      WrapText(chart.title, 14, kHalfChartWidth - 2 * kHalfChartMargin);
  const std::vector<std::string> subtitle =
      WrapText(chart.subtitle, 12, kHalfChartWidth - 2 * kHalfChartMargin);
  const double head = 6 + 18 * static_cast<double>(title.size());
  const double top = head + 16 * static_cast<double>(subtitle.size()) + 12;
  const double bottom = top + kRow * static_cast<double>(chart.rows.size()) + 8;
  const ChartAxis axis = {.title = chart.x_title};
  const Scale x(axis, ExtentOf(chart), /*ticks=*/5, left, right);
  std::string description = chart.subtitle + ".";
  for (const ForestRow& row : chart.rows) {
    description += " " + row.name + ": " + NumbersOf(row) +
                   (row.told_apart ? ", told apart." : ", not told apart.");
  }
  SvgWriter svg(kHalfChartWidth, bottom + 46, chart.title, description);
  for (size_t i = 0; i < title.size(); ++i) {
    svg.Text({kHalfChartMargin, 24 + 18 * static_cast<double>(i)}, TextAnchor::kStart, "strong",
             title[i]);
  }
  for (size_t i = 0; i < subtitle.size(); ++i) {
    svg.Text({kHalfChartMargin, head + 18 + 16 * static_cast<double>(i)}, TextAnchor::kStart,
             "label", subtitle[i]);
  }
  // Lines leave the names free.
  const auto vertical = [&](double at, const char* css) {
    for (size_t r = 0; r < chart.rows.size(); ++r) {
      const double foot = top + kRow * static_cast<double>(r + 1);
      svg.Line({at, foot - kRow + kName}, {at, foot}, css);
    }
    svg.Line({at, bottom - 8}, {at, bottom}, css);
  };
  for (const Scale::Tick& tick : x.ticks()) {
    vertical(tick.at, "grid");
    svg.Text({tick.at, bottom + 17}, TextAnchor::kMiddle, "label", tick.label);
  }
  svg.Line({left, bottom}, {right, bottom}, "axis");
  vertical(x.At(0), "axis");
  svg.Text({(left + right) / 2, bottom + 37}, TextAnchor::kMiddle, "", chart.x_title);
  const auto inside = [&](double value) { return std::clamp(x.At(value), left, right); };
  double y = top;
  for (const ForestRow& row : chart.rows) {
    const std::string numbers = NumbersOf(row);
    const double space = right - left - TextWidth(numbers, kTextSize) - 10;
    svg.BeginGroup(row.name + ": " + numbers);
    svg.Text({left, y + 16}, TextAnchor::kStart, "strong", Fitting(row.name, space));
    svg.Text({right, y + 16}, TextAnchor::kEnd, "", numbers);
    const double at = y + 31;
    const std::string color = row.told_apart ? "c0 " : "c5 ";
    if (std::isfinite(row.low) && std::isfinite(row.high)) {
      svg.Line({inside(row.low), at}, {inside(row.high), at}, color + "line");
      for (const double end : {row.low, row.high}) {
        if (inside(end) != x.At(end)) continue;  // cut off
        svg.Line({x.At(end), at - kIntervalCap}, {x.At(end), at + kIntervalCap}, color + "line");
      }
    }
    svg.Marker({x.At(row.value), at}, /*shape=*/row.told_apart ? 1 : 0,
               color + (row.told_apart ? "marker" : "hollow"));
    svg.EndGroup();
    y += kRow;
  }
  return std::move(svg).Finish();
}

}  // namespace elastor
