#ifndef ELASTOR_TRAINER_PREPARE_TEACHER_H_
#define ELASTOR_TRAINER_PREPARE_TEACHER_H_

#include <cstdint>
#include <vector>

#include "configs/proto/schema.pb.h"
#include "trainer/data/dataset.h"

namespace elastor {

// Rows of a Synthetic plan and the logits behind their labels (formulas: docs/data.md). A row is a
// function of (plan, row number). Thread-safe after construction.
class Teacher {
 public:
  // Calibrates mean and standard deviation of the logit on the first rows.
  explicit Teacher(const Synthetic& plan);

  // Appends row `row` to *rows (offsets only with multi-hot fields) and returns its true logit.
  double AppendRow(int64_t row, Rows* rows) const;

 private:
  // What the teacher sees of a row.
  struct Latents {
    std::vector<double> sum;  // of the latent vectors, [rank]
    double squares = 0;       // sum of |v|^2 over fields
    double first_order = 0;   // sum of the weights w
  };

  void AppendFeatures(int64_t row, Rows* rows) const;
  void AppendId(int64_t row, int64_t field, int64_t position, Rows* rows) const;
  int64_t BagLength(int64_t row, int64_t field) const;
  // Of the last row of *rows.
  Latents LatentsOf(const Rows& rows) const;
  double RawScore(const Latents& latents) const;
  void StandardizeSums(const std::vector<Latents>& sample);
  void Calibrate();

  const Synthetic plan_;
  const int64_t rank_;
  const int64_t numeric_;
  const int64_t columns_;         // categorical and multi-hot
  std::vector<double> sum_mean_;  // COORDINATE_MIXING: over the first rows, [rank]
  std::vector<double> sum_stddev_;
  double scale_ = 1;
  double shift_ = 0;
};

}  // namespace elastor

#endif  // ELASTOR_TRAINER_PREPARE_TEACHER_H_
