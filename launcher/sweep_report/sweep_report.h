#ifndef ELASTOR_LAUNCHER_SWEEP_REPORT_SWEEP_REPORT_H_
#define ELASTOR_LAUNCHER_SWEEP_REPORT_SWEEP_REPORT_H_

#include <optional>
#include <string>

#include "core/base/status.h"
#include "core/report/chart_table.h"
#include "launcher/run_folder.h"
#include "launcher/scaling_law/analysis.h"

namespace elastor {

// Writes the report of a sweep, finished or not, from its folder's files alone, into
// files.Report(): report.html, which needs no other file; every figure as .svg and, where
// rsvg-convert is installed, .png; the data of every figure if
// `exported`; fits.csv, points.csv and spectra.csv. The same bytes for the
// same files. Laws of series with many runs have fewer replicates than `options` asks for. Returns
// what was written, a line or two. User error when the folder holds no sweep, machine error when a
// file cannot be written.
StatusOr<std::string> WriteSweepReport(const SweepFiles& files, AnalysisOptions options = {},
                                       std::optional<ExportFormat> exported = std::nullopt);

}  // namespace elastor

#endif  // ELASTOR_LAUNCHER_SWEEP_REPORT_SWEEP_REPORT_H_
