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
    // Labels of a class 0 .. C - 1, or not-a-number where a row has none; of each a run of C
    // outputs, one label's after another's; cross-entropy with their softmax. The loss of a row is
    // the mean over the labels that it has, that of a batch their mean over all its rows.
    kClasses,
  };
  struct Label {
    std::string name = {};  // empty: the only label of its data set
    int64_t column = 0;     // place among the labels of a row
    double weight = 1;
  };
  Kind kind = Kind::kBinary;
  int64_t classes = 0;  // C; 0 where labels are binary
  int64_t row_labels = 1;
  std::vector<Label> learned = {{}};

  int64_t labels() const { return row_labels; }  // numbers per row, learned or not
  // Losses of a row, one for each label that is learned.
  int64_t losses() const { return static_cast<int64_t>(learned.size()); }
  int64_t outputs_per_label() const { return kind == Kind::kClasses ? classes : 1; }
  int64_t outputs() const { return losses() * outputs_per_label(); }  // of the graph, per row

  // What the losses of a row with these labels are multiplied with and then added: a number for
  // all labels, to be multiplied with each one's weight.
  double RowShare(const float* labels) const {
    if (kind == Kind::kBinary) return 1;
    int64_t present = 0;
    for (const Label& label : learned) present += labels[label.column] == labels[label.column];
    return present == 0 ? 0 : 1 / static_cast<double>(present);
  }
};

}  // namespace elastor

#endif  // ELASTOR_CORE_TASK_TASK_H_
