#include "trainer/modes/mode_rows.h"
#include "trainer/run/training.h"

namespace elastor {
namespace {

Status RunTrain(const ModeCall& call, Communicator& communicator) {
  return RunTraining(call.options, communicator);
}

constexpr const char* kTrainFlags[] = {"continue", "hosts",        "hostfile",    "launch",
                                       "logits",   "max_restarts", "predictions", "resume",
                                       "split",    "supervise",    "tensorboard"};

}  // namespace

const Mode kTrain = {.name = "train",
                     .help = "trains a model on a data set",
                     .model = Mode::Model::kNone,
                     .flags = kTrainFlags,
                     .run = RunTrain};

}  // namespace elastor
