#ifndef ELASTOR_LAUNCHER_SPECTRA_REPORT_REPORT_H_
#define ELASTOR_LAUNCHER_SPECTRA_REPORT_REPORT_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/report/chart_table.h"
#include "launcher/spectra_report/runs.h"

namespace elastor {

// A mean over seeds with its 95 % interval by Student's t. With one seed the interval is infinite.
struct SeedMean {
  double mean = 0;
  double low = 0;
  double high = 0;
  int64_t positive = 0;  // seeds whose value is above 0
  int64_t negative = 0;
};
SeedMean MeanOverSeeds(std::span<const double> values);

// Mean rank of a stage at a step, and its change from the previous stage (0 for the first).
SeedMean RankOverSeeds(const SpectraModel& model, int kind, int64_t step, size_t stage);
SeedMean ChangeOverSeeds(const SpectraModel& model, int kind, int64_t step, size_t stage);

// Returns the least-squares slope of the mean rank over the model's Trajectory, per block or
// iteration. REQUIRES: the trajectory has two points or more.
SeedMean SlopeOverSeeds(const SpectraModel& model, int kind, int64_t step);

// Returns the rank of the head's scoring matrices; none if a run did not measure it at this step.
std::optional<SeedMean> ScoringOverSeeds(const SpectraModel& model, int kind, int64_t step);

// Returns the table for people: every model at its first and its last step.
std::string ToText(std::span<const SpectraModel> models);

// Returns the names and texts of the files: stages.csv, every model, step, kind and stage;
// slopes.csv, every model, step and kind; scoring.csv, likewise, where heads are linear;
// stages_KIND.svg, models side by side at their last steps, and stages_start_KIND.svg at their
// first, where that is another; drift_KIND_MODEL.svg, a model's stages over the steps, where there
// are several. If exported, each picture has its data beside it.
NamedTexts ReportFiles(std::span<const SpectraModel> models,
                       std::optional<ExportFormat> exported = std::nullopt);

}  // namespace elastor

#endif  // ELASTOR_LAUNCHER_SPECTRA_REPORT_REPORT_H_
