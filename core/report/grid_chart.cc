#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "core/report/chart.h"
#include "core/report/frame.h"
#include "core/report/svg.h"

namespace elastor {
namespace {

constexpr double kCellHeight = 46;
// Text must be read on the darkest cell, in both schemes.
constexpr double kLeastShare = 0.05, kMostShare = 0.5;

double LongestName(const std::vector<std::string>& names) {
  double longest = 0;
  for (const std::string& name : names) longest = std::max(longest, TextWidth(name, kLabelSize));
  return longest;
}

}  // namespace

std::string ToSvg(const GridChart& chart) {
  double least = HUGE_VAL, most = -HUGE_VAL;
  for (const GridCell& cell : chart.cells) {
    if (!std::isfinite(cell.value)) continue;
    least = std::min(least, cell.value);
    most = std::max(most, cell.value);
  }
  const auto goodness = [&](double value) {
    if (!(most > least)) return 1.0;
    const double share = (value - least) / (most - least);
    return chart.larger_is_better ? share : 1 - share;
  };
  const std::vector<std::string> subtitle =
      WrapText(chart.subtitle, 12, kHalfChartWidth - 2 * kHalfChartMargin);
  const double top = 30 + 16 * static_cast<double>(subtitle.size()) + 10;
  const double left = kHalfChartMargin + 20 + LongestName(chart.rows) + 8;
  const auto columns = static_cast<double>(std::max<size_t>(chart.columns.size(), 1));
  const double width = (kHalfChartWidth - kHalfChartMargin - left) / columns;
  const double bottom = top + kCellHeight * static_cast<double>(chart.rows.size());
  std::string description = chart.subtitle + ".";
  for (size_t i = 0; i < chart.cells.size() && !chart.columns.empty(); ++i) {
    if (!std::isfinite(chart.cells[i].value)) continue;
    description += " " + chart.y_title + " " + chart.rows[i / chart.columns.size()] + ", " +
                   chart.x_title + " " + chart.columns[i % chart.columns.size()] + ": " +
                   chart.cells[i].text + ".";
  }
  SvgWriter svg(kHalfChartWidth, bottom + 46, chart.title, description);
  svg.Text({kHalfChartMargin, 24}, TextAnchor::kStart, "strong", chart.title);
  for (size_t i = 0; i < subtitle.size(); ++i) {
    svg.Text({kHalfChartMargin, 44 + 16 * static_cast<double>(i)}, TextAnchor::kStart, "label",
             subtitle[i]);
  }
  bool framed = false;
  for (size_t i = 0; i < chart.cells.size() && !chart.columns.empty(); ++i) {
    const GridCell& cell = chart.cells[i];
    if (!std::isfinite(cell.value)) continue;
    const double x = left + width * static_cast<double>(i % chart.columns.size());
    const double y = top + kCellHeight * static_cast<double>(i / chart.columns.size());
    const double share = goodness(cell.value);
    svg.Cell({x + 1, y + 1}, width - 2, kCellHeight - 2,
             kLeastShare + (kMostShare - kLeastShare) * share);
    const bool best = share == 1 && !framed;
    const double middle = x + width / 2;
    svg.Text({middle, y + (cell.note.empty() ? 28 : 21)}, TextAnchor::kMiddle, best ? "strong" : "",
             cell.text);
    if (!cell.note.empty()) svg.Text({middle, y + 37}, TextAnchor::kMiddle, "label", cell.note);
    if (!best) continue;
    framed = true;
    svg.Polyline({{x + 1, y + 1},
                  {x + width - 1, y + 1},
                  {x + width - 1, y + kCellHeight - 1},
                  {x + 1, y + kCellHeight - 1},
                  {x + 1, y + 1}},
                 "c0 line");
  }
  for (size_t r = 0; r < chart.rows.size(); ++r) {
    svg.Text({left - 8, top + kCellHeight * (static_cast<double>(r) + 0.5) + 4}, TextAnchor::kEnd,
             "label", chart.rows[r]);
  }
  for (size_t c = 0; c < chart.columns.size(); ++c) {
    svg.Text({left + width * (static_cast<double>(c) + 0.5), bottom + 17}, TextAnchor::kMiddle,
             "label", chart.columns[c]);
  }
  svg.Text({(left + kHalfChartWidth - kHalfChartMargin) / 2, bottom + 37}, TextAnchor::kMiddle, "",
           chart.x_title);
  svg.Text({kHalfChartMargin + 9, (top + bottom) / 2}, TextAnchor::kMiddle, "", chart.y_title, -90);
  return std::move(svg).Finish();
}

}  // namespace elastor
