#ifndef ELASTOR_TRAINER_EVALUATE_SPECTRA_FILES_H_
#define ELASTOR_TRAINER_EVALUATE_SPECTRA_FILES_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "core/report/chart_table.h"
#include "core/spectrum/spectrum.h"
#include "trainer/records/spectrum_record.h"

namespace elastor {

// Files of mode spectra (docs/use/analysis.md). Numbers in CSV are the shortest texts that give the
// same double. A missing value is left empty.

// Writes into `directory`: spectra.csv with one line per stage; spectra_histogram.csv; the pictures
// spectra_stable.svg and spectra_entropy.svg with the ranks' distributions from stage to stage; and
// spectra_means.svg, if exported with their data beside them. `model` is the model's name in the
// pictures' titles. REQUIRES: records of one measurement, in the order of the stages.
Status WriteSpectra(const std::string& directory, const std::string& model,
                    const std::vector<SpectrumRecord>& records,
                    std::optional<ExportFormat> exported);

// Return the text of spectra_samples.csv: its line of names, and the lines of consecutive rows that
// begin at first_row. Shape: ranks [rows][stages].
std::string SamplesHeader(std::span<const std::string> stages);
std::string SampleLines(int64_t first_row, int64_t stages, std::span<const EffectiveRank> ranks);

}  // namespace elastor

#endif  // ELASTOR_TRAINER_EVALUATE_SPECTRA_FILES_H_
