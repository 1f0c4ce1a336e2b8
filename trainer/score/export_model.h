#ifndef ELASTOR_TRAINER_SCORE_EXPORT_MODEL_H_
#define ELASTOR_TRAINER_SCORE_EXPORT_MODEL_H_

#include <string>

#include "core/base/status.h"

namespace elastor {

// Writes a trained model for other programs (docs/use/scoring.md): the new directory output_dir
// with
//   model.onnx              from fields' vectors and numbers to logits and probabilities
//   (onnx_graph.h) embeddings.safetensors  of every table the F32 tensor [rows, width], row i being
//   that of id i;
//                           rows that training has not seen have their initial values
//   features.json           what each element of the model's inputs is, and how raw values become
//   ids schema.textproto, vocabulary/FIELD.tsv  where the model's folder has them
// It is whole or not there. User error in one line.
Status ExportModel(const std::string& model_dir, const std::string& output_dir);

}  // namespace elastor

#endif  // ELASTOR_TRAINER_SCORE_EXPORT_MODEL_H_
