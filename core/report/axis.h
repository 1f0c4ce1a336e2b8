#ifndef ELASTOR_CORE_REPORT_AXIS_H_
#define ELASTOR_CORE_REPORT_AXIS_H_

#include <string>
#include <vector>

#include "core/report/chart.h"

namespace elastor {

// Returns whether a number can be drawn on the axis.
bool IsDrawable(double value, const ChartAxis& axis);

// Maps numbers to places on an axis, and holds its ticks.
class Scale {
 public:
  // The smallest range that holds the values, a little wider: `values` may be in any order, and
  // those that cannot be drawn are ignored. With categories the axis shows these. About `ticks`
  // ticks. Values lie between the pixels `from` and `to`, which may be the smaller.
  Scale(const ChartAxis& axis, const std::vector<double>& values, int ticks, double from,
        double to);

  // REQUIRES: IsDrawable.
  double At(double value) const;
  double low() const { return low_; }
  double high() const { return high_; }
  // The values at the ends.
  double low_value() const;
  double high_value() const;

  struct Tick {
    double at = 0;      // pixels
    std::string label;  // empty: a line without one
  };
  const std::vector<Tick>& ticks() const { return ticks_; }

 private:
  void MakeLinearTicks(double low, double high, int ticks);
  void MakeLogarithmicTicks(int ticks);

  bool logarithmic_ = false;
  bool prefixes_ = false;
  double from_ = 0;
  double to_ = 0;
  double low_ = 0;  // low end of the axis; on a logarithmic axis, its logarithm
  double high_ = 1;
  std::vector<Tick> ticks_;
};

// Returns a number for people: `decimals` decimals, a true minus sign, and commas from 10,000 on.
std::string NumberText(double value, int decimals);

// Returns a number with a prefix, "950", "12.5k", "3M", "1.2G", "4T", with `digits` significant
// digits, without trailing zeros.
std::string PrefixedNumber(double value, int digits);

// Returns a number as NumberText to three significant digits; very large or small ones use powers
// of ten.
std::string ShortNumber(double value);

}  // namespace elastor

#endif  // ELASTOR_CORE_REPORT_AXIS_H_
