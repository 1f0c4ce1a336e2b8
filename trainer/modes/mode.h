#ifndef ELASTOR_TRAINER_MODES_MODE_H_
#define ELASTOR_TRAINER_MODES_MODE_H_

#include <span>
#include <string>
#include <vector>

#include "collective/communicator.h"
#include "core/base/status.h"
#include "trainer/run/run_context.h"

namespace elastor {

// What a mode is called with. Every rank has the same.
struct ModeCall {
  RunOptions options;
  std::vector<std::string> folders;  // the arguments that are no flags
};

// One thing that the trainer does. A new mode is a file that defines a row, and a line in modes.cc.
struct Mode {
  // What the command line must name besides flags.
  enum class Source {
    kDataSet,     // an experiment with a prepared data set, on which the mode computes
    kExperiment,  // an experiment, with a data set or with data.shape
    kModel,       // a model's or checkpoint's folder alone
    kRuns,        // the folders of runs alone
  };
  enum class Model { kNone, kOptional, kNeeded };  // --model

  const char* name;  // of --mode
  const char* help;  // after the name in --help
  Source source = Source::kDataSet;
  Model model = Model::kNeeded;
  bool writes = true;  // needs --output_dir
  // The settings below parallel. that --set may change where a model's folder tells the rest.
  std::span<const char* const> parallel = {};
  // The flags that it takes and not all modes do.
  std::span<const char* const> flags = {};
  bool cpu_alone = false;  // refuses --device=cuda, as all modes do that take no data set

  // Does it. All ranks return the same status, but for machine errors. Collective.
  Status (*run)(const ModeCall& call, Communicator& communicator) = nullptr;
};

// Whether it takes all that it needs to know from a folder.
inline bool ReadsFolders(const Mode& mode) {
  return mode.source == Mode::Source::kModel || mode.source == Mode::Source::kRuns;
}

// All modes, in the order of --help.
std::span<const Mode* const> Modes();
// Writes `text` to stdout from rank 0. Collective.
Status PrintOnce(const std::string& text, Communicator& communicator);

}  // namespace elastor

#endif  // ELASTOR_TRAINER_MODES_MODE_H_
