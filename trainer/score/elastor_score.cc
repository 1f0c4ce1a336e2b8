#include "trainer/score/elastor_score.h"

#include <algorithm>
#include <cstdio>
#include <exception>
#include <memory>
#include <new>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/exhausted.h"
#include "core/base/file.h"
#include "core/base/status.h"
#include "core/kernels/elementwise.h"
#include "trainer/score/row_encoder.h"
#include "trainer/score/scorer.h"

struct elastor_model {
  std::unique_ptr<elastor::Scorer> scorer;
  std::unique_ptr<elastor::RowEncoder> encoder;  // null: the folder does not tell the schema
};

namespace elastor {
namespace {

static_assert(ELASTOR_USER_ERROR == static_cast<int>(StatusCode::kUser));
static_assert(ELASTOR_MACHINE_ERROR == static_cast<int>(StatusCode::kMachine));

int Tell(int code, const char* text, char* error, size_t error_size) {
  if (error != nullptr && error_size > 0) std::snprintf(error, error_size, "%s", text);
  return code;
}

// Does the work; nothing is thrown at the caller.
template <typename Work>
int Guarded(char* error, size_t error_size, const Work& work) {
  try {
    const Status status = work();
    return status.ok()
               ? ELASTOR_OK
               : Tell(static_cast<int>(status.code()), status.message().c_str(), error, error_size);
  } catch (const std::bad_alloc&) {
    return Tell(ELASTOR_MACHINE_ERROR, "the system refuses memory", error, error_size);
  } catch (const std::exception& thrown) {
    return Tell(ELASTOR_MACHINE_ERROR, thrown.what(), error, error_size);
  }
}

// The memory of a thread's calls.
struct Buffers {
  Rows rows;
  std::vector<float> logits;
  std::vector<std::string_view> values;

  Rows* Empty() {
    rows.rows = 0;
    rows.labels.clear();
    rows.numeric.clear();
    rows.ids.clear();
    rows.offsets.clear();
    return &rows;
  }
};
Buffers& OfThread() {
  thread_local Buffers buffers;
  return buffers;
}

Status Score(const elastor_model& model, Buffers* buffers, float* probabilities) {
  const CanonicalWhile canonical;
  ELASTOR_RETURN_IF_ERROR(model.scorer->Score(&buffers->rows, &buffers->logits));
  std::ranges::transform(buffers->logits, probabilities, Sigmoid<float>);
  return OkStatus();
}

bool HasBags(const DatasetInfo& data) {
  return std::ranges::any_of(data.categorical, &DatasetInfo::Categorical::multi_hot);
}

Status TakeIds(const DatasetInfo& data, const int64_t* ids, const int64_t* offsets, size_t rows,
               Rows* to) {
  const size_t bags = rows * data.categorical.size();
  if (offsets == nullptr) {
    if (HasBags(data)) return UserError("offsets is NULL; the model has fields of several ids");
    to->ids.assign(ids, ids + bags);
    return OkStatus();
  }
  if (offsets[0] != 0 || !std::is_sorted(offsets, offsets + bags + 1)) {
    return UserError("offsets do not begin with 0 and ascend");
  }
  for (size_t bag = 0; bag < bags; ++bag) {
    const DatasetInfo::Categorical& field = data.categorical[bag % data.categorical.size()];
    if (field.multi_hot || offsets[bag + 1] - offsets[bag] == 1) continue;
    return UserError("row " + std::to_string(bag / data.categorical.size()) + ": field " +
                     field.name + ": found " + std::to_string(offsets[bag + 1] - offsets[bag]) +
                     " ids, expected 1");
  }
  to->ids.assign(ids, ids + offsets[bags]);
  if (HasBags(data)) to->offsets.assign(offsets, offsets + bags + 1);
  return OkStatus();
}

}  // namespace
}  // namespace elastor

using elastor::OkStatus;
using elastor::Status;
using elastor::UserError;

int elastor_open(const char* folder, elastor_model** model, char* error, size_t error_size) {
  *model = nullptr;
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) {
    return elastor::Tell(ELASTOR_MACHINE_ERROR, "the CPU lacks AVX2 or FMA", error, error_size);
  }
  elastor::ThrowWhenExhausted();
  return elastor::Guarded(error, error_size, [&]() -> Status {
    auto opened = std::make_unique<elastor_model>();
    ELASTOR_ASSIGN_OR_RETURN(opened->scorer, elastor::Scorer::Open(folder, /*pool=*/nullptr));
    const elastor::DataEncoding& encoding = *opened->scorer->model().metadata.encoding;
    if (!encoding.schema.empty()) {
      ELASTOR_ASSIGN_OR_RETURN(
          opened->encoder, elastor::RowEncoder::Open(encoding, elastor::DirectoryToRead(folder)));
    }
    *model = opened.release();
    return OkStatus();
  });
}

void elastor_close(elastor_model* model) { delete model; }

size_t elastor_outputs(const elastor_model* model) {
  return static_cast<size_t>(model->scorer->task().outputs());
}

size_t elastor_fields(const elastor_model* model) {
  return model->encoder == nullptr ? 0 : model->encoder->features().size();
}

const char* elastor_field_name(const elastor_model* model, size_t field) {
  return model->encoder->features()[field].name.c_str();
}

size_t elastor_numeric_fields(const elastor_model* model) {
  return model->scorer->model().data.numeric.size();
}

size_t elastor_categorical_fields(const elastor_model* model) {
  return model->scorer->model().data.categorical.size();
}

int elastor_score_values(const elastor_model* model, const char* const* values, size_t rows,
                         float* probabilities, char* error, size_t error_size) {
  return elastor::Guarded(error, error_size, [&]() -> Status {
    if (model->encoder == nullptr) {
      return UserError("the model's folder does not tell how raw values are encoded");
    }
    elastor::Buffers& buffers = elastor::OfThread();
    elastor::Rows* const to = buffers.Empty();
    const size_t fields = elastor_fields(model);
    buffers.values.resize(fields);
    for (size_t row = 0; row < rows; ++row) {
      std::transform(values + row * fields, values + (row + 1) * fields, buffers.values.begin(),
                     [](const char* text) { return text == nullptr ? "" : text; });
      const Status encoded = model->encoder->EncodeValues(buffers.values, to);
      if (!encoded.ok()) return UserError("row " + std::to_string(row) + ": " + encoded.message());
    }
    return elastor::Score(*model, &buffers, probabilities);
  });
}

int elastor_score_ids(const elastor_model* model, const float* numeric, const int64_t* ids,
                      const int64_t* offsets, size_t rows, float* probabilities, char* error,
                      size_t error_size) {
  return elastor::Guarded(error, error_size, [&]() -> Status {
    const elastor::DatasetInfo& data = model->scorer->model().data;
    elastor::Buffers& buffers = elastor::OfThread();
    elastor::Rows* const to = buffers.Empty();
    to->rows = static_cast<int64_t>(rows);
    to->numeric.assign(numeric, numeric + rows * data.numeric.size());
    ELASTOR_RETURN_IF_ERROR(elastor::TakeIds(data, ids, offsets, rows, to));
    return elastor::Score(*model, &buffers, probabilities);
  });
}
