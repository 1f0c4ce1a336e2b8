#ifndef ELASTOR_TRAINER_RECORDS_NTK_RECORD_H_
#define ELASTOR_TRAINER_RECORDS_NTK_RECORD_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "trainer/records/record_field.h"

namespace elastor {

// Spectrum of one layer's neural tangent kernel, or of the whole model's
// (docs/reference/training.md, "Neural tangent kernel").
struct NtkRecord {
  int64_t step = 0;
  std::string split = {};
  std::string layer = {};  // "whole": all parameters, embeddings included
  int64_t rows = 0;
  int64_t outputs = 0;     // number of outputs whose kernels were averaged
  int64_t parameters = 0;  // for embeddings, only parameters of ids that occur in the rows
  double lambda_max = 0;
  // The least eigenvalue, and the number of eigenvalues that double can tell from 0. Both are empty
  // with Lanczos' method, which does not find them.
  std::optional<double> lambda_min = {};
  std::optional<int64_t> rank = {};
  // lambda_max / lambda_min. Over the first `rank` eigenvalues if fewer parameters than rows make
  // the others 0. None if double cannot tell.
  std::optional<double> condition_number = {};
  std::string digest = {};               // digest of every entry's bits
  std::vector<double> eigenvalues = {};  // descending; none by Lanczos' method
  // By Lanczos' method only: how far lambda_max may lie from an eigenvalue, and the spectral
  // density as shares of the eigenvalues at some nodes. Each of several starting vectors gives a
  // density of its own; `share` is that over their number.
  struct Node {
    double eigenvalue = 0;
    double share = 0;
    int start = 1;  // which starting vector, from 1
  };
  std::optional<double> residual = {};
  // The kernel's exact trace; the trace by the density, the mean over the starting vectors; and its
  // standard error by their spread.
  std::optional<double> trace = {}, trace_of_density = {}, trace_standard_error = {};
  std::vector<Node> density = {};
};

// TensorBoard has them under other names (trainer/run/tensorboard.cc).
inline constexpr RecordField<NtkRecord> kNtkFields[] = {
    {.name = "step", .value = &NtkRecord::step},
    {.name = "split", .value = &NtkRecord::split},
    {.name = "layer", .value = &NtkRecord::layer},
    {.name = "rows", .value = &NtkRecord::rows},
    {.name = "outputs", .value = &NtkRecord::outputs},
    {.name = "parameters", .value = &NtkRecord::parameters},
    {.name = "lambda_max", .value = &NtkRecord::lambda_max},
    {.name = "lambda_min", .value = &NtkRecord::lambda_min},
    {.name = "condition_number", .value = &NtkRecord::condition_number},
    {.name = "rank", .value = &NtkRecord::rank},
    {.name = "digest", .value = &NtkRecord::digest, .if_empty = IfEmpty::kLeftOut, .column = false},
    {.name = "lambda_max_residual",
     .value = &NtkRecord::residual,
     .if_empty = IfEmpty::kLeftOut,
     .column = false},
    {.name = "trace", .value = &NtkRecord::trace, .if_empty = IfEmpty::kLeftOut, .column = false},
    {.name = "trace_of_density",
     .value = &NtkRecord::trace_of_density,
     .if_empty = IfEmpty::kLeftOut,
     .column = false},
    {.name = "trace_standard_error",
     .value = &NtkRecord::trace_standard_error,
     .if_empty = IfEmpty::kLeftOut,
     .column = false},
};

}  // namespace elastor

#endif  // ELASTOR_TRAINER_RECORDS_NTK_RECORD_H_
