#ifndef ELASTOR_TRAINER_PREPARE_SYNTHETIC_TEACHER_H_
#define ELASTOR_TRAINER_PREPARE_SYNTHETIC_TEACHER_H_

#include <cstdint>
#include <vector>

#include "configs/proto/schema.pb.h"
#include "trainer/data/dataset.h"

namespace elastor {

// Rows of a Synthetic plan and the logits behind their labels (formulas:
// docs/reference/planted_data.md). A row is a function of (plan, row number). Thread-safe after
// construction.
class Teacher {
 public:
  // Calibrates mean and standard deviation of the logit on the first rows.
  explicit Teacher(const Synthetic& plan);

  int64_t labels() const { return static_cast<int64_t>(labels_.size()); }

  // Appends row `row` to *rows (offsets only with multi-hot fields) and returns the true logits of
  // its labels, also of those that are missing.
  std::vector<double> AppendRow(int64_t row, Rows* rows) const;

 private:
  // What the teacher sees of a row.
  struct Latents {
    std::vector<double> sum;  // of the latent vectors, [rank]
    double squares = 0;       // sum of |v|^2 over fields
    double first_order = 0;   // sum of the weights w
  };

  void AppendFeatures(int64_t row, Rows* rows) const;
  void AppendId(int64_t row, int64_t field, int64_t position, Rows* rows) const;
  // The key of what stands at an id's place when the row is made.
  int64_t KeyAt(int64_t row, int64_t field, int64_t id) const;
  int64_t BagLength(int64_t row, int64_t field) const;
  // What makes the logit of a label from its score.
  struct Label {
    std::vector<double> sum_mean;  // COORDINATE_MIXING: over the first rows, [rank]
    std::vector<double> sum_stddev;
    double mean = 0;  // of the scores of the first rows
    double scale = 1;
    double shift = 0;

    double Centred(double score) const { return scale * (score - mean); }
  };
  // Latent vectors of a row of *rows for one label; every label has latent vectors of its own.
  Latents LatentsOf(const Rows& rows, int64_t row, int64_t label) const;
  double Score(const Latents& latents, const Label& label) const;
  void StandardizeSums(const std::vector<Latents>& sample, Label* label) const;
  // The true logit but for its shift; `first` is the first label's centred score.
  double Mix(int64_t label, double first, double own) const;
  void Calibrate();

  const Synthetic plan_;
  const int64_t rank_;
  const int64_t numeric_;
  const int64_t columns_;  // categorical and multi-hot
  std::vector<Label> labels_;
};

}  // namespace elastor

#endif  // ELASTOR_TRAINER_PREPARE_SYNTHETIC_TEACHER_H_
