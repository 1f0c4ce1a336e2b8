#ifndef ELASTOR_TRAINER_EVALUATE_SPECTRA_FILES_H_
#define ELASTOR_TRAINER_EVALUATE_SPECTRA_FILES_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "core/spectrum/spectrum.h"
#include "trainer/evaluate/spectrum_record.h"

namespace elastor {

// The files of mode spectra (docs/use/analysis.md). Numbers in CSV are the shortest texts that give
// the same double; what there is none of is left empty.

// Into `directory`: spectra.csv, one line a stage; spectra_histogram.csv; and the pictures
// spectra_stable.svg and spectra_entropy.svg, the ranks' distributions from stage to stage, and
// spectra_means.svg. `model`: what the pictures' titles call it. REQUIRES: records of one
// measurement, in the order of the stages.
Status WriteSpectra(const std::string& directory, const std::string& model,
                    const std::vector<SpectrumRecord>& records);

// spectra_samples.csv: the line of names, and lines of rows that begin at first_row; ranks
// [rows][stages].
std::string SamplesHeader(std::span<const std::string> stages);
std::string SampleLines(int64_t first_row, int64_t stages, std::span<const EffectiveRank> ranks);

}  // namespace elastor

#endif  // ELASTOR_TRAINER_EVALUATE_SPECTRA_FILES_H_
