#ifndef ELASTOR_TRAINER_EVALUATE_NTK_RECORD_H_
#define ELASTOR_TRAINER_EVALUATE_NTK_RECORD_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace elastor {

// The spectrum of one layer's neural tangent kernel, or of the whole model's (docs/models.md,
// "Neural tangent kernel").
struct NtkRecord {
  int64_t step = 0;
  std::string split = {};
  std::string layer = {};  // "whole": of all parameters, embeddings included
  int64_t rows = 0;
  int64_t parameters = 0;  // of embeddings: those of the ids that occur in the rows
  double lambda_max = 0;
  double lambda_min = 0;
  int64_t rank = 0;  // eigenvalues that double can tell from 0
  // lambda_max / lambda_min; over the first `rank` eigenvalues where fewer parameters than rows
  // make the others 0; none where double cannot tell.
  std::optional<double> condition_number = {};
  std::string digest = {};               // of every entry's bits
  std::vector<double> eigenvalues = {};  // descending
};

}  // namespace elastor

#endif  // ELASTOR_TRAINER_EVALUATE_NTK_RECORD_H_
