#include <algorithm>
#include <cmath>
#include <string>

#include "core/report/axis.h"
#include "core/report/chart.h"
#include "core/report/frame.h"
#include "core/report/svg.h"

namespace elastor {
namespace {

constexpr double kMatrixGap = 24;  // between matrices
constexpr double kNameHeight = 20;
constexpr int kScaleCells = 20;

double LargestOf(const HeatMap& map) {
  double largest = 0;
  for (const HeatMap::Matrix& matrix : map.matrices) {
    for (const double value : matrix.values) {
      if (std::isfinite(value)) largest = std::max(largest, value);
    }
  }
  return largest;
}

}  // namespace

std::string ToSvg(const HeatMap& map) {
  const auto panels = static_cast<double>(std::max<size_t>(map.matrices.size(), 1));
  const auto columns = static_cast<double>(std::max<int64_t>(map.columns, 1));
  const double width = (kChartWidth - 2 * kChartMargin - (panels - 1) * kMatrixGap) / panels;
  const double side = width / columns;
  int64_t rows = 0;
  for (const HeatMap::Matrix& matrix : map.matrices) {
    rows =
        std::max(rows, static_cast<int64_t>(matrix.values.size() / static_cast<size_t>(columns)));
  }
  const double top = HeadHeight(map.subtitle, kChartWidth) + kNameHeight;
  const double bottom = top + side * static_cast<double>(rows);
  const double largest = LargestOf(map);

  std::string description = map.subtitle;
  for (const HeatMap::Matrix& matrix : map.matrices) description += " " + matrix.name + ".";
  description += " Largest element " + ShortNumber(largest) + ".";
  SvgWriter svg(kChartWidth, bottom + 56, map.title, description);
  DrawHead(map.title, map.subtitle, kChartWidth, &svg);
  double left = kChartMargin;
  for (const HeatMap::Matrix& matrix : map.matrices) {
    svg.Text({left + width / 2, top - 8}, TextAnchor::kMiddle, "strong", matrix.name);
    for (size_t i = 0; i < matrix.values.size(); ++i) {
      const auto row = static_cast<double>(i / static_cast<size_t>(columns));
      const auto column = static_cast<double>(i % static_cast<size_t>(columns));
      const double share =
          matrix.values[i] > 0 && std::isfinite(matrix.values[i]) ? matrix.values[i] / largest : 0;
      svg.Cell({left + column * side, top + row * side}, side, side, share);
    }
    const double down = top + side * static_cast<double>(rows);
    svg.Polyline(
        {{left, top}, {left + width, top}, {left + width, down}, {left, down}, {left, top}},
        "axis");
    left += width + kMatrixGap;
  }
  // The scale.
  constexpr double kCell = 10;
  const double scale_left = kChartMargin + 20, scale_top = bottom + 22;
  svg.Text({scale_left - 8, scale_top + 9}, TextAnchor::kEnd, "label", "0");
  for (int i = 0; i < kScaleCells; ++i) {
    svg.Cell({scale_left + i * kCell, scale_top}, kCell, kCell, (i + 0.5) / kScaleCells);
  }
  svg.Text({scale_left + kScaleCells * kCell + 8, scale_top + 9}, TextAnchor::kStart, "label",
           ShortNumber(largest));
  return std::move(svg).Finish();
}

}  // namespace elastor
