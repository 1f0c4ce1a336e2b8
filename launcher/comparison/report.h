#ifndef ELASTOR_LAUNCHER_COMPARISON_REPORT_H_
#define ELASTOR_LAUNCHER_COMPARISON_REPORT_H_

#include <string>

#include "launcher/comparison/comparison.h"
#include "launcher/comparison/runs.h"

namespace elastor {

// Returns who is ahead, then tables of models and pairs, for people, in Markdown that is padded for
// terminals.
std::string ToMarkdown(const ComparedRuns& runs, const Comparison& comparison);

// Returns CSV for programs: one line for every metric of a model and of a pair, with all digits.
// `second` is empty for a model, and an unknown value is empty.
std::string ToCsv(const ComparedRuns& runs, const Comparison& comparison);

}  // namespace elastor

#endif  // ELASTOR_LAUNCHER_COMPARISON_REPORT_H_
