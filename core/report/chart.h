#ifndef ELASTOR_CORE_REPORT_CHART_H_
#define ELASTOR_CORE_REPORT_CHART_H_

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

namespace elastor {

// Pictures of results: plain data in, the text of one SVG file out. They need no script, no font of
// their own and no other file, follow the viewer's light or dark scheme (paper is light),
// distinguish series by colour-blind-safe colours and by markers, and say in <desc> what they show.
// Equal data give equal bytes on every machine. Texts are UTF-8. Numbers that are not finite, or
// beyond 1e300, are not drawn, nor are those <= 0 on a logarithmic axis.

// A value, and its interval; there is none if low or high is not finite.
struct ChartPoint {
  double x = 0;
  double y = 0;
  double low = std::numeric_limits<double>::quiet_NaN();
  double high = std::numeric_limits<double>::quiet_NaN();
};

struct ChartSeries {
  std::string name;
  std::vector<ChartPoint> points;    // in the order in which lines join them
  std::vector<ChartPoint> raw = {};  // single values behind a smoothed line, a faint thin line
};

struct ChartAxis {
  std::string title;
  bool logarithmic = false;
  std::vector<std::string> categories = {};  // names of x = 0, 1, 2, ...; empty: numbers
  bool prefixes = false;                     // ticks from 10,000 on as "10k", "2M"
};

// Series as lines; a series of few points has markers.
struct LineChart {
  enum class Interval { kBars, kBand };

  std::string title;
  std::string subtitle;  // what was measured, and what the intervals are
  ChartAxis x;
  ChartAxis y;  // without categories
  std::vector<ChartSeries> series;
  // Bars of several series stand side by side at a category.
  Interval interval = Interval::kBars;
  bool half = false;  // half as wide, to stand side by side and on a telephone
  // A value that is right, such as 1 for a calibration: a dashed line across. NaN: none.
  double level = std::numeric_limits<double>::quiet_NaN();
};
std::string ToSvg(const LineChart& chart);

// The results of the runs of one size.
struct ScalingPoint {
  ChartPoint mean;
  std::vector<double> runs = {};  // values of single runs, drawn faint
  double fitted = std::numeric_limits<double>::quiet_NaN();
  // The prediction for this point of a fit without it. If its x is set, the point is drawn hollow
  // and the prediction as a cross.
  ChartPoint held_out = {.x = std::numeric_limits<double>::quiet_NaN(),
                         .y = std::numeric_limits<double>::quiet_NaN()};
  std::string tip = {};    // shown under a pointer
  std::string label = {};  // written beside it where there is room
};

struct ScalingSeries {
  std::string name;
  std::vector<ScalingPoint> points;
  std::vector<ChartPoint> curve = {};                             // the fitted curve, with its band
  double fitted_until = std::numeric_limits<double>::infinity();  // dashed beyond this x
};

// Values over sizes with fitted laws and, if there are laws, below them the residuals: the points
// less their fitted values. Half as wide as the others, to stand side by side and on a telephone.
struct ScalingChart {
  std::string title;
  std::string subtitle;
  ChartAxis x;
  ChartAxis y;
  std::vector<ScalingSeries> series;
  std::vector<ChartPoint> front = {};  // a line in steps: the best y of all up to an x
};
std::string ToSvg(const ScalingChart& chart);

// Returns the style that every picture contains. A page that shows several pictures may contain it
// once instead.
std::string_view ChartStyle();

// A histogram of the rows' values: counts in bins of equal width over [0, upper].
struct Distribution {
  std::string name;
  std::vector<int64_t> histogram;
  double upper = 1;
  double mean = std::numeric_limits<double>::quiet_NaN();
  std::string note = {};  // a few words beside it
};

// Distributions below each other on one axis, each scaled to its own peak, in bins of Scott's rule.
// From one to the next the chart shows the shift: the earlier outline, dashed, an arrow between the
// means, and the colour that says whether they rise or fall.
struct DistributionChart {
  std::string title;
  std::string subtitle;
  std::string x_title;
  std::vector<Distribution> distributions;
};
std::string ToSvg(const DistributionChart& chart);

// Matrices of one size beside each other, a cell an element, row 0 on top: white at 0 and below,
// the full colour at the largest element of all.
struct HeatMap {
  struct Matrix {
    std::string name;
    std::vector<double> values;  // row-major
  };

  std::string title;
  std::string subtitle;
  int64_t columns = 0;
  std::vector<Matrix> matrices;
};
std::string ToSvg(const HeatMap& map);

// One estimate with its interval: a name above it, its numbers at the right.
struct ForestRow {
  std::string name;
  double value = 0;
  double low =
      std::numeric_limits<double>::quiet_NaN();  // no interval if low or high is not finite
  double high = std::numeric_limits<double>::quiet_NaN();
  bool told_apart = false;  // filled and coloured; else hollow and grey
};

// Estimates below each other beside a line at 0. Half as wide as the others.
struct ForestChart {
  std::string title;
  std::string subtitle;
  std::string x_title;
  std::vector<ForestRow> rows;
};
std::string ToSvg(const ForestChart& chart);

// A table of values as a heat map: the better, the darker, and the best is framed.
struct GridCell {
  double value = std::numeric_limits<double>::quiet_NaN();  // not finite: an empty cell
  std::string text;
  std::string note = {};  // small, below the text
};
struct GridChart {
  std::string title;
  std::string subtitle;
  std::string x_title, y_title;
  std::vector<std::string> columns, rows;  // names
  std::vector<GridCell> cells;             // row-major
  bool larger_is_better = true;
};
std::string ToSvg(const GridChart& chart);

}  // namespace elastor

#endif  // ELASTOR_CORE_REPORT_CHART_H_
