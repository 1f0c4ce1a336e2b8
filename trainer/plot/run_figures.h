#ifndef ELASTOR_TRAINER_PLOT_RUN_FIGURES_H_
#define ELASTOR_TRAINER_PLOT_RUN_FIGURES_H_

#include <vector>

#include "core/report/html.h"
#include "trainer/plot/run_history.h"

namespace elastor {

// Pictures of one run, or of several beside each other, for every quantity that they recorded. A
// curve of many records is drawn as means of neighbouring records with a band from the least to the
// largest.
struct RunPictures {
  FigureGroup quality;  // loss and metrics
  FigureGroup course;   // learning rate, gradient norm, penalty, speed
  std::vector<FigureGroup> ranks;
};
RunPictures MakeFigures(const std::vector<RunHistory>& runs);

}  // namespace elastor

#endif  // ELASTOR_TRAINER_PLOT_RUN_FIGURES_H_
