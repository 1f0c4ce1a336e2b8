#include "trainer/model_files.h"

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <span>
#include <utility>

#include "core/base/file.h"
#include "glog/logging.h"
#include "nlohmann/json.hpp"
#include "trainer/config.h"
#include "trainer/safetensors.h"
#include "xxhash.h"

namespace elastor {
namespace {

using Json = nlohmann::ordered_json;

constexpr char kFormat[] = "elastor-model";
constexpr int kVersion = 1;
constexpr char kManifestFile[] = "manifest.json";
constexpr char kDenseFile[] = "dense.safetensors";

std::string EmbeddingFile(int rank, int ranks) {
  char name[64];
  std::snprintf(name, sizeof(name), "embedding-%05d-of-%05d.safetensors", rank, ranks);
  return name;
}

std::string Hex(uint64_t value) {
  char text[17];
  std::snprintf(text, sizeof(text), "%016" PRIx64, value);
  return text;
}

TensorSpec KeysTensor(const TableSpec& table, int64_t rows) {
  return {table.name + ".keys", TensorType::kI64, {rows}};
}

TensorSpec RowsTensor(const TableSpec& table, int64_t rows) {
  return {table.name + ".rows", TensorType::kF32, {rows, table.width}};
}

// ---- Saving

StatusOr<FileChecksum> WriteDense(const std::string& path, const ModelWeights& weights) {
  std::vector<TensorSpec> tensors;
  for (const ParameterInfo& p : weights.layout->parameters()) {
    tensors.push_back({p.name, TensorType::kF32, p.shape});
  }
  ELASTOR_ASSIGN_OR_RETURN(SafetensorsWriter writer, SafetensorsWriter::Open(path, tensors));
  for (const ParameterInfo& p : weights.layout->parameters()) {
    ELASTOR_RETURN_IF_ERROR(
        writer.Append(std::span<const float>(weights.dense + p.offset, p.size)));
  }
  return writer.Commit();
}

// Passes over the rows: one counts, one writes keys, one writes weights.
StatusOr<FileChecksum> WriteRows(const std::string& path, const ModelWeights& weights) {
  const std::vector<TableSpec>& tables = *weights.tables;
  std::vector<int64_t> counts(tables.size(), 0);
  weights.embedding->ForEachRow(
      [&](int table, int64_t, const float*, const float*) { ++counts[table]; });

  std::vector<TensorSpec> tensors;
  for (size_t t = 0; t < tables.size(); ++t) tensors.push_back(KeysTensor(tables[t], counts[t]));
  for (size_t t = 0; t < tables.size(); ++t) tensors.push_back(RowsTensor(tables[t], counts[t]));
  ELASTOR_ASSIGN_OR_RETURN(SafetensorsWriter writer, SafetensorsWriter::Open(path, tensors));

  Status status;
  std::pair<int, int64_t> last = {0, -1};
  weights.embedding->ForEachRow([&](int table, int64_t key, const float*, const float*) {
    CHECK(last < std::pair(table, key)) << tables[table].name << ": keys out of order";
    last = {table, key};
    if (status.ok()) status = writer.Append(std::span<const int64_t>(&key, 1));
  });
  weights.embedding->ForEachRow([&](int table, int64_t, const float* row, const float*) {
    if (status.ok()) status = writer.Append(std::span(row, tables[table].width));
  });
  ELASTOR_RETURN_IF_ERROR(status);
  return writer.Commit();
}

Json FileJson(const std::string& name, const FileChecksum& checksum) {
  return {{"name", name}, {"bytes", checksum.bytes}, {"xxh3_64", Hex(checksum.xxh3)}};
}

std::string ManifestText(const ModelFacts& facts, const FileChecksum& dense,
                         std::span<const FileChecksum> embedding) {
  Json json = {{"format", kFormat},
               {"version", kVersion},
               {"step", facts.step},
               {"epochs", facts.epochs},
               {"state_digest", facts.state_digest},
               {"numerics", facts.numerics},
               {"model_hash", facts.model_hash},
               {"dense", FileJson(kDenseFile, dense)},
               {"embedding", Json::array()}};
  const int ranks = static_cast<int>(embedding.size());
  for (int rank = 0; rank < ranks; ++rank) {
    json["embedding"].push_back(FileJson(EmbeddingFile(rank, ranks), embedding[rank]));
  }
  return json.dump(2) + "\n";
}

// ---- Loading

struct FileEntry {
  std::string path;
  FileChecksum checksum;
};

struct Manifest {
  ModelFacts facts;
  FileEntry dense;
  std::vector<FileEntry> embedding;
};

// A file beside the manifest, never elsewhere.
StatusOr<FileEntry> ParseFile(const std::string& directory, const Json& json) {
  const std::string name = json.at("name");
  const std::string hex = json.at("xxh3_64");
  const std::string manifest = directory + "/" + kManifestFile;
  if (name.empty() || name == "." || name == ".." || name.find('/') != name.npos) {
    return UserError(manifest + ": name '" + name + "'; expected a file in the same directory");
  }
  FileEntry entry = {directory + "/" + name, {json.at("bytes"), 0}};
  int length = 0;
  if (hex.size() != 16 ||
      std::sscanf(hex.c_str(), "%16" SCNx64 "%n", &entry.checksum.xxh3, &length) != 1 ||
      length != 16) {
    return UserError(manifest + ": " + name + ": xxh3_64 '" + hex + "'; expected 16 hex digits");
  }
  return entry;
}

StatusOr<Manifest> ParseManifest(const std::string& directory, const Json& json) {
  const std::string path = directory + "/" + kManifestFile;
  if (!json.is_object() || json.value("format", "") != kFormat) {
    return UserError(path + ": not the manifest of a model");
  }
  if (const int version = json.at("version"); version != kVersion) {
    return UserError(path + ": version " + std::to_string(version) + "; expected " +
                     std::to_string(kVersion));
  }
  Manifest manifest;
  manifest.facts = {json.at("step"), json.at("epochs"), json.at("state_digest"),
                    json.at("numerics"), json.at("model_hash")};
  ELASTOR_ASSIGN_OR_RETURN(manifest.dense, ParseFile(directory, json.at("dense")));
  for (const Json& file : json.at("embedding")) {
    ELASTOR_ASSIGN_OR_RETURN(FileEntry entry, ParseFile(directory, file));
    manifest.embedding.push_back(std::move(entry));
  }
  if (manifest.embedding.empty()) return UserError(path + ": names no embedding file");
  return manifest;
}

StatusOr<Manifest> ReadManifest(const std::string& directory) {
  const std::string path = directory + "/" + kManifestFile;
  StatusOr<std::string> text = ReadFile(path);
  if (!text.ok()) {
    return Status(text.status().code(),
                  text.status().message() + "; expected the model folder of a finished run");
  }
  try {
    return ParseManifest(directory, Json::parse(*text));
  } catch (const Json::exception& error) {
    return UserError(path + ": " + error.what());
  }
}

Status ReadDense(const FileEntry& entry, const ModelWeights& weights) {
  ELASTOR_ASSIGN_OR_RETURN(const SafetensorsFile file,
                           SafetensorsFile::Open(entry.path, entry.checksum));
  for (const ParameterInfo& p : weights.layout->parameters()) {
    ELASTOR_ASSIGN_OR_RETURN(const std::span<const float> values,
                             file.Find<float>({p.name, TensorType::kF32, p.shape}));
    std::copy(values.begin(), values.end(), weights.dense + p.offset);
  }
  const size_t expected = weights.layout->parameters().size();
  if (file.tensors().size() == expected) return OkStatus();
  return UserError(entry.path + ": has " + std::to_string(file.tensors().size()) +
                   " tensors; expected the model's " + std::to_string(expected));
}

Status ReadTable(const SafetensorsFile& file, int t, const ModelWeights& weights) {
  const TableSpec& table = (*weights.tables)[t];
  const TensorSpec keys_tensor = KeysTensor(table, kAnyLength);
  ELASTOR_ASSIGN_OR_RETURN(const std::span<const int64_t> keys, file.Find<int64_t>(keys_tensor));
  ELASTOR_ASSIGN_OR_RETURN(const std::span<const float> rows,
                           file.Find<float>(RowsTensor(table, static_cast<int64_t>(keys.size()))));
  for (size_t i = 0; i < keys.size(); ++i) {
    if (keys[i] < 0 || keys[i] >= table.rows) {
      return UserError(file.path() + ": tensor '" + keys_tensor.name + "' holds key " +
                       std::to_string(keys[i]) + "; expected less than " +
                       std::to_string(table.rows) + ", the rows of the table");
    }
    weights.embedding->SetRow(t, keys[i], rows.data() + i * table.width, nullptr);
  }
  return OkStatus();
}

Status ReadRows(const FileEntry& entry, const ModelWeights& weights) {
  ELASTOR_ASSIGN_OR_RETURN(const SafetensorsFile file,
                           SafetensorsFile::Open(entry.path, entry.checksum));
  const int tables = static_cast<int>(weights.tables->size());
  for (int t = 0; t < tables; ++t) ELASTOR_RETURN_IF_ERROR(ReadTable(file, t, weights));
  if (static_cast<int>(file.tensors().size()) == 2 * tables) return OkStatus();
  return UserError(entry.path + ": has " + std::to_string(file.tensors().size()) +
                   " tensors; expected 2 for each of the " + std::to_string(tables) + " tables");
}

StatusOr<ModelFacts> LoadOnThisRank(const std::string& directory, const std::string& model_hash,
                                    const ModelWeights& weights) {
  ELASTOR_ASSIGN_OR_RETURN(Manifest manifest, ReadManifest(directory));
  ELASTOR_RETURN_IF_ERROR(ReadDense(manifest.dense, weights));
  for (const FileEntry& entry : manifest.embedding) {
    ELASTOR_RETURN_IF_ERROR(ReadRows(entry, weights));
  }
  // Last, because what has another shape is told better by the tensors.
  if (manifest.facts.model_hash != model_hash) {
    return UserError(directory + "/" + kManifestFile + ": model_hash " + manifest.facts.model_hash +
                     "; expected " + model_hash +
                     ": the experiment's model, embedding and training.seed and the data's fields "
                     "must be those of training (experiment.textproto of that run)");
  }
  return manifest.facts;
}

}  // namespace

std::string MakeModelHash(const Experiment& experiment, const DatasetInfo& data) {
  Experiment part;
  *part.mutable_model() = experiment.model();
  *part.mutable_embedding() = experiment.embedding();
  part.mutable_training()->set_seed(experiment.training().seed());
  Json all = {{"experiment", NumericHash(part)}, {"fields", Json::array()}};
  for (const DatasetInfo::Numeric& field : data.numeric) all["fields"].push_back(field.name);
  for (const DatasetInfo::Categorical& field : data.categorical) {
    all["fields"].push_back({field.name, field.ids, field.multi_hot, field.mean_pooling});
  }
  const std::string text = all.dump();
  return Hex(XXH3_64bits(text.data(), text.size()));
}

Status SaveModel(const std::string& directory, const ModelFacts& facts, const ModelWeights& weights,
                 Communicator& communicator) {
  const std::string partial = directory + ".partial";
  const int rank = communicator.rank();
  const int ranks = communicator.size();
  Status made = rank == 0 ? MakeDirectory(partial) : OkStatus();
  ELASTOR_RETURN_IF_ERROR(AgreeOnStatus(communicator, made));

  StatusOr<FileChecksum> rows = WriteRows(partial + "/" + EmbeddingFile(rank, ranks), weights);
  StatusOr<FileChecksum> dense = FileChecksum();
  if (rank == 0) dense = WriteDense(partial + "/" + kDenseFile, weights);
  ELASTOR_RETURN_IF_ERROR(AgreeOnStatus(communicator, rows.ok() ? dense.status() : rows.status()));

  std::vector<FileChecksum> checksums(ranks);
  checksums[rank] = *rows;
  const std::vector<int64_t> lengths(ranks, sizeof(FileChecksum));
  ELASTOR_RETURN_IF_ERROR(
      communicator.AllGatherV(Phase::kSetup, &checksums[rank], checksums.data(), lengths));
  Status published;
  if (rank == 0) {
    published =
        WriteFileAtomically(partial + "/" + kManifestFile, ManifestText(facts, *dense, checksums));
    if (published.ok()) published = PublishDirectory(partial, directory);
  }
  return AgreeOnStatus(communicator, published);
}

StatusOr<ModelFacts> LoadModel(const std::string& directory, const std::string& model_hash,
                               const ModelWeights& weights, Communicator& communicator) {
  StatusOr<ModelFacts> facts = LoadOnThisRank(directory, model_hash, weights);
  ELASTOR_RETURN_IF_ERROR(AgreeOnStatus(communicator, facts.status()));
  return facts;
}

}  // namespace elastor
