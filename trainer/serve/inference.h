#ifndef ELASTOR_TRAINER_SERVE_INFERENCE_H_
#define ELASTOR_TRAINER_SERVE_INFERENCE_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "core/base/json.h"
#include "trainer/score/elastor_score.h"
#include "trainer/serve/http_server.h"

namespace elastor {

// The metadata of a model in the Open Inference Protocol: its inputs, one for every raw field, or
// `numeric`, `ids` and `offsets` if the model does not tell how raw values are encoded; its
// outputs.
Json ModelMetadata(const elastor_model* model, const std::string& name);

struct Inferred {
  HttpResponse response;
  int64_t rows = 0;  // that were scored
};

// Answers an inference request (docs/use/serving.md). An error scores nothing.
Inferred Infer(const elastor_model* model, const std::string& name, int64_t max_rows,
               const HttpRequest& request);

}  // namespace elastor

#endif  // ELASTOR_TRAINER_SERVE_INFERENCE_H_
