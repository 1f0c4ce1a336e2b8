#ifndef ELASTOR_CORE_TASK_TASK_H_
#define ELASTOR_CORE_TASK_TASK_H_

#include <cstdint>
#include <string>
#include <vector>

namespace elastor {

// The learning task: the labels of a row, the meaning of a graph's outputs, the loss between them
// (loss.h, cuda/device_loss.h) and the metrics of an evaluation (trainer/evaluate/metrics.h). Loss
// and metrics are made from the task, so no other code depends on its kind.
struct Task {
  enum class Kind {
    // Labels are 0 or 1, or not-a-number if a row has none. Each learned label has one output, its
    // logit; the loss is cross-entropy. A row without a label counts for nothing in that label's
    // loss, gradient and metrics. The loss of a row is
    //   sum over learned labels that it has of weight * cross-entropy,
    // A batch's loss is the mean over all its rows, whether or not they have every label.
    kBinary,
    // Labels are classes 0 .. C - 1, or not-a-number if a row has none. Each label has a run of C
    // outputs, one label after another; the loss is cross-entropy with their softmax. The loss of a
    // row is the mean over the labels that it has; a batch's loss is the mean over all its rows.
    kClasses,
  };
  struct Label {
    std::string name = {};  // empty: the only label of its data set
    int64_t column = 0;     // index among the labels of a row
    double weight = 1;
  };
  Kind kind = Kind::kBinary;
  int64_t classes = 0;  // C; 0 if labels are binary
  int64_t row_labels = 1;
  std::vector<Label> learned = {{}};
  // Outputs behind the label's that learn its prediction p, which is held fixed (binary, one label;
  // FinalNet): each adds weight * cross-entropy(sigmoid(z_s), p) to what is differentiated. Losses
  // that are reported and metrics are those of the labels alone.
  int64_t students = 0;
  // Outputs behind the label's that learn the label beside it (binary, one label; DCNv3). With L
  // the label's loss and L_s a branch's, both means over the batch, label weight *
  //   (L + sum over branches of max(0, L_s - L) * L_s)
  // is differentiated, the weights max(0, L_s - L) included. Losses that are reported and metrics
  // are those of the labels alone.
  int64_t branches = 0;

  int64_t labels() const { return row_labels; }  // numbers per row, learned or not
  // Returns the number of losses of a row, one for each learned label.
  int64_t losses() const { return static_cast<int64_t>(learned.size()); }
  int64_t outputs_per_label() const { return kind == Kind::kClasses ? classes : 1; }
  // Returns the number of outputs that predict, which come first, and of all outputs of the graph.
  int64_t outputs() const { return losses() * outputs_per_label(); }
  int64_t graph_outputs() const { return outputs() + students + branches; }
  // Returns how many losses of a row have means over the batch that the gradients need: those of
  // the first outputs. With any, a step sums them over all ranks before its backward pass.
  int64_t batch_losses() const { return branches == 0 ? 0 : 1 + branches; }

  // Returns the factor of the losses of a row with these labels. The row's loss is the sum over
  // labels of this factor times the label's weight times the label's loss.
  double RowShare(const float* labels) const {
    if (kind == Kind::kBinary) return 1;
    int64_t present = 0;
    for (const Label& label : learned) present += labels[label.column] == labels[label.column];
    return present == 0 ? 0 : 1 / static_cast<double>(present);
  }
};

}  // namespace elastor

#endif  // ELASTOR_CORE_TASK_TASK_H_
