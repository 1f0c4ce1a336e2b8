#include "trainer/score/elastor_score.h"

#include <algorithm>
#include <cstdio>
#include <exception>
#include <iterator>
#include <memory>
#include <new>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/cpu_features.h"
#include "core/base/exhausted.h"
#include "core/base/status.h"
#include "core/base/text.h"
#include "core/kernels/elementwise.h"
#include "core/kernels/small_rows.h"
#include "trainer/score/live_model.h"

struct elastor_model {
  std::shared_ptr<elastor::LiveModel> live;
  const elastor::LiveModel::Version* held = nullptr;  // null: the newest version
};

namespace elastor {
namespace {

static_assert(ELASTOR_USER_ERROR == static_cast<int>(StatusCode::kUser));
static_assert(ELASTOR_MACHINE_ERROR == static_cast<int>(StatusCode::kMachine));
static_assert(ELASTOR_NOT_FINITE == static_cast<int>(StatusCode::kDiverged));

// A request of more rows cannot be meant.
constexpr size_t kMostRows = size_t{1} << 40;

int Tell(int code, const char* text, char* error, size_t error_size) {
  if (error != nullptr && error_size > 0) std::snprintf(error, error_size, "%s", text);
  return code;
}

// Does the work, with the same arithmetic whoever calls; nothing is thrown at the caller.
template <typename Work>
int Guarded(char* error, size_t error_size, const Work& work) {
  const CanonicalWhile canonical;
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

// Where a call writes; an array that is null is left out.
struct Answers {
  float* probabilities;
  float* logits;
};

Status Score(const Scorer& scorer, Buffers* buffers, const Answers& answers) {
  ELASTOR_RETURN_IF_ERROR(scorer.Score(&buffers->rows, &buffers->logits));
  if (answers.probabilities != nullptr) {
    std::ranges::transform(buffers->logits, answers.probabilities, Sigmoid<float>);
  }
  if (answers.logits != nullptr) std::ranges::copy(buffers->logits, answers.logits);
  return OkStatus();
}

// Checks what both ways of scoring have in common.
Status CheckArguments(const elastor_model* model, size_t rows) {
  if (model == nullptr) return UserError("model is NULL");
  if (rows > kMostRows) return UserError(StrCat("rows is ", rows, "; expected at most 2^40"));
  return OkStatus();
}

// An array may be NULL if it has no elements.
Status CheckArray(const char* name, const void* array, size_t elements) {
  return array != nullptr || elements == 0 ? OkStatus() : UserError(StrCat(name, " is NULL"));
}

Status TakeIds(const DatasetInfo& data, bool has_bags, const int64_t* ids, const int64_t* offsets,
               size_t rows, Rows* to) {
  const size_t bags = rows * data.categorical.size();
  if (offsets == nullptr) {
    if (has_bags) return UserError("offsets is NULL; the model has fields of several ids");
    ELASTOR_RETURN_IF_ERROR(CheckArray("ids", ids, bags));
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
  ELASTOR_RETURN_IF_ERROR(CheckArray("ids", ids, static_cast<size_t>(offsets[bags])));
  to->ids.assign(ids, ids + offsets[bags]);
  if (has_bags) to->offsets.assign(offsets, offsets + bags + 1);
  return OkStatus();
}

Status ScoreValues(const elastor_model* model, const char* const* values, size_t rows,
                   const Answers& answers) {
  ELASTOR_RETURN_IF_ERROR(CheckArguments(model, rows));
  const LiveModel::Use version(*model->live, model->held);
  if (version->encoder == nullptr) {
    return UserError("the model's folder does not tell how raw values are encoded");
  }
  Buffers& buffers = OfThread();
  Rows* const to = buffers.Empty();
  const size_t fields = elastor_fields(model);
  ELASTOR_RETURN_IF_ERROR(CheckArray("values", values, rows * fields));
  buffers.values.resize(fields);
  for (size_t row = 0; row < rows; ++row) {
    std::transform(values + row * fields, values + (row + 1) * fields, buffers.values.begin(),
                   [](const char* text) { return text == nullptr ? "" : text; });
    const Status encoded = version->encoder->EncodeValues(buffers.values, to);
    if (!encoded.ok()) return UserError("row " + std::to_string(row) + ": " + encoded.message());
  }
  return Score(*version->scorer, &buffers, answers);
}

Status ScoreIds(const elastor_model* model, const float* numeric, const int64_t* ids,
                const int64_t* offsets, size_t rows, const Answers& answers) {
  ELASTOR_RETURN_IF_ERROR(CheckArguments(model, rows));
  const LiveModel::Use version(*model->live, model->held);
  const DatasetInfo& data = version->scorer->model().data;
  const size_t numbers = rows * data.numeric.size();
  ELASTOR_RETURN_IF_ERROR(CheckArray("numeric", numeric, numbers));
  Buffers& buffers = OfThread();
  Rows* const to = buffers.Empty();
  to->rows = static_cast<int64_t>(rows);
  to->numeric.assign(numeric, numeric + numbers);
  ELASTOR_RETURN_IF_ERROR(
      TakeIds(data, model->live->interface().takes_offsets, ids, offsets, rows, to));
  return Score(*version->scorer, &buffers, answers);
}

}  // namespace
}  // namespace elastor

using elastor::OkStatus;
using elastor::Status;
using elastor::UserError;

int elastor_open(const char* folder, elastor_model** model, char* error, size_t error_size) {
  return elastor_open_with_rows(folder, "FLOAT32", model, error, error_size);
}

int elastor_open_with_rows(const char* folder, const char* rows, elastor_model** model, char* error,
                           size_t error_size) {
  if (folder == nullptr || model == nullptr) {
    return elastor::Tell(ELASTOR_USER_ERROR, folder == nullptr ? "folder is NULL" : "model is NULL",
                         error, error_size);
  }
  *model = nullptr;
  if (const char* missing = elastor::MissingCpuFeature(elastor::ReadCpuFeatures())) {
    char line[40];
    std::snprintf(line, sizeof(line), "the CPU lacks %s", missing);
    return elastor::Tell(ELASTOR_MACHINE_ERROR, line, error, error_size);
  }
  elastor::ThrowWhenExhausted();
  return elastor::Guarded(error, error_size, [&]() -> Status {
    const std::string_view name = rows == nullptr ? "NULL" : rows;
    const auto format = std::ranges::find(elastor::kRowFormats, name, elastor::RowFormatName);
    if (format == std::end(elastor::kRowFormats)) {
      return UserError(elastor::StrCat("rows is ", name, "; expected FLOAT32, INT8 or INT4"));
    }
    auto opened = std::make_unique<elastor_model>();
    ELASTOR_ASSIGN_OR_RETURN(opened->live, elastor::LiveModel::Open(folder, *format));
    *model = opened.release();
    return OkStatus();
  });
}

void elastor_close(elastor_model* model) {
  if (model != nullptr && model->held != nullptr) model->live->Release(model->held);
  delete model;
}

int elastor_update(elastor_model* model, const char* folder, uint64_t* version, char* error,
                   size_t error_size) {
  const int code = elastor::Guarded(error, error_size, [&]() -> Status {
    if (model == nullptr) return UserError("model is NULL");
    if (folder == nullptr) return UserError("folder is NULL");
    if (model->held != nullptr) return UserError("model is held; expected the one it is of");
    return model->live->Update(folder);
  });
  if (version == nullptr) return code;
  *version = 0;
  const int told = elastor::Guarded(error, code == ELASTOR_OK ? error_size : 0, [&] {
    *version = elastor_version(model);
    return OkStatus();
  });
  return code == ELASTOR_OK ? told : code;
}

int elastor_hold(const elastor_model* model, elastor_model** held, char* error, size_t error_size) {
  return elastor::Guarded(error, error_size, [&]() -> Status {
    if (model == nullptr) return UserError("model is NULL");
    if (held == nullptr) return UserError("held is NULL");
    *held = nullptr;
    auto copy = std::make_unique<elastor_model>();
    copy->live = model->live;
    if (model->held != nullptr) {
      model->held->holders.fetch_add(1);
      copy->held = model->held;
    } else {
      copy->held = model->live->Hold();
    }
    *held = copy.release();
    return OkStatus();
  });
}

uint64_t elastor_version(const elastor_model* model) {
  if (model == nullptr) return 0;
  const elastor::LiveModel::Use version(*model->live, model->held);
  const auto& publication = version->scorer->model().metadata.publication;
  return publication ? static_cast<uint64_t>(publication->number) : 0;
}

size_t elastor_outputs(const elastor_model* model) {
  return model == nullptr ? 0 : model->live->interface().outputs.size();
}

size_t elastor_fields(const elastor_model* model) {
  return model == nullptr ? 0 : model->live->interface().fields.size();
}

const char* elastor_field_name(const elastor_model* model, size_t field) {
  if (field >= elastor_fields(model)) return nullptr;
  return model->live->interface().fields[field].name.c_str();
}

int elastor_field_is_number(const elastor_model* model, size_t field) {
  return field < elastor_fields(model) && model->live->interface().fields[field].is_number;
}

const char* elastor_output_name(const elastor_model* model, size_t output) {
  if (output >= elastor_outputs(model)) return nullptr;
  return model->live->interface().outputs[output].c_str();
}

const char* elastor_digest(const elastor_model* model) {
  if (model == nullptr) return nullptr;
  const elastor::LiveModel::Use version(*model->live, model->held);
  return version->scorer->model().metadata.state_digest.c_str();
}

size_t elastor_numeric_fields(const elastor_model* model) {
  return model == nullptr ? 0 : model->live->interface().numeric_fields;
}

size_t elastor_categorical_fields(const elastor_model* model) {
  return model == nullptr ? 0 : model->live->interface().categorical_fields;
}

int elastor_takes_offsets(const elastor_model* model) {
  return model != nullptr && model->live->interface().takes_offsets;
}

int elastor_score_values(const elastor_model* model, const char* const* values, size_t rows,
                         float* probabilities, char* error, size_t error_size) {
  return elastor::Guarded(error, error_size, [&]() -> Status {
    ELASTOR_RETURN_IF_ERROR(elastor::CheckArray("probabilities", probabilities, rows));
    return elastor::ScoreValues(model, values, rows, {probabilities, nullptr});
  });
}

int elastor_score_ids(const elastor_model* model, const float* numeric, const int64_t* ids,
                      const int64_t* offsets, size_t rows, float* probabilities, char* error,
                      size_t error_size) {
  return elastor::Guarded(error, error_size, [&]() -> Status {
    ELASTOR_RETURN_IF_ERROR(elastor::CheckArray("probabilities", probabilities, rows));
    return elastor::ScoreIds(model, numeric, ids, offsets, rows, {probabilities, nullptr});
  });
}

int elastor_score_values_and_logits(const elastor_model* model, const char* const* values,
                                    size_t rows, float* probabilities, float* logits, char* error,
                                    size_t error_size) {
  return elastor::Guarded(error, error_size, [&] {
    return elastor::ScoreValues(model, values, rows, {probabilities, logits});
  });
}

int elastor_score_ids_and_logits(const elastor_model* model, const float* numeric,
                                 const int64_t* ids, const int64_t* offsets, size_t rows,
                                 float* probabilities, float* logits, char* error,
                                 size_t error_size) {
  return elastor::Guarded(error, error_size, [&] {
    return elastor::ScoreIds(model, numeric, ids, offsets, rows, {probabilities, logits});
  });
}
