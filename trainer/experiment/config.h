#ifndef ELASTOR_TRAINER_EXPERIMENT_CONFIG_H_
#define ELASTOR_TRAINER_EXPERIMENT_CONFIG_H_

#include <map>
#include <span>
#include <string>

#include "configs/proto/experiment.pb.h"
#include "core/base/status.h"

namespace elastor {

// Loads an experiment ready to run: reads the file, applies the overrides (ApplyOverrides), fills
// in every default and checks every field. User error in one line naming the file or the field, the
// value found and the value expected.
StatusOr<Experiment> LoadExperiment(const std::string& path,
                                    std::span<const std::string> overrides);

// Reads the file as it stands, except that fields of the first format are moved (model_choice.h).
StatusOr<Experiment> ReadExperiment(const std::string& path);

// Returns the XXH3-64, as 16 hex digits, of a resolved experiment's numeric fields (those without
// the `operational` option). Equal hashes mean equal results.
std::string NumericHash(const Experiment& experiment);

// Returns a resolved experiment without the `operational` fields.
Experiment NumericFields(Experiment experiment);

// Returns the numeric fields of a resolved experiment that differ from their defaults. This is the
// smallest experiment from which ResolveDefaults makes the same numeric fields again. A field that
// a later version adds is left out while it has its default.
Experiment DistinctFields(const Experiment& experiment);

// Returns every field that is set, as "optimizer.learning_rate", with its value as a text.
std::map<std::string, std::string> FieldTexts(const Experiment& experiment);

// Returns what tells a resolved experiment from others in a table: its model, the fields of
// DistinctFields, and rate, batch, epochs and seed also where they are the defaults.
std::map<std::string, std::string> SettingTexts(const Experiment& experiment);

// Returns the first numeric field, in the order of experiment.proto, in which two resolved
// experiments differ, as "optimizer.learning_rate: 0.002; expected 0.001". Empty if none differs.
std::string NumericDifference(const Experiment& found, const Experiment& expected);

// Returns the first field, except those marked `per_rank`, in which a rank's resolved experiment
// differs from rank 0's, as "training.max_steps is 3, expected rank 0's 5". Empty if none differs.
std::string RankDifference(const Experiment& found, const Experiment& of_rank_0);

// Returns the text that goes into experiment.textproto and checkpoints. ParseExperiment reads it
// back unchanged; `source` names the text in errors.
std::string ExperimentText(const Experiment& experiment);
StatusOr<Experiment> ParseExperiment(const std::string& text, const std::string& source);

// Returns the experiment with absolute paths, so that a written experiment can be used from any
// directory. This changes no numeric field.
Experiment WithAbsolutePaths(Experiment experiment);

// Converts a stored experiment to this build's format. Fields that the writing build did not have
// get their defaults.
StatusOr<Experiment> CompleteStored(Experiment experiment);

}  // namespace elastor

#endif  // ELASTOR_TRAINER_EXPERIMENT_CONFIG_H_
