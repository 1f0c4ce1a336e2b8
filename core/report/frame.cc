#include "core/report/frame.h"

#include <algorithm>

namespace elastor {
namespace {

constexpr double kTurn = -30;  // degrees
constexpr double kTurnedHeight = 0.5;

std::vector<std::string> SubtitleLines(const std::string& subtitle, double width) {
  return WrapText(subtitle, kTextSize, width - 2 * kChartMargin);
}

}  // namespace

double HeadHeight(const std::string& subtitle, double width) {
  return 48 + 18 * static_cast<double>(SubtitleLines(subtitle, width).size());
}

void DrawHead(const std::string& title, const std::string& subtitle, double width, SvgWriter* svg) {
  svg->Text({kChartMargin, 34}, TextAnchor::kStart, width < kChartWidth ? "strong" : "title",
            title);
  double y = 56;
  for (const std::string& line : SubtitleLines(subtitle, width)) {
    svg->Text({kChartMargin, y}, TextAnchor::kStart, "subtitle", line);
    y += 18;
  }
}

double LongestLabel(const Scale& scale) {
  double longest = 0;
  for (const Scale::Tick& tick : scale.ticks()) {
    longest = std::max(longest, TextWidth(tick.label, kLabelSize));
  }
  return longest;
}

bool TurnsLabels(const Scale& scale, double spacing) { return LongestLabel(scale) + 8 > spacing; }

double BottomAxisHeight(const Scale& scale, const std::string& title, bool turned) {
  return 24 + (turned ? LongestLabel(scale) * kTurnedHeight : 0) + (title.empty() ? 0 : 24);
}

void DrawBottomAxis(const Scale& scale, const std::string& title, double left, double right,
                    double top, double bottom, bool turned, SvgWriter* svg) {
  for (const Scale::Tick& tick : scale.ticks()) {
    svg->Line({tick.at, top}, {tick.at, bottom}, "grid");
    if (turned) {
      svg->Text({tick.at + 4, bottom + 16}, TextAnchor::kEnd, "label", tick.label, kTurn);
    } else {
      svg->Text({tick.at, bottom + 18}, TextAnchor::kMiddle, "label", tick.label);
    }
  }
  svg->Line({left, bottom}, {right, bottom}, "axis");
  if (title.empty()) return;
  svg->Text({(left + right) / 2, bottom + BottomAxisHeight(scale, title, turned) - 6},
            TextAnchor::kMiddle, "", title);
}

}  // namespace elastor
