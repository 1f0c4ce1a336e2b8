#ifndef ELASTOR_LAUNCHER_SPECTRA_REPORT_PROJECTIONS_H_
#define ELASTOR_LAUNCHER_SPECTRA_REPORT_PROJECTIONS_H_

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/base/status.h"
#include "core/report/chart_table.h"

namespace elastor {

// Names of the metrics, as in the columns of projections.csv (trainer/evaluate/rank_projection.h).
inline constexpr std::array kProjectionMetrics = {"auc", "logloss", "gauc", "bits_per_label"};
using ProjectionValues = std::array<double, kProjectionMetrics.size()>;  // NaN: none

struct ProjectionLine {
  int64_t rank = 0;  // rank of the matrices before the head; 0: as they are
  std::string label;
  int64_t rows = 0;
  bool operator==(const ProjectionLine&) const = default;
};

struct ProjectedRun {
  std::string source;  // its folder
  int64_t seed = 0;
  std::vector<ProjectionValues> values;  // by line
};

// The runs of one model, which differ in their seeds.
struct ProjectedModel {
  std::string name;   // the experiment's
  std::string split;  // whose rows were evaluated
  std::vector<ProjectionLine> lines;
  std::vector<ProjectedRun> runs;  // by seed
};

// Returns whether mode projection has written into the folder.
StatusOr<bool> HoldsProjections(const std::string& folder);

// Reads these folders of mode projection. Models come in the order in which they are first named.
// User error when runs of one model have the same seed, or differ in ranks, labels or rows.
StatusOr<std::vector<ProjectedModel>> ReadProjections(std::span<const std::string> folders);

// Returns the table for people: means over seeds with their 95 % intervals, and their distance from
// the means of the whole matrices.
std::string ToText(std::span<const ProjectedModel> models);

// Names and texts of the files: projections.csv, every model, metric, rank and label; and, what was
// measured of them, projections_auc.svg and projections_bits_per_label.svg, models side by side.
NamedTexts ProjectionFiles(std::span<const ProjectedModel> models,
                           std::optional<ExportFormat> exported = std::nullopt);

}  // namespace elastor

#endif  // ELASTOR_LAUNCHER_SPECTRA_REPORT_PROJECTIONS_H_
