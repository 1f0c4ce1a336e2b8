#include "trainer/score/export_model.h"

#include <algorithm>
#include <memory>
#include <numeric>
#include <string_view>
#include <vector>

#include "core/base/file.h"
#include "core/base/hash_text.h"
#include "core/base/json.h"
#include "core/base/json_entry.h"
#include "core/base/random.h"
#include "core/base/text.h"
#include "core/base/thread_pool.h"
#include "core/process/claimed_folder.h"
#include "embedding/key_space.h"
#include "trainer/checkpoint/safetensors.h"
#include "trainer/checkpoint/vocabularies.h"
#include "trainer/data/encoding.h"
#include "trainer/experiment/model_choice.h"
#include "trainer/score/onnx_graph.h"
#include "trainer/score/scorer.h"

namespace elastor {
namespace {

constexpr int64_t kRowsAtOnce = 4096;
constexpr char kKeysSuffix[] = "/keys";  // of a tensor's name

constexpr std::string_view kGraphFile = "model.onnx", kTablesFile = "embeddings.safetensors",
                           kFeaturesFile = "features.json", kSchemaFile = "schema.textproto";
// All that an export makes.
constexpr std::string_view kFiles[] = {kGraphFile, kTablesFile, kFeaturesFile, kSchemaFile,
                                       kVocabularyFolder};

// An array has a tensor of all rows, a keyed table one of the rows that exist; the keys of keyed
// tables stand before all rows.
Status WriteTables(const Scorer& scorer, const std::string& path) {
  const EmbeddingLayout& layout = scorer.layout();
  std::vector<TensorSpec> tensors;
  std::vector<std::vector<int64_t>> keys_of(layout.tables());
  for (int64_t t = 0; t < layout.tables(); ++t) {
    if (!layout.table(t).keyed) continue;
    keys_of[t] = scorer.KeysOf(t);
    std::ranges::sort(keys_of[t], KeyBefore);
    tensors.push_back(
        {layout.table(t).name + kKeysSuffix, TensorType::kI64, {std::ssize(keys_of[t])}});
  }
  const auto rows_of = [&](int64_t t) {
    return layout.table(t).keyed ? std::ssize(keys_of[t]) : layout.table(t).rows;
  };
  for (int64_t t = 0; t < layout.tables(); ++t) {
    tensors.push_back({layout.table(t).name, TensorType::kF32, {rows_of(t), layout.width(t)}});
  }
  ELASTOR_ASSIGN_OR_RETURN(SafetensorsWriter writer, SafetensorsWriter::Open(path, tensors));
  for (const std::vector<int64_t>& keys : keys_of) {
    ELASTOR_RETURN_IF_ERROR(writer.Append(std::span<const int64_t>(keys)));
  }
  std::vector<int64_t> keys(kRowsAtOnce);
  std::vector<float*> found(kRowsAtOnce);
  for (int64_t t = 0; t < layout.tables(); ++t) {
    const bool keyed = layout.table(t).keyed;
    const int64_t rows = rows_of(t), width = layout.width(t);
    std::vector<float> values(kRowsAtOnce * width);
    for (int64_t begin = 0; begin < rows; begin += kRowsAtOnce) {
      const int64_t count = std::min(kRowsAtOnce, rows - begin);
      if (keyed) {
        std::copy_n(keys_of[t].begin() + begin, count, keys.begin());
      } else {
        std::iota(keys.begin(), keys.end(), begin);
      }
      scorer.Find(t, {keys.data(), static_cast<size_t>(count)}, found.data());
      for (int64_t i = 0; i < count; ++i) {
        float* const to = values.data() + i * width;
        if (found[i] == nullptr) {
          scorer.MakeInitial(t, keys[i], to);
        } else {
          std::copy_n(found[i], width, to);
        }
      }
      ELASTOR_RETURN_IF_ERROR(writer.Append(std::span<const float>(values.data(), count * width)));
    }
  }
  return writer.Commit().status();
}

// What stands where in the inputs and outputs of model.onnx.
std::string FeaturesJson(const Scorer& scorer) {
  const EmbeddingLayout& layout = scorer.layout();
  const ModelDescription& model = scorer.model();
  Json json;
  json["model"] = KindName(*ChosenModel(model.experiment.model()));
  json["step"] = model.metadata.control.step();
  json["state_digest"] = model.metadata.state_digest;
  json["outputs"] = Json::array();
  for (const Task::Label& label : scorer.task().learned) json["outputs"].push_back(label.name);
  Json& embeddings = json["embeddings"] = Json::array();
  for (int64_t f = 0; f < layout.fields(); ++f) {
    const FieldSpec& field = layout.field(f);
    embeddings.push_back({{"field", field.name},
                          {"table", layout.table(field.table).name},
                          {"first", layout.first_feature(f)},
                          {"width", layout.field_width(f)},
                          {"pooling", field.pooling == Pooling::kMean ? "mean" : "sum"}});
  }
  // As LayOutSequences makes bags of them.
  size_t position = model.data.categorical.size();
  for (const SequenceShape& sequence : scorer.graph().features().sequences) {
    embeddings[sequence.field]["latest"] = sequence.positions;
    if (sequence.pooled) continue;
    embeddings[sequence.field]["pooling"] = "none";
    json["lengths"].push_back({{"field", sequence.name}, {"latest", sequence.positions}});
    for (int64_t t = 0; t < sequence.positions; ++t, ++position) {
      embeddings[position]["latest"] = sequence.positions;
      embeddings[position]["position"] = t;
    }
  }
  const auto seed = static_cast<uint64_t>(model.experiment.training().seed());
  for (int64_t t = 0; t < layout.tables(); ++t) {
    const TableSpec& table = layout.table(t);
    if (!table.keyed) continue;
    const uint64_t key = MakeRandomKey(seed, RandomPurpose::kRowInit, HashName(table.name));
    Json& made = json["keyed_tables"][table.name];
    made = {{"random_key", HashText(key)}, {"init_stddev", table.init_stddev}};
    if (!table.rules.admits()) continue;
    const int shared = layout.Beside(t, TableRole::kShared);
    made["unadmitted"] = shared < 0 ? "" : layout.table(shared).name;
  }
  Json& encoding = json["encoding"] = Json::object();
  AddEncodingJson(*model.metadata.encoding, &encoding);
  encoding.erase("schema");  // is a file
  return json.dump(1) + "\n";
}

Status WriteFiles(const Scorer& scorer, const std::string& model_dir, const std::string& folder) {
  const ModelDescription& model = scorer.model();
  const std::string name = KindName(*ChosenModel(model.experiment.model()));
  ELASTOR_ASSIGN_OR_RETURN(
      const std::string onnx,
      OnnxModel(scorer.graph(), scorer.task().outputs(), scorer.weights().data(), name));
  ELASTOR_RETURN_IF_ERROR(MakeOwnDirectory(folder));
  ELASTOR_RETURN_IF_ERROR(WriteFileAtomically(StrCat(folder, "/", kGraphFile), onnx));
  ELASTOR_RETURN_IF_ERROR(WriteTables(scorer, StrCat(folder, "/", kTablesFile)));
  ELASTOR_RETURN_IF_ERROR(
      WriteFileAtomically(StrCat(folder, "/", kFeaturesFile), FeaturesJson(scorer)));
  const DataEncoding& encoding = *model.metadata.encoding;
  if (!encoding.schema.empty()) {
    ELASTOR_RETURN_IF_ERROR(WriteFileAtomically(StrCat(folder, "/", kSchemaFile), encoding.schema));
  }
  return model.metadata.has_vocabularies
             ? CopyVocabularies(encoding, DirectoryToRead(model_dir), folder)
             : OkStatus();
}

}  // namespace

Status ExportModel(const std::string& model_dir, std::string output_dir) {
  while (output_dir.size() > 1 && output_dir.ends_with('/')) output_dir.pop_back();
  ELASTOR_ASSIGN_OR_RETURN(ClaimedFolder claimed, ClaimedFolder::Claim(output_dir));
  ELASTOR_RETURN_IF_ERROR(claimed.CheckIsEmpty("a new or empty directory"));
  const std::string partial = output_dir + ".partial";
  ELASTOR_RETURN_IF_ERROR(RemoveRemains(partial, [](std::string_view name) {
    return std::ranges::find(kFiles, name) != std::end(kFiles);
  }));
  ELASTOR_ASSIGN_OR_RETURN(const std::unique_ptr<Scorer> scorer,
                           Scorer::Open(model_dir, /*pool=*/nullptr));
  if (const RowFormat rows = scorer->row_format(); rows != RowFormat::kFloat32) {
    return UserError(StrCat(model_dir, ": has ", RowFormatName(rows),
                            " rows; expected a model with FLOAT32 rows"));
  }
  Status status = WriteFiles(*scorer, model_dir, partial);
  if (status.ok()) status = PublishDirectory(partial, output_dir);
  if (!status.ok()) static_cast<void>(RemoveDirectory(partial));
  if (status.ok()) claimed.Keep();
  return status;
}

}  // namespace elastor
