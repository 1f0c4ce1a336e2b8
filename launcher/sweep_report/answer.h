#ifndef ELASTOR_LAUNCHER_SWEEP_REPORT_ANSWER_H_
#define ELASTOR_LAUNCHER_SWEEP_REPORT_ANSWER_H_

#include <string>
#include <vector>

#include "launcher/sweep_report/arms.h"
#include "launcher/sweep_report/laws.h"
#include "launcher/sweep_report/sweep_data.h"

namespace elastor {

// What the sweep shows, in sentences of plain text that rules make from its statistics.
struct Answer {
  std::vector<std::string> lead;     // who is ahead, and what size does
  std::vector<std::string> at_size;  // models at equal sizes by their laws
  std::vector<std::string> details;  // the laws, one sentence a series; empty unless HaveSizes
};
Answer MakeAnswer(const SweepData& data, const SweepArms& arms, const std::vector<SweepLaw>& laws);

// Whether any model has the three sizes that a law needs.
bool HaveSizes(const std::vector<SweepLaw>& laws);

// Returns "12 of 20 runs are done, 1 failed, 7 are waiting."
std::string ProgressText(const SweepData& data);

// "+0.0012" and "-0.85 %", with a true minus.
std::string SignedNumber(double value);
std::string SignedPercent(double share);

// Returns "E + A N^-alpha" with numbers: "0.4399 + 2.69 N^-0.355".
std::string LawText(const SweepLaw& law, const Analysis& analysis);
Interval LimitInterval(const Analysis& analysis);
Interval ExponentInterval(const Analysis& analysis, size_t k);
// Returns the relative noise of a held-out mean over its seeds.
double NoiseOfMeans(const SeriesLaw& law);

}  // namespace elastor

#endif  // ELASTOR_LAUNCHER_SWEEP_REPORT_ANSWER_H_
