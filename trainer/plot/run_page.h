#ifndef ELASTOR_TRAINER_PLOT_RUN_PAGE_H_
#define ELASTOR_TRAINER_PLOT_RUN_PAGE_H_

#include <string>
#include <vector>

#include "trainer/plot/run_figures.h"
#include "trainer/plot/run_history.h"

namespace elastor {

// Returns report.html for one run, or for several beside each other.
std::string ToHtml(const std::vector<RunHistory>& runs, const RunPictures& figures);

}  // namespace elastor

#endif  // ELASTOR_TRAINER_PLOT_RUN_PAGE_H_
