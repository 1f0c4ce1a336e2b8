#include <gflags/gflags.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/base/hash_text.h"
#include "core/base/json.h"
#include "core/base/json_entry.h"
#include "core/base/log.h"
#include "core/process/command_line.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/message.h"
#include "tests/fuzz/scratch.h"
#include "tests/fuzz/targets.h"
#include "trainer/checkpoint/manifest.h"
#include "trainer/checkpoint/safetensors.h"
#include "trainer/checkpoint/vocabularies.h"
#include "trainer/data/encoding.h"
#include "trainer/data/saved_vocabulary.h"
#include "trainer/experiment/config.h"
#include "trainer/experiment/config_checks.h"
#include "trainer/experiment/config_defaults.h"
#include "trainer/experiment/make_options.h"
#include "trainer/experiment/overrides.h"
#include "trainer/experiment/sequences.h"
#include "trainer/prepare/plan.h"
#include "trainer/prepare/schema_file.h"
#include "trainer/score/row_encoder.h"
#include "trainer/score/scorer.h"

DEFINE_string(set, "", "as the trainer's");
DEFINE_string(fuzz_text, "", "a flag for the files of flags to set");
DEFINE_int32(fuzz_number, 0, "likewise");
DEFINE_bool(fuzz_switch, false, "likewise");

namespace elastor {
namespace {

std::vector<std::string> SplitAt(std::string_view bytes, char between) {
  std::vector<std::string> parts(1);
  for (const char c : bytes) {
    if (c == between) {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  return parts;
}

// What is accepted, is written and read again as it was.
bool CheckExperiment(Experiment experiment) {
  ResolveDefaults(&experiment);
  if (const Status valid = ValidateExperiment(experiment); !valid.ok()) return CheckOneLine(valid);
  const std::string text = ExperimentText(experiment);
  const StatusOr<Experiment> read = ParseExperiment(text, "written");
  CHECK(read.ok()) << read.status().message();
  CHECK_EQ(ExperimentText(*read), text);
  CHECK_EQ(NumericHash(*read), NumericHash(experiment));
  return true;
}

bool FuzzExperiment(std::string_view bytes) {
  StatusOr<Experiment> experiment = ParseExperiment(std::string(bytes), "fuzzed");
  if (experiment.ok()) experiment = CompleteStored(*std::move(experiment));
  if (!experiment.ok()) return CheckOneLine(experiment.status());
  return CheckExperiment(*std::move(experiment));
}

// An override a line.
bool FuzzOverrides(std::string_view bytes) {
  Experiment experiment;
  const Status applied = ApplyOverrides(SplitAt(bytes, '\n'), &experiment);
  if (!applied.ok()) return CheckOneLine(applied);
  return CheckExperiment(std::move(experiment));
}

bool FuzzManifest(std::string_view bytes) {
  const StatusOr<Manifest> manifest = ParseManifest("fuzzed", Resealed(bytes, "manifest_xxh3"));
  return manifest.ok() || CheckOneLine(manifest.status());
}

template <typename T>
void ReadAll(const StatusOr<std::span<const T>>& values, const TensorSpec& tensor) {
  CHECK(values.ok()) << values.status().message();
  CHECK_EQ(static_cast<int64_t>(values->size_bytes()), tensor.bytes());
  HashTextOf({reinterpret_cast<const char*>(values->data()), values->size_bytes()});
}

bool FuzzSafetensors(std::string_view bytes) {
  const StatusOr<SafetensorsFile> file =
      SafetensorsFile::Open(FileOf("fuzzed.safetensors", bytes), {});
  if (!file.ok()) return CheckOneLine(file.status());
  for (const TensorSpec& tensor : file->tensors()) {
    switch (tensor.type) {
      case TensorType::kF32:
        ReadAll(file->Find<float>(tensor), tensor);
        break;
      case TensorType::kI64:
        ReadAll(file->Find<int64_t>(tensor), tensor);
        break;
      case TensorType::kU8:
        ReadAll(file->Find<uint8_t>(tensor), tensor);
        break;
    }
  }
  return true;
}

// Whether a number of the message is so large that what is made of it may need gigabytes.
bool HasLargeNumber(const google::protobuf::Message& message) {
  constexpr int64_t kMost = 40;
  std::vector<const google::protobuf::FieldDescriptor*> fields;
  const google::protobuf::Reflection& reflection = *message.GetReflection();
  reflection.ListFields(message, &fields);
  for (const google::protobuf::FieldDescriptor* field : fields) {
    if (field->message_type() != nullptr) {
      if (HasLargeNumber(reflection.GetMessage(message, field))) return true;
      continue;
    }
    if (field->cpp_type() != google::protobuf::FieldDescriptor::CPPTYPE_INT32) continue;
    const int count = field->is_repeated() ? reflection.FieldSize(message, field) : 1;
    if (count > kMost) return true;
    for (int i = 0; i < count; ++i) {
      const int32_t number = field->is_repeated() ? reflection.GetRepeatedInt32(message, field, i)
                                                  : reflection.GetInt32(message, field);
      if (number > kMost) return true;
    }
  }
  return false;
}

// The experiment and the encoding, as JSON, of a manifest, and values of a row by tabs, with a line
// of three hyphens between: what is accepted makes a graph; a row is encoded or refused.
bool FuzzModel(std::string_view bytes) {
  constexpr std::string_view kBetween = "\n---\n";
  constexpr int64_t kMostShape = 40;
  const size_t first = bytes.find(kBetween);
  if (first == bytes.npos) return false;
  const size_t second = bytes.find(kBetween, first + kBetween.size());
  if (second == bytes.npos) return false;
  Manifest manifest;
  manifest.metadata.experiment = bytes.substr(0, first);
  try {
    const size_t begin = first + kBetween.size();
    const Json json = ParseJson(bytes.substr(begin, second - begin));
    manifest.metadata.encoding = ParseEncoding(JsonEntry(json));
  } catch (const std::string& mistake) {
    return CheckOneLine(UserError(mistake));
  }
  const DataEncoding& encoding = *manifest.metadata.encoding;
  const StatusOr<std::unique_ptr<RowEncoder>> encoder = RowEncoder::Open(encoding, FuzzFolder());
  if (!encoder.ok()) {
    CheckOneLine(encoder.status());
  } else {
    Rows rows;
    const std::vector<std::string> values = SplitAt(bytes.substr(second + kBetween.size()), '\t');
    const std::vector<std::string_view> views(values.begin(), values.end());
    if (const Status encoded = (*encoder)->EncodeValues(views, &rows); !encoded.ok()) {
      CheckOneLine(encoded);
    }
  }
  const StatusOr<ModelDescription> model = ModelDescription::Of(manifest, "fuzzed");
  if (!model.ok()) return CheckOneLine(model.status());
  const StatusOr<Task> task = MakeTask(model->experiment, model->data);
  if (!task.ok()) return CheckOneLine(task.status());
  const auto sequences = FindSequences(model->experiment, model->data);
  if (!sequences.ok()) return CheckOneLine(sequences.status());
  const auto request = FindRequestFields(model->experiment, model->data, *sequences);
  if (!request.ok()) return CheckOneLine(request.status());
  int64_t shape = std::max({model->data.numeric_count(), task->outputs(),
                            static_cast<int64_t>(model->data.categorical.size()),
                            int64_t{model->experiment.embedding().width()}});
  for (const SequenceShape& sequence : *sequences) shape = std::max(shape, sequence.positions);
  if (shape > kMostShape || HasLargeNumber(model->experiment.model())) return false;
  const Graph graph = MakeGraph(model->experiment, model->data);
  CHECK_GT(graph.parameters().element_count(), 0);
  CHECK_GE(MakeFields(model->experiment, model->data).size(), model->data.categorical.size());
  return true;
}

// A model of every kind of field, the vocabulary of one.
std::unique_ptr<RowEncoder> MakeEncoder() {
  const std::string text =
      "fields { name: 'y' type: LABEL } fields { name: 'n' type: NUMERIC transform: LOG2 } "
      "fields { name: 'c' type: CATEGORICAL } fields { name: 'h' type: CATEGORICAL encoding: HASH "
      "buckets: 9 } fields { name: 't' type: CATEGORICAL transform: HOUR time_format: YYMMDDHH "
      "encoding: IDENTITY buckets: 24 } fields { name: 'b' type: MULTI_HOT separator: '|' "
      "encoding: HASH buckets: 9 max_length: 3 } fields { name: 's' type: SEQUENCE separator: ' ' "
      "shares: 'c' max_length: 4 }";
  const StatusOr<Schema> schema = ParseSchema(text, "fuzzed");
  CHECK(schema.ok()) << schema.status().message();
  const std::string vocabulary = "a\t3\nbc\t1\n";
  std::filesystem::create_directory(FuzzFolder() + "/" + kVocabularyFolder);
  FileOf(std::string(kVocabularyFolder) + "/" + VocabularyFileName("c"), vocabulary);
  DataEncoding encoding = EncodingOf(PreparePlan(*schema).Info());
  encoding.schema = text;
  for (DatasetInfo::Categorical& field : encoding.categorical) {
    if (field.name == "c" || field.name == "s") field.ids = 3;
    if (field.name == "c") field.vocabulary = HashTextOf(vocabulary);
  }
  StatusOr<std::unique_ptr<RowEncoder>> encoder = RowEncoder::Open(encoding, FuzzFolder());
  CHECK(encoder.ok()) << encoder.status().message();
  return std::move(*encoder);
}

// Values of a row by tabs, as the C interface takes them.
bool FuzzValues(std::string_view bytes) {
  static const std::unique_ptr<RowEncoder> kEncoder = MakeEncoder();
  static const std::vector<int64_t> kIds = {3, 9, 24, 9, 3};
  const std::vector<std::string> values = SplitAt(bytes, '\t');
  Rows rows;
  const Status encoded =
      kEncoder->EncodeValues(std::vector<std::string_view>(values.begin(), values.end()), &rows);
  if (!encoded.ok()) {
    CHECK(rows.rows == 0 && rows.ids.empty() && rows.numeric.empty());
    return CheckOneLine(encoded);
  }
  CHECK_EQ(rows.rows, 1);
  CHECK_EQ(rows.numeric.size(), 1u);
  CHECK_EQ(rows.offsets.size(), kIds.size() + 1);
  for (size_t field = 0; field < kIds.size(); ++field) {
    for (int64_t i = rows.offsets[field]; i < rows.offsets[field + 1]; ++i) {
      CHECK(rows.ids[i] >= 0 && rows.ids[i] < kIds[field]);
    }
  }
  return true;
}

// A file of flags, which may name itself.
bool FuzzFlags(std::string_view bytes) {
  const gflags::FlagSaver saver;
  const std::string argument = "--flagfile=" + FileOf("flags", bytes);
  const StatusOr<CommandLine> line = ParseCommandLine({&argument, 1}, "model_targets.cc");
  return line.ok() || CheckOneLine(line.status());
}

constexpr FuzzTarget kModelTargets[] = {
    {"experiment", false, FuzzExperiment}, {"flags", true, FuzzFlags},
    {"manifest", false, FuzzManifest},     {"model", true, FuzzModel},
    {"overrides", false, FuzzOverrides},   {"safetensors", true, FuzzSafetensors},
    {"values", false, FuzzValues},
};

}  // namespace

std::span<const FuzzTarget> ModelTargets() { return kModelTargets; }

}  // namespace elastor
