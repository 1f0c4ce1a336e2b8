#ifndef ELASTOR_LAUNCHER_SWEEP_REPORT_SWEEP_REPORT_H_
#define ELASTOR_LAUNCHER_SWEEP_REPORT_SWEEP_REPORT_H_

#include <string>

#include "core/base/status.h"
#include "launcher/run_folder.h"

namespace elastor {

// Writes the report of a sweep, finished or not, from its folder's files alone, into
// files.Report(): report.html, which needs no other file; every figure as .svg and, where
// rsvg-convert is installed, .png; fits.csv, points.csv and spectra.csv. The same bytes for the
// same files. `trainer` stands in the commands that repeat a run. Returns what was written, a line
// or two. User error when the folder holds no sweep, machine error when a file cannot be written.
StatusOr<std::string> WriteSweepReport(const SweepFiles& files, const std::string& trainer);

}  // namespace elastor

#endif  // ELASTOR_LAUNCHER_SWEEP_REPORT_SWEEP_REPORT_H_
