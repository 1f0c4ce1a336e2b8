#ifndef ELASTOR_TRAINER_SCORE_EXPORT_MODEL_H_
#define ELASTOR_TRAINER_SCORE_EXPORT_MODEL_H_

#include <string>

#include "core/base/status.h"

namespace elastor {

// Writes a trained model for other programs (docs/use/scoring.md). The new directory output_dir
// gets
//   model.onnx
//       computes logits and probabilities from the fields' vectors and numbers (onnx_graph.h)
//   embeddings.safetensors
//       the F32 tensor [rows, width] of every table; row i belongs to id i; rows that training has
//       not seen have their initial values
//   features.json
//       what each element of the model's inputs is, and how raw values become ids
//   schema.textproto, vocabulary/FIELD.tsv
//       copies, where the model's folder has them
// On success the directory is whole, on failure it is as it was. User error in one line, also when
// it holds something or another process is writing there.
Status ExportModel(const std::string& model_dir, std::string output_dir);

}  // namespace elastor

#endif  // ELASTOR_TRAINER_SCORE_EXPORT_MODEL_H_
