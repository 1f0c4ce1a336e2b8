#ifndef ELASTOR_TRAINER_MODES_MODE_ROWS_H_
#define ELASTOR_TRAINER_MODES_MODE_ROWS_H_

#include "trainer/modes/mode.h"

namespace elastor {

// The rows of the table in modes.cc, each defined in a file of its name.
extern const Mode kTrain, kEvaluate, kPredict, kSpectra, kTheory, kProjection, kNtk, kVerify,
    kCompact, kDescribe, kCalibrate, kExport, kPlot;
// Mode predict with --input: raw rows, scored by a model alone. In predict.cc.
extern const Mode kScoreRows;

}  // namespace elastor

#endif  // ELASTOR_TRAINER_MODES_MODE_ROWS_H_
