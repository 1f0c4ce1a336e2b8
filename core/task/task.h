#ifndef ELASTOR_CORE_TASK_TASK_H_
#define ELASTOR_CORE_TASK_TASK_H_

#include <cstdint>
#include <string>
#include <vector>

namespace elastor {

// What is learned: the labels of a row, what the outputs of a graph mean, the loss between them
// (loss.h, cuda/device_loss.h) and the metrics of an evaluation (trainer/evaluate/metrics.h). Those
// are made from the task, so nothing else knows which one it is.
struct Task {
  enum class Kind {
    // Labels of 0 or 1, or not-a-number where a row has none; of each learned one an output, its
    // logit; cross-entropy. A row without a label counts for nothing in that label's loss,
    // gradient and metrics. The loss of a row is
    //   sum over learned labels that it has of weight * cross-entropy,
    // that of a batch their mean over all its rows, whether they have every label or not.
    kBinary,
  };
  struct Label {
    std::string name = {};  // empty: the only label of its data set
    int64_t column = 0;     // place among the labels of a row
    double weight = 1;
  };
  Kind kind = Kind::kBinary;
  int64_t row_labels = 1;
  std::vector<Label> learned = {{}};

  int64_t labels() const { return row_labels; }  // numbers per row, learned or not
  int64_t outputs() const { return static_cast<int64_t>(learned.size()); }  // of the graph, per row
};

}  // namespace elastor

#endif  // ELASTOR_CORE_TASK_TASK_H_
