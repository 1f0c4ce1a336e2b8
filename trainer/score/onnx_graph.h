#ifndef ELASTOR_TRAINER_SCORE_ONNX_GRAPH_H_
#define ELASTOR_TRAINER_SCORE_ONNX_GRAPH_H_

#include <string>

#include "core/base/status.h"
#include "core/graph/graph.h"

namespace elastor {

inline constexpr int kOnnxOpset = 13;

// The forward pass of a graph, in evaluation, as an ONNX model of opset 13 (the bytes of a
// ModelProto), with the parameters in `weights`, the flat array of the graph's layout. `name` is
// the model's. Tensors, N being the rows:
//   in   numeric [N, numeric fields], NaN = missing; absent without numeric fields
//        embeddings [N, table features]: what the tables give, field after field; absent without
//        lengths [N, sequences], int64: the positions that a row has of each sequence that the
//        model reads id by id; absent without
//   out  logits [N, outputs]; probabilities = sigmoid(logits)
// A model of 2 GiB, which no protobuf file holds, and an op without counterpart are user errors in
// one line.
StatusOr<std::string> OnnxModel(const Graph& graph, int64_t outputs, const float* weights,
                                const std::string& name);

}  // namespace elastor

#endif  // ELASTOR_TRAINER_SCORE_ONNX_GRAPH_H_
