#ifndef ELASTOR_LAUNCHER_RUN_SIZES_H_
#define ELASTOR_LAUNCHER_RUN_SIZES_H_

#include <map>
#include <string>

#include "configs/proto/experiment.pb.h"
#include "core/base/status.h"
#include "launcher/plan.h"
#include "trainer/data/dataset.h"
#include "trainer/experiment/describe.h"

namespace elastor {

// Data and sizes of runs. Data sets that runs share are opened once, models of one shape looked at
// once.
class RunSizes {
 public:
  struct Data {
    DatasetInfo info;
    std::string fingerprint;  // empty without a data set
  };

  // `tuned`: values are chosen by the losses of validation rows, which every data set needs then.
  explicit RunSizes(bool tuned) : tuned_(tuned) {}

  // Returns the data of an experiment, which stay: its data set, or else those of data.shape.
  StatusOr<const Data*> Open(const Experiment& experiment);

  // Sets parameters, work and memory of a run whose ranks are set.
  Status Measure(const Experiment& experiment, const Data& data, PlannedRun* run);

 private:
  const bool tuned_;
  std::map<std::string, Data> data_;  // by path
  std::map<std::string, RunFigures> figures_;
};

}  // namespace elastor

#endif  // ELASTOR_LAUNCHER_RUN_SIZES_H_
