#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "core/base/canonical_math.h"
#include "core/base/text.h"
#include "core/report/axis.h"
#include "core/report/chart.h"
#include "core/report/frame.h"
#include "core/report/svg.h"

namespace elastor {
namespace {

constexpr double kRowHeight = 62;
constexpr double kPeakHeight = 50;
constexpr double kTail = 0.001;     // of a distribution's rows on either side need not be shown
constexpr int kMostBins = 160;      // over the axis
constexpr double kArrowLength = 4;  // pixels; shorter shifts have none

int64_t RowsOf(const Distribution& distribution) {
  return std::accumulate(distribution.histogram.begin(), distribution.histogram.end(), int64_t{0});
}

// A density with its peak at 1, in bins of one width.
struct Outline {
  std::vector<double> values;
  std::vector<double> heights;
};

class Shape {
 public:
  explicit Shape(const Distribution& distribution)
      : histogram_(distribution.histogram),
        bin_(distribution.upper / static_cast<double>(histogram_.size())),
        rows_(RowsOf(distribution)) {}

  int64_t rows() const { return rows_; }
  // The edges of what has to be shown. REQUIRES: rows() > 0.
  double low() const { return static_cast<double>(Rank(kTail)) * bin_; }
  double high() const { return static_cast<double>(Rank(1 - kTail) + 1) * bin_; }

  // In bins of Scott's rule, but not more than kMostBins over `shown`; they lie from one empty bin
  // to another. REQUIRES: rows() > 0.
  Outline Draw(double shown) const {
    const auto rows = static_cast<double>(rows_);
    double mean = 0, squares = 0;
    for (size_t b = 0; b < histogram_.size(); ++b) {
      mean += static_cast<double>(histogram_[b]) * static_cast<double>(b) / rows;
    }
    for (size_t b = 0; b < histogram_.size(); ++b) {
      const double from_mean = static_cast<double>(b) - mean;
      squares += static_cast<double>(histogram_[b]) * from_mean * from_mean / rows;
    }
    const double scott = 3.49 * std::sqrt(squares) * CanonicalExp(-CanonicalLog(rows) / 3);
    const auto together =
        static_cast<int64_t>(std::ceil(std::max({scott, shown / bin_ / kMostBins, 1.0})));
    Outline outline;
    double peak = 0;
    const int64_t first = Rank(0) / together, last = Rank(1) / together;
    for (int64_t b = first - 1; b <= last + 1; ++b) {
      double count = 0;
      for (int64_t i = b * together; i < (b + 1) * together; ++i) {
        if (i >= 0 && i < static_cast<int64_t>(histogram_.size())) {
          count += static_cast<double>(histogram_[i]);
        }
      }
      outline.values.push_back((static_cast<double>(b) + 0.5) * static_cast<double>(together) *
                               bin_);
      outline.heights.push_back(count);
      peak = std::max(peak, count);
    }
    for (double& height : outline.heights) height /= peak;
    return outline;
  }

 private:
  // The bin of the row that has a share q below it.
  int64_t Rank(double q) const {
    const double wanted = q * static_cast<double>(rows_ - 1);
    int64_t below = 0;
    for (size_t b = 0; b < histogram_.size(); ++b) {
      below += histogram_[b];
      if (static_cast<double>(below) > wanted) return static_cast<int64_t>(b);
    }
    return static_cast<int64_t>(histogram_.size()) - 1;
  }

  const std::vector<int64_t>& histogram_;
  const double bin_;
  const int64_t rows_;
};

std::string Describe(const DistributionChart& chart) {
  std::string text = chart.subtitle + " " + chart.x_title + ".";
  for (const Distribution& distribution : chart.distributions) {
    StrAppend(&text, " ", distribution.name, ": ", RowsOf(distribution), " rows, mean ",
              ShortNumber(distribution.mean));
    if (!distribution.note.empty()) text += ", " + distribution.note;
    text += ".";
  }
  return text;
}

class DistributionDrawer {
 public:
  DistributionDrawer(const Scale& x, double left, double right, SvgWriter* svg)
      : x_(x), left_(left), right_(right), svg_(svg) {}

  // The next one, with its foot at `foot`.
  void Draw(const Distribution& distribution, double foot) {
    const Shape shape(distribution);
    const double change = distribution.mean - mean_;
    const char* const color = change > 0 ? "c0" : change < 0 ? "c1" : "c5";
    if (!outline_.empty()) svg_->Polyline(Path(outline_, foot), "ghost");
    outline_.clear();
    if (shape.rows() > 0) {
      const Outline outline = shape.Draw(x_.high() - x_.low());
      for (size_t i = 0; i < outline.values.size(); ++i) {
        outline_.push_back({outline.values[i], outline.heights[i]});
      }
      svg_->Polygon(Path(outline_, foot), std::string(color) + " area");
      svg_->Polyline(Path(outline_, foot), std::string(color) + " line");
    }
    svg_->Line({left_, foot}, {right_, foot}, "axis");
    if (std::isfinite(distribution.mean)) DrawMean(distribution.mean, foot, color);
    svg_->Text({left_ - 12, foot - 4}, TextAnchor::kEnd, "", distribution.name);
    DrawNotes(distribution, shape.rows(), change, foot);
    mean_ = distribution.mean;
  }

 private:
  // Values and heights on the page, cut at the plot's sides.
  std::vector<SvgPoint> Path(const std::vector<SvgPoint>& outline, double foot) const {
    std::vector<SvgPoint> path;
    for (const auto [value, height] : outline) {
      const double at = x_.At(value);
      if (at >= left_ && at <= right_) path.push_back({at, foot - height * kPeakHeight});
    }
    if (path.empty()) return {{left_, foot}, {left_, foot}};
    path.insert(path.begin(), {path.front().x, foot});
    path.push_back({path.back().x, foot});
    return path;
  }

  void DrawMean(double mean, double foot, const std::string& color) {
    const double at = x_.At(mean);
    svg_->Line({at, foot}, {at, foot - kPeakHeight}, color + " whisker");
    if (!std::isfinite(mean_)) return;
    const double from = x_.At(mean_);
    const double direction = at > from ? 1 : -1;
    if (std::fabs(at - from) < kArrowLength) return;
    const double y = foot - kPeakHeight - 1;
    svg_->Line({from, y}, {at - 4 * direction, y}, color + " whisker");
    svg_->Polygon({{at, y}, {at - 7 * direction, y - 3.5}, {at - 7 * direction, y + 3.5}},
                  color + " marker");
  }

  void DrawNotes(const Distribution& distribution, int64_t rows, double change, double foot) {
    const double x = right_ + 12;
    if (rows == 0) return svg_->Text({x, foot - 4}, TextAnchor::kStart, "label", "no rows");
    const double range = x_.high() - x_.low();
    const int decimals = range < 0.1 ? 4 : range < 1 ? 3 : 2;
    const std::string mean =
        std::isfinite(distribution.mean) ? NumberText(distribution.mean, decimals) : "no mean";
    svg_->Text({x, foot - 20}, TextAnchor::kStart, "strong", mean);
    if (std::isfinite(change)) {
      svg_->Text({x + TextWidth(mean, 13) + 12, foot - 20}, TextAnchor::kStart, "",
                 (change > 0 ? "+" : "") + NumberText(change, decimals));
    }
    svg_->Text({x, foot - 4}, TextAnchor::kStart, "label", distribution.note);
  }

  const Scale& x_;
  const double left_;
  const double right_;
  SvgWriter* const svg_;
  double mean_ = std::numeric_limits<double>::quiet_NaN();
  std::vector<SvgPoint> outline_;  // of the last one: value, height
};

}  // namespace

std::string ToSvg(const DistributionChart& chart) {
  std::vector<double> shown;
  double names = 0, notes = 90;
  for (const Distribution& distribution : chart.distributions) {
    names = std::max(names, TextWidth(distribution.name, 13));
    notes = std::max(notes, TextWidth(distribution.note, 12));
    const Shape shape(distribution);
    if (shape.rows() == 0) continue;
    shown.insert(shown.end(), {shape.low(), shape.high()});
    if (std::isfinite(distribution.mean)) shown.push_back(distribution.mean);
  }
  const double left = kChartMargin + names + 12;
  const double right = kChartWidth - kChartMargin - notes - 12;
  const double top = HeadHeight(chart.subtitle, kChartWidth);
  const double bottom = top + kRowHeight * static_cast<double>(chart.distributions.size());
  const Scale x({.title = chart.x_title}, shown, /*ticks=*/7, left, right);
  const double height = bottom + BottomAxisHeight(x, chart.x_title, false) + 14;

  SvgWriter svg(kChartWidth, height, chart.title, Describe(chart));
  DrawHead(chart.title, chart.subtitle, kChartWidth, &svg);
  DrawBottomAxis(x, chart.x_title, left, right, top, bottom, /*turned=*/false, &svg);
  DistributionDrawer drawer(x, left, right, &svg);
  double foot = top;
  for (const Distribution& distribution : chart.distributions) {
    drawer.Draw(distribution, foot += kRowHeight);
  }
  return std::move(svg).Finish();
}

}  // namespace elastor
