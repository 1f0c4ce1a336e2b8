#ifndef ELASTOR_CORE_REPORT_FRAME_H_
#define ELASTOR_CORE_REPORT_FRAME_H_

#include <string>
#include <vector>

#include "core/report/axis.h"
#include "core/report/svg.h"

namespace elastor {

// Parts that all charts share: their size, the head above the plot, the axis below it.
inline constexpr double kChartWidth = 760;
inline constexpr double kHalfChartWidth = 480;
inline constexpr double kChartMargin = 24;
inline constexpr double kHalfChartMargin = 14;
inline constexpr double kTextSize = 13;
inline constexpr double kLabelSize = 12;  // of ticks

// Returns the height of the head in pixels; its subtitle may need several lines. `width`: width of
// the chart in pixels.
double HeadHeight(const std::string& subtitle, double width);
void DrawHead(const std::string& title, const std::string& subtitle, double width, SvgWriter* svg);

// Returns the width in pixels of the longest label of a tick.
double LongestLabel(const Scale& scale);

// The horizontal axis with its title, a grid line a tick up to `top`. Labels that are too long to
// stand side by side are turned.
bool TurnsLabels(const Scale& scale, double spacing);
void DrawBottomAxis(const Scale& scale, const std::string& title, double left, double right,
                    double top, double bottom, bool turned, SvgWriter* svg);
// Returns the height in pixels that the axis takes below the plot.
double BottomAxisHeight(const Scale& scale, const std::string& title, bool turned);

}  // namespace elastor

#endif  // ELASTOR_CORE_REPORT_FRAME_H_
