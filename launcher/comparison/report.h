#ifndef ELASTOR_LAUNCHER_COMPARISON_REPORT_H_
#define ELASTOR_LAUNCHER_COMPARISON_REPORT_H_

#include <string>

#include "launcher/comparison/comparison.h"
#include "launcher/comparison/runs.h"

namespace elastor {

// For people: tables of models and pairs in Markdown, padded so that a terminal shows them, too.
std::string ToMarkdown(const ComparedRuns& runs, const Comparison& comparison);

// For programs: a line for every metric of a model and of a pair (`second` is empty for a model),
// all digits; what is not known is empty.
std::string ToCsv(const ComparedRuns& runs, const Comparison& comparison);

}  // namespace elastor

#endif  // ELASTOR_LAUNCHER_COMPARISON_REPORT_H_
