#include "trainer/serve/inference.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/base/status.h"
#include "core/base/text.h"
#include "core/base/utf8.h"

namespace elastor {
namespace {

constexpr int kBadRequest = 400;
constexpr int kNotFinite = 422;
constexpr int kNoMachine = 503;

// What is wrong with a request, by throw: Infer makes it an answer.
struct Refusal {
  int code;
  std::string error;
};
template <typename... Pieces>
[[noreturn]] void Refuse(const Pieces&... pieces) {
  throw Refusal{kBadRequest, StrCat(pieces...)};
}

// A text of the request, as an error shows it.
std::string Quoted(std::string_view text) {
  constexpr size_t kShown = 64;
  return StrCat("'", text.substr(0, kShown), text.size() > kShown ? "...'" : "'");
}

enum class DataType { kBytes, kInt32, kInt64, kFloat32, kFloat64 };

DataType DataTypeOf(const std::string& input, const std::string& name) {
  if (name == "BYTES") return DataType::kBytes;
  if (name == "INT32") return DataType::kInt32;
  if (name == "INT64") return DataType::kInt64;
  if (name == "FP32") return DataType::kFloat32;
  if (name == "FP64") return DataType::kFloat64;
  Refuse("input ", Quoted(input), ": datatype ", Quoted(name),
         "; expected BYTES, INT32, INT64, FP32 or FP64");
}

// A tensor of the request, whose data are JSON or, if that is null, bytes.
struct Tensor {
  std::string name;
  DataType type;
  std::vector<int64_t> shape;
  int64_t elements = 1;
  const Json* json = nullptr;
  std::string_view bytes;

  template <typename... Pieces>
  [[noreturn]] void Wrong(const Pieces&... pieces) const {
    Refuse("input ", Quoted(name), ": ", pieces...);
  }
};

const Json& Member(const Json& object, std::string_view where, std::string_view name) {
  const Json* member = object.find(name);
  if (member == nullptr) Refuse(where, ": '", name, "' is missing");
  return *member;
}

std::string TextMember(const Json& object, std::string_view where, std::string_view name) {
  const Json& member = Member(object, where, name);
  if (!member.is_string()) Refuse(where, ": '", name, "': expected a text");
  return member.get<std::string>();
}

// A parameter of the request, an input or an output; null if it is not there.
const Json* Parameter(const Json& object, std::string_view name) {
  const Json* parameters = object.find("parameters");
  return parameters == nullptr ? nullptr : parameters->find(name);
}

// A misspelt parameter would change the scores in silence.
void CheckParameters(const Json& object, std::string_view where,
                     const std::vector<std::string>& known) {
  const Json* parameters = object.find("parameters");
  if (parameters == nullptr || parameters->is_null()) return;
  if (!parameters->is_object()) Refuse(where, ": 'parameters': expected an object");
  for (const auto& [name, value] : parameters->items()) {
    if (std::ranges::find(known, name) != known.end()) continue;
    Refuse(where, ": parameter ", Quoted(name), ": is not supported; expected ",
           Join(known, " or "));
  }
}

bool Switch(const Json& object, std::string_view where, std::string_view name, bool otherwise) {
  const Json* value = Parameter(object, name);
  if (value == nullptr) return otherwise;
  if (!value->is_boolean()) Refuse(where, ": parameter '", name, "': expected true or false");
  return value->get<bool>();
}

std::vector<int64_t> ShapeOf(const Json& json, const std::string& where, int64_t* elements) {
  constexpr size_t kMostDimensions = 8;
  if (!json.is_array() || json.empty() || json.size() > kMostDimensions) {
    Refuse(where, ": 'shape': expected an array of up to ", kMostDimensions, " sizes");
  }
  std::vector<int64_t> shape;
  *elements = 1;
  for (const Json& size : json) {
    constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
    const bool good = size.is_number_unsigned() && size.get<uint64_t>() <= kMost;
    if (!good) Refuse(where, ": 'shape': expected sizes from 0 to ", kMost);
    shape.push_back(size.get<int64_t>());
    *elements *= shape.back();
    if (*elements > kMost) Refuse(where, ": 'shape': expected at most ", kMost, " elements");
  }
  return shape;
}

// Reads the tensors of a request; `binary` are the bytes behind the JSON text, in their order.
std::vector<Tensor> ReadTensors(const Json& request, std::string_view binary) {
  const Json& inputs = Member(request, "the request", "inputs");
  if (!inputs.is_array()) Refuse("'inputs': expected an array");
  std::vector<Tensor> tensors;
  for (const Json& input : inputs) {
    Tensor& tensor = tensors.emplace_back();
    const std::string place = StrCat("inputs[", tensors.size() - 1, "]");
    tensor.name = TextMember(input, place, "name");
    const std::string where = StrCat("input ", Quoted(tensor.name));
    tensor.type = DataTypeOf(tensor.name, TextMember(input, where, "datatype"));
    tensor.shape = ShapeOf(Member(input, where, "shape"), where, &tensor.elements);
    CheckParameters(input, where, {"binary_data_size"});
    const Json* size = Parameter(input, "binary_data_size");
    if (size == nullptr) {
      tensor.json = &Member(input, where, "data");
      continue;
    }
    if (input.contains("data")) tensor.Wrong("has 'data' and 'binary_data_size'");
    if (!size->is_number_unsigned() || size->get<uint64_t>() > binary.size()) {
      tensor.Wrong("parameter 'binary_data_size': the body has ", binary.size(),
                   " bytes left for it");
    }
    tensor.bytes = binary.substr(0, size->get<uint64_t>());
    binary.remove_prefix(tensor.bytes.size());
  }
  if (!binary.empty()) Refuse("the body has ", binary.size(), " bytes more than its inputs");
  return tensors;
}

// Calls use(element) for every element of data that may be nested in any way.
template <typename Use>
void ForEach(const Json& data, const Use& use) {
  for (const Json& element : data) {
    if (element.is_array()) {
      ForEach(element, use);
    } else {
      use(element);
    }
  }
}

void CheckCount(const Tensor& tensor, int64_t found) {
  if (found == tensor.elements) return;
  tensor.Wrong("found ", found, " elements, expected ", tensor.elements, " by its shape");
}

bool HasShape(const Json& data, std::span<const int64_t> shape) {
  if (shape.empty()) return !data.is_array();
  return data.is_array() && static_cast<int64_t>(data.size()) == shape[0] &&
         std::ranges::all_of(
             data, [&](const Json& element) { return HasShape(element, shape.subspan(1)); });
}

// Data are flat, or nested as the shape says: a transposed matrix has as many elements.
void CheckJson(const Tensor& tensor, int64_t found) {
  CheckCount(tensor, found);
  const bool nested = std::ranges::any_of(*tensor.json, &Json::is_array);
  if (nested && !HasShape(*tensor.json, tensor.shape)) {
    tensor.Wrong("'data': is nested otherwise than its shape; flat data need no nesting");
  }
}

// Calls use(number) for every element of a tensor of numbers, each of which T must hold.
template <typename T, typename Use>
void ForEachNumber(const Tensor& tensor, const Use& use) {
  if (tensor.json == nullptr) {
    const size_t expected = static_cast<size_t>(tensor.elements) * sizeof(T);
    if (tensor.bytes.size() != expected) {
      tensor.Wrong("found ", tensor.bytes.size(), " bytes, expected ", expected, " by its shape");
    }
    for (size_t i = 0; i < tensor.bytes.size(); i += sizeof(T)) {
      T number;
      std::memcpy(&number, tensor.bytes.data() + i, sizeof(T));
      use(number);
    }
    return;
  }
  if (!tensor.json->is_array()) tensor.Wrong("'data': expected an array");
  int64_t found = 0;
  ForEach(*tensor.json, [&](const Json& element) {
    if (++found > tensor.elements) return;
    if constexpr (std::is_floating_point_v<T>) {
      if (element.is_null()) return use(std::numeric_limits<T>::quiet_NaN());
      if (!element.is_number()) tensor.Wrong("element ", found - 1, ": expected a number or null");
      use(static_cast<T>(element.get<double>()));
    } else {
      const bool fits =
          element.is_number_integer() &&
          (element.is_number_unsigned() ? element.get<uint64_t>() <= std::numeric_limits<T>::max()
                                        : element.get<int64_t>() >= std::numeric_limits<T>::min());
      if (!fits) tensor.Wrong("element ", found - 1, ": expected an integer of its datatype");
      use(element.get<int64_t>());
    }
  });
  CheckJson(tensor, found);
}

// Calls use(text) for every element of a tensor of BYTES.
template <typename Use>
void ForEachText(const Tensor& tensor, const Use& use) {
  int64_t found = 0;
  if (tensor.json == nullptr) {
    std::string_view left = tensor.bytes;
    for (; !left.empty(); ++found) {
      uint32_t size = 0;
      if (left.size() >= sizeof(size)) std::memcpy(&size, left.data(), sizeof(size));
      if (left.size() < sizeof(size) || left.size() - sizeof(size) < size) {
        tensor.Wrong("element ", found, ": its bytes are cut off");
      }
      if (found < tensor.elements) use(left.substr(sizeof(size), size));
      left.remove_prefix(sizeof(size) + size);
    }
    return CheckCount(tensor, found);
  }
  if (!tensor.json->is_array()) tensor.Wrong("'data': expected an array");
  ForEach(*tensor.json, [&](const Json& element) {
    if (++found > tensor.elements) return;
    if (element.is_null()) return use(std::string_view());
    if (!element.is_string()) tensor.Wrong("element ", found - 1, ": expected a text or null");
    use(element.get<std::string_view>());
  });
  CheckJson(tensor, found);
}

// Calls use(text) for every element, as a file of rows would have it; a NaN is missing. A float has
// the shortest text that reads as the same float.
template <typename Use>
void ForEachValue(const Tensor& tensor, const Use& use) {
  const auto write = [&](auto number) {
    if constexpr (std::is_floating_point_v<decltype(number)>) {
      if (std::isnan(number)) return use(std::string_view());
    }
    char digits[40];
    const auto [end, error] = std::to_chars(digits, digits + sizeof(digits), number);
    use(std::string_view(digits, static_cast<size_t>(end - digits)));
  };
  switch (tensor.type) {
    case DataType::kBytes:
      return ForEachText(tensor, use);
    case DataType::kInt32:
      return ForEachNumber<int32_t>(tensor, write);
    case DataType::kInt64:
      return ForEachNumber<int64_t>(tensor, write);
    case DataType::kFloat32:
      return ForEachNumber<float>(tensor, write);
    case DataType::kFloat64:
      return ForEachNumber<double>(tensor, write);
  }
}

void CheckRows(int64_t rows, int64_t max_rows) {
  if (rows > max_rows) Refuse("found ", rows, " rows, expected at most ", max_rows);
}

std::vector<std::string> FieldNames(const elastor_model* model) {
  std::vector<std::string> names;
  for (size_t i = 0; i < elastor_fields(model); ++i) {
    names.emplace_back(elastor_field_name(model, i));
  }
  return names;
}

// What a request scores.
struct Scores {
  size_t rows = 0;
  std::vector<float> probabilities, logits;

  void Resize(const elastor_model* model, size_t to) {
    rows = to;
    probabilities.resize(rows * elastor_outputs(model));
    logits.resize(probabilities.size());
  }
};

void CheckCode(int code, const char* error) {
  if (code == ELASTOR_OK) return;
  throw Refusal{code == ELASTOR_USER_ERROR   ? kBadRequest
                : code == ELASTOR_NOT_FINITE ? kNotFinite
                                             : kNoMachine,
                error};
}

// Checks that a tensor is [rows, columns], or [rows] with one column. Returns the rows.
int64_t RowsOf(const Tensor& tensor, int64_t columns, int64_t max_rows) {
  const bool flat = tensor.shape.size() == 1 && columns == 1;
  const bool good = flat || (tensor.shape.size() == 2 && tensor.shape[1] == columns);
  if (!good) {
    tensor.Wrong("'shape': expected [rows, ", columns, "]", columns == 1 ? " or [rows]" : "");
  }
  CheckRows(tensor.shape[0], max_rows);
  return tensor.shape[0];
}

void CheckSameRows(const Tensor& tensor, int64_t found, int64_t expected) {
  if (found == expected) return;
  tensor.Wrong("found ", found, " rows, expected ", expected, " as in the first input");
}

Scores ScoreValues(const elastor_model* model, int64_t max_rows,
                   const std::vector<Tensor>& tensors) {
  const std::vector<std::string> names = FieldNames(model);
  std::vector<const Tensor*> of_field(names.size());
  int64_t rows = -1;
  for (const Tensor& tensor : tensors) {
    const size_t field = std::ranges::find(names, tensor.name) - names.begin();
    if (field == names.size()) tensor.Wrong("no such input; expected ", Join(names, ", "));
    if (of_field[field] != nullptr) tensor.Wrong("is there twice");
    of_field[field] = &tensor;
    const bool real = tensor.type == DataType::kFloat32 || tensor.type == DataType::kFloat64;
    if (real && !elastor_field_is_number(model, field)) {
      tensor.Wrong("its values are not numbers; expected datatype BYTES, or an integer one");
    }
    const int64_t found = RowsOf(tensor, 1, max_rows);
    if (rows < 0) rows = found;
    CheckSameRows(tensor, found, rows);
  }
  for (size_t field = 0; field < names.size(); ++field) {
    if (of_field[field] == nullptr) {
      Refuse("input ", Quoted(names[field]), " is missing; expected ", Join(names, ", "));
    }
  }
  // All texts, each ended by 0, and their places.
  std::string texts;
  const size_t count = static_cast<size_t>(std::max<int64_t>(rows, 0));
  std::vector<size_t> places(count * names.size());
  for (size_t field = 0; field < names.size(); ++field) {
    size_t row = 0;
    ForEachValue(*of_field[field], [&](std::string_view text) {
      if (text.find('\0') != text.npos) {
        of_field[field]->Wrong("row ", row, ": has a zero byte; expected text");
      }
      places[row++ * names.size() + field] = texts.size();
      texts.append(text).push_back('\0');
    });
  }
  std::vector<const char*> values(places.size());
  std::ranges::transform(places, values.begin(), [&](size_t at) { return texts.data() + at; });
  Scores scores;
  scores.Resize(model, count);
  char error[1024] = "";
  CheckCode(
      elastor_score_values_and_logits(model, values.data(), count, scores.probabilities.data(),
                                      scores.logits.data(), error, sizeof(error)),
      error);
  return scores;
}

template <typename T>
std::vector<T> Numbers(const Tensor& tensor, DataType type, std::string_view name) {
  if (tensor.type != type) tensor.Wrong("expected datatype ", name);
  std::vector<T> numbers;
  ForEachNumber<T>(tensor, [&](T number) { numbers.push_back(number); });
  return numbers;
}

Scores ScoreIds(const elastor_model* model, int64_t max_rows, const std::vector<Tensor>& tensors) {
  const auto columns = static_cast<int64_t>(elastor_categorical_fields(model));
  const auto numbers = static_cast<int64_t>(elastor_numeric_fields(model));
  const Tensor *numeric = nullptr, *ids = nullptr, *offsets = nullptr;
  for (const Tensor& tensor : tensors) {
    const Tensor** const place = tensor.name == "numeric"   ? &numeric
                                 : tensor.name == "ids"     ? &ids
                                 : tensor.name == "offsets" ? &offsets
                                                            : nullptr;
    if (place == nullptr) tensor.Wrong("no such input; expected numeric, ids, offsets");
    if (*place != nullptr) tensor.Wrong("is there twice");
    *place = &tensor;
  }
  if (numbers > 0 && numeric == nullptr) Refuse("input 'numeric' is missing");
  if (columns > 0 && ids == nullptr) Refuse("input 'ids' is missing");
  int64_t rows = -1;
  std::vector<float> number_values;
  std::vector<int64_t> id_values, offset_values;
  const auto have = [&](const Tensor& tensor, int64_t found) {
    CheckRows(found, max_rows);
    if (rows < 0) rows = found;
    CheckSameRows(tensor, found, rows);
  };
  if (numeric != nullptr) {
    have(*numeric, RowsOf(*numeric, numbers, max_rows));
    number_values = Numbers<float>(*numeric, DataType::kFloat32, "FP32");
  }
  if (offsets != nullptr) {
    offset_values = Numbers<int64_t>(*offsets, DataType::kInt64, "INT64");
    const auto bags = static_cast<int64_t>(offset_values.size()) - 1;
    if (bags < 0 || columns == 0 || bags % columns != 0) {
      offsets->Wrong("found ", bags + 1, " elements, expected rows * ", columns, " + 1");
    }
    have(*offsets, bags / columns);
  }
  if (ids != nullptr) {
    if (offsets == nullptr) have(*ids, RowsOf(*ids, columns, max_rows));
    id_values = Numbers<int64_t>(*ids, DataType::kInt64, "INT64");
    const auto found = static_cast<int64_t>(id_values.size());
    if (offsets != nullptr && offset_values.back() != found) {
      ids->Wrong("found ", found, " elements, expected ", offset_values.back(), " by 'offsets'");
    }
  }
  Scores scores;
  scores.Resize(model, static_cast<size_t>(std::max<int64_t>(rows, 0)));
  char error[1024] = "";
  CheckCode(elastor_score_ids_and_logits(model, number_values.data(), id_values.data(),
                                         offsets == nullptr ? nullptr : offset_values.data(),
                                         scores.rows, scores.probabilities.data(),
                                         scores.logits.data(), error, sizeof(error)),
            error);
  return scores;
}

struct Output {
  std::string name;
  bool binary;
};

std::vector<Output> WantedOutputs(const Json& request) {
  const bool binary = Switch(request, "the request", "binary_data_output", false);
  const Json* wanted = request.find("outputs");
  if (wanted == nullptr || (wanted->is_array() && wanted->empty())) {
    return {{"probability", binary}};
  }
  if (!wanted->is_array()) Refuse("'outputs': expected an array");
  std::vector<Output> outputs;
  for (const Json& output : *wanted) {
    const std::string place = StrCat("outputs[", outputs.size(), "]");
    const std::string name = TextMember(output, place, "name");
    CheckParameters(output, StrCat("output ", Quoted(name)), {"binary_data"});
    if (name != "probability" && name != "logit") {
      Refuse("output ", Quoted(name), ": no such output; expected probability or logit");
    }
    if (std::ranges::find(outputs, name, &Output::name) != outputs.end()) {
      Refuse("output ", Quoted(name), ": is there twice");
    }
    outputs.push_back({name, Switch(output, place, "binary_data", binary)});
  }
  return outputs;
}

Json TensorInfo(std::string_view name, std::string_view type, std::vector<int64_t> shape) {
  Json info;
  info["name"] = name;
  info["datatype"] = type;
  info["shape"] = std::move(shape);
  return info;
}

// Refuses JSON of far more members than a request has: the parser compares each with all members
// that its object has so far.
void CheckMembers(std::string_view text, size_t fields) {
  const size_t most = 16 * (fields + 64);
  size_t members = static_cast<size_t>(std::ranges::count(text, ':'));  // and those within texts
  if (members <= most) return;
  members = 0;
  bool quoted = false;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '"') quoted = !quoted;
    if (quoted) {
      i += text[i] == '\\';
    } else {
      members += text[i] == ':';
    }
  }
  if (members > most) {
    Refuse("the body has ", members, " members of JSON objects; expected at most ", most);
  }
}

// The JSON text of a request, and the bytes behind it.
std::pair<std::string_view, std::string_view> Parts(const HttpRequest& request) {
  if (request.json_length.empty()) return {request.body, {}};
  const std::string& text = request.json_length;
  size_t length = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), length);
  if (error != std::errc() || end != text.data() + text.size() || length > request.body.size()) {
    Refuse("Inference-Header-Content-Length: found ", Quoted(text), "; the body has ",
           request.body.size(), " bytes");
  }
  return {request.body.substr(0, length), request.body.substr(length)};
}

HttpResponse MakeResponse(const elastor_model* model, const std::string& name, const Json& request,
                          const std::vector<Output>& outputs, const Scores& scores) {
  Json body;
  body["model_name"] = name;
  body["model_version"] = elastor_digest(model);
  if (const Json* id = request.find("id")) body["id"] = *id;
  const std::vector<int64_t> shape = {static_cast<int64_t>(scores.rows),
                                      static_cast<int64_t>(elastor_outputs(model))};
  std::string binary;
  for (const Output& output : outputs) {
    const std::vector<float>& values =
        output.name == "logit" ? scores.logits : scores.probabilities;
    Json& info = body["outputs"].emplace_back();
    info = TensorInfo(output.name, "FP32", shape);
    if (output.binary) {
      const size_t bytes = values.size() * sizeof(float);
      info["parameters"]["binary_data_size"] = bytes;
      binary.append(reinterpret_cast<const char*>(values.data()), bytes);
    } else {
      info["data"] = values;
    }
  }
  HttpResponse response = {.body = body.dump()};
  const bool any = std::ranges::any_of(outputs, &Output::binary);
  if (any) {
    response.json_length = std::to_string(response.body.size());
    response.content_type = "application/octet-stream";
    response.body += binary;
  }
  return response;
}

}  // namespace

Json ModelMetadata(const elastor_model* model, const std::string& name) {
  Json metadata;
  metadata["name"] = name;
  metadata["versions"].push_back(elastor_digest(model));
  metadata["platform"] = "elastor";
  Json& inputs = metadata["inputs"] = Json::array();
  const std::vector<std::string> names = FieldNames(model);
  for (size_t field = 0; field < names.size(); ++field) {
    const bool number = elastor_field_is_number(model, field);
    inputs.push_back(TensorInfo(names[field], number ? "FP64" : "BYTES", {-1, 1}));
  }
  if (names.empty()) {
    const auto numbers = static_cast<int64_t>(elastor_numeric_fields(model));
    const auto columns = static_cast<int64_t>(elastor_categorical_fields(model));
    if (numbers > 0) inputs.push_back(TensorInfo("numeric", "FP32", {-1, numbers}));
    if (elastor_takes_offsets(model)) {
      inputs.push_back(TensorInfo("ids", "INT64", {-1}));
      inputs.push_back(TensorInfo("offsets", "INT64", {-1}));
    } else if (columns > 0) {
      inputs.push_back(TensorInfo("ids", "INT64", {-1, columns}));
    }
  }
  const auto tasks = static_cast<int64_t>(elastor_outputs(model));
  for (const char* output : {"probability", "logit"}) {
    metadata["outputs"].push_back(TensorInfo(output, "FP32", {-1, tasks}));
  }
  // The columns of the outputs.
  Json& labels = metadata["parameters"]["labels"] = Json::array();
  for (int64_t i = 0; i < tasks; ++i) {
    labels.push_back(elastor_output_name(model, static_cast<size_t>(i)));
  }
  if (const uint64_t number = elastor_version(model); number > 0) {
    metadata["parameters"]["number"] = number;  // among the publications
  }
  return metadata;
}

Inferred Infer(const elastor_model* model, const std::string& name, int64_t max_rows,
               const HttpRequest& http) {
  try {
    const auto [text, binary] = Parts(http);
    CheckMembers(text, elastor_fields(model));
    const Json request = Json::parse(text);
    if (!request.is_object()) {
      if (!IsUtf8(text)) Refuse("the JSON text of the body is not UTF-8");
      Refuse("the body is no JSON object, is nested more than 100 deep, or has a number too large");
    }
    constexpr size_t kIdBytes = 256;
    if (const Json* id = request.find("id");
        id != nullptr && (!id->is_string() || id->get<std::string>().size() > kIdBytes)) {
      Refuse("'id': expected a text of at most ", kIdBytes, " bytes");
    }
    CheckParameters(request, "the request", {"encoded", "binary_data_output"});
    const std::vector<Output> outputs = WantedOutputs(request);
    const std::vector<Tensor> tensors = ReadTensors(request, binary);
    const bool encoded =
        Switch(request, "the request", "encoded", /*otherwise=*/elastor_fields(model) == 0);
    const Scores scores =
        encoded ? ScoreIds(model, max_rows, tensors) : ScoreValues(model, max_rows, tensors);
    return {MakeResponse(model, name, request, outputs, scores), static_cast<int64_t>(scores.rows)};
  } catch (const Refusal& refusal) {
    return {ErrorResponse(refusal.code, refusal.error)};
  }
}

}  // namespace elastor
