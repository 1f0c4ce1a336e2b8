#ifndef ELASTOR_TRAINER_EVALUATE_NTK_RECORD_H_
#define ELASTOR_TRAINER_EVALUATE_NTK_RECORD_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace elastor {

// The spectrum of one layer's neural tangent kernel, or of the whole model's (docs/reference/training.md,
// "Neural tangent kernel").
struct NtkRecord {
  int64_t step = 0;
  std::string split = {};
  std::string layer = {};  // "whole": of all parameters, embeddings included
  int64_t rows = 0;
  int64_t outputs = 0;     // of whose kernels it is the mean
  int64_t parameters = 0;  // of embeddings: those of the ids that occur in the rows
  double lambda_max = 0;
  // Of the eigenvalues: none by Lanczos' method, which does not find it; and how many of them
  // double can tell from 0.
  std::optional<double> lambda_min = {};
  std::optional<int64_t> rank = {};
  // lambda_max / lambda_min; over the first `rank` eigenvalues where fewer parameters than rows
  // make the others 0; none where double cannot tell.
  std::optional<double> condition_number = {};
  std::string digest = {};               // of every entry's bits
  std::vector<double> eigenvalues = {};  // descending; none by Lanczos' method
  // By Lanczos' method: how far lambda_max may lie from an eigenvalue, and the spectral density as
  // shares of the eigenvalues at some places.
  struct Node {
    double eigenvalue = 0;
    double share = 0;
  };
  double residual = 0;
  std::vector<Node> density = {};
};

}  // namespace elastor

#endif  // ELASTOR_TRAINER_EVALUATE_NTK_RECORD_H_
