#ifndef ELASTOR_CORE_TASK_TASK_H_
#define ELASTOR_CORE_TASK_TASK_H_

#include <cstdint>

namespace elastor {

// What is learned: the labels of a row, what the outputs of a graph mean, the loss between them
// (loss.h, cuda/device_loss.h) and the metrics of an evaluation (trainer/evaluate/metrics.h). Those
// are made from the task, so nothing else knows which one it is.
struct Task {
  enum class Kind {
    kBinary,  // one label, 0 or 1; one output, its logit; cross-entropy
  };
  Kind kind = Kind::kBinary;

  int64_t labels() const { return 1; }   // numbers per row
  int64_t outputs() const { return 1; }  // of the graph, per row
};

}  // namespace elastor

#endif  // ELASTOR_CORE_TASK_TASK_H_
