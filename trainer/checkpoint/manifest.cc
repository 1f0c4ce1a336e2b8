#include "trainer/checkpoint/manifest.h"

#include <cinttypes>
#include <cstdio>
#include <filesystem>
#include <set>
#include <utility>

#include "core/base/file.h"
#include "embedding/shard_plan.h"
#include "glog/logging.h"
#include "google/protobuf/util/json_util.h"
#include "nlohmann/json.hpp"
#include "xxhash.h"

namespace elastor {
namespace {

using Json = nlohmann::ordered_json;

constexpr char kFormat[] = "elastor-checkpoint";
constexpr int kVersion = 1;
// What follows the text that the manifest's own hash is of: 16 digits and the end.
constexpr std::string_view kEnd = "\"\n}\n";
constexpr size_t kHashDigits = 16;

uint64_t HashOf(std::string_view text) { return XXH3_64bits(text.data(), text.size()); }

const char* ContentsName(Contents contents) {
  return contents == Contents::kState ? "state" : "weights";
}

// ---- Writing

Json ControlJson(const ControlRecord& control) {
  google::protobuf::util::JsonPrintOptions options;
  options.preserve_proto_field_names = true;
  options.always_print_primitive_fields = true;
  std::string text;
  const auto printed = google::protobuf::util::MessageToJsonString(control, &text, options);
  CHECK(printed.ok()) << printed.message().ToString();
  return Json::parse(text);
}

Json TableJson(const StoredTable& table) {
  Json columns = Json::object();
  for (const Column& column : table.columns) columns[column.name] = column.width;
  return {{"name", table.name}, {"keys", table.keys}, {"columns", columns}};
}

Json FileJson(const std::string& name, const SafetensorsFacts& facts) {
  return {{"name", name}, {"bytes", facts.bytes}, {"header_xxh3", HashText(facts.header_xxh3)}};
}

Json PieceJson(const RowPiece& piece) {
  Json json = {piece.partitions.begin, piece.partitions.end, piece.rows.size()};
  for (const uint64_t hash : piece.hashes) json.push_back(HashText(hash));
  return json;
}

// ---- Reading. These throw what Json throws when a member is missing or of another kind; a
// mistake of ours to tell is a std::string.

uint64_t ParseHash(const Json& json) {
  const std::string text = json;
  if (text.size() != kHashDigits || text.find_first_not_of("0123456789abcdef") != text.npos) {
    throw "hash '" + text + "'; expected 16 hex digits";
  }
  return std::stoull(text, nullptr, 16);
}

// A file beside the manifest, never elsewhere.
std::string ParseFileName(const Json& json) {
  const std::string name = json.at("name");
  if (name.empty() || name == "." || name == ".." || name.find('/') != name.npos) {
    throw "name '" + name + "'; expected a file in the same directory";
  }
  return name;
}

SafetensorsFacts ParseFileFacts(const Json& json) {
  return {json.at("bytes"), ParseHash(json.at("header_xxh3"))};
}

StoredTable ParseTable(const Json& json) {
  StoredTable table = {json.at("name"), json.at("keys"), {}};
  for (const auto& [name, width] : json.at("columns").items()) {
    table.columns.push_back({name, width});
    if (table.columns.back().width < 1) throw "table '" + table.name + "': a column without width";
  }
  if (table.keys < 1 || table.columns.empty() || table.columns[0].name != "rows") {
    throw "table '" + table.name + "': expected keys and a column 'rows'";
  }
  return table;
}

std::vector<RowPiece> ParsePieces(const StoredTable& table, const Json& json) {
  std::vector<RowPiece> pieces;
  int64_t row = 0;
  for (const Json& entry : json) {
    const Range partitions = {entry.at(0), entry.at(1)};
    const int64_t rows = entry.at(2);
    const bool ordered = pieces.empty() || partitions.begin >= pieces.back().partitions.begin;
    if (partitions.begin < 0 || partitions.size() < 1 || partitions.end > kPartitions || !ordered ||
        rows < 1 || rows > table.keys - row || entry.size() != 4 + table.columns.size()) {
      throw "table '" + table.name + "': piece " + entry.dump() +
          "; expected [first partition, end, rows, a hash of the keys and of every column]";
    }
    RowPiece& piece = pieces.emplace_back(RowPiece{partitions, {row, row + rows}, {}});
    for (size_t i = 3; i < entry.size(); ++i) piece.hashes.push_back(ParseHash(entry[i]));
    row += rows;
  }
  return pieces;
}

EmbeddingFile ParseEmbeddingFile(std::span<const StoredTable> tables, const Json& json) {
  EmbeddingFile file = {ParseFileName(json), ParseFileFacts(json), {}};
  const Json& pieces = json.at("pieces");
  size_t found = 0;
  for (const StoredTable& table : tables) {
    const auto entry = pieces.find(table.name);
    found += entry != pieces.end() ? 1 : 0;
    file.pieces.push_back(entry != pieces.end() ? ParsePieces(table, *entry)
                                                : std::vector<RowPiece>());
  }
  if (found != pieces.size()) throw file.name + ": pieces of a table that is not in 'tables'";
  return file;
}

ControlRecord ParseControl(const Json& json) {
  ControlRecord control;
  const auto parsed = google::protobuf::util::JsonStringToMessage(json.dump(), &control);
  if (!parsed.ok()) throw "control: " + parsed.message().ToString();
  return control;
}

CheckpointMetadata ParseMetadata(const Json& json) {
  const std::string contents = json.at("contents");
  if (contents != "state" && contents != "weights") {
    throw "contents '" + contents + "'; expected 'state' or 'weights'";
  }
  return {contents == "state" ? Contents::kState : Contents::kWeights,
          ParseControl(json.at("control")),
          json.at("state_digest"),
          json.at("numerics"),
          json.at("model_hash"),
          json.at("numeric_hash"),
          json.at("experiment"),
          json.at("data")};
}

Manifest ParseJson(const Json& json) {
  Manifest manifest;
  manifest.metadata = ParseMetadata(json);
  for (const Json& table : json.at("tables")) manifest.tables.push_back(ParseTable(table));
  const Json& dense = json.at("dense");
  if (const std::string name = ParseFileName(dense); name != kDenseFile) {
    throw "name '" + name + "'; expected '" + kDenseFile + "'";
  }
  manifest.dense.facts = ParseFileFacts(dense);
  for (const auto& [name, hash] : dense.at("tensors").items()) {
    manifest.dense.tensors[name] = ParseHash(hash);
  }
  std::set<std::string> names;
  for (const Json& file : json.at("embedding")) {
    manifest.embedding.push_back(ParseEmbeddingFile(manifest.tables, file));
    const std::string& name = manifest.embedding.back().name;
    if (!names.insert(name).second) throw "names " + name + " twice";
  }
  return manifest;
}

// What is wrong with format and version; empty: nothing.
std::string WrongVersion(const Json& json) {
  if (!json.is_object() || !json.contains("format") || json["format"] != kFormat) {
    return "not the manifest of a checkpoint or a model";
  }
  const Json& version = json.at("version");
  if (version == kVersion) return "";
  return "version " + version.dump() + "; expected " + std::to_string(kVersion);
}

bool MatchesItsHash(std::string_view text) {
  if (text.size() < kEnd.size() + kHashDigits || !text.ends_with(kEnd)) return false;
  text.remove_suffix(kEnd.size());
  const std::string_view digits = text.substr(text.size() - kHashDigits);
  text.remove_suffix(kHashDigits);
  return digits == HashText(HashOf(text));
}

}  // namespace

std::string HashText(uint64_t hash) {
  char text[kHashDigits + 1];
  std::snprintf(text, sizeof(text), "%016" PRIx64, hash);
  return text;
}

std::string EmbeddingFileName(int rank, int ranks) {
  char name[64];
  std::snprintf(name, sizeof(name), "embedding-%05d-of-%05d.safetensors", rank, ranks);
  return name;
}

TensorSpec KeysTensor(const std::string& table, int64_t rows) {
  return {table + "/keys", TensorType::kI64, {rows}};
}

TensorSpec ColumnTensor(const std::string& table, const Column& column, int64_t rows) {
  return {table + "/" + column.name, TensorType::kF32, {rows, column.width}};
}

std::string EmbeddingFileText(const EmbeddingFile& file, std::span<const StoredTable> tables) {
  Json json = FileJson(file.name, file.facts);
  json["pieces"] = Json::object();
  for (size_t t = 0; t < tables.size(); ++t) {
    if (file.pieces[t].empty()) continue;
    Json& pieces = json["pieces"][tables[t].name] = Json::array();
    for (const RowPiece& piece : file.pieces[t]) pieces.push_back(PieceJson(piece));
  }
  return json.dump();
}

std::string ManifestText(const Manifest& manifest, std::span<const std::string> embedding) {
  const CheckpointMetadata& metadata = manifest.metadata;
  Json tables = Json::array();
  for (const StoredTable& table : manifest.tables) tables.push_back(TableJson(table));
  Json dense = FileJson(kDenseFile, manifest.dense.facts);
  dense["tensors"] = Json::object();
  for (const auto& [name, hash] : manifest.dense.tensors) dense["tensors"][name] = HashText(hash);
  const Json head = {{"format", kFormat},
                     {"version", kVersion},
                     {"contents", ContentsName(metadata.contents)},
                     {"control", ControlJson(metadata.control)},
                     {"state_digest", metadata.state_digest},
                     {"numerics", metadata.numerics},
                     {"model_hash", metadata.model_hash},
                     {"numeric_hash", metadata.numeric_hash},
                     {"experiment", metadata.experiment},
                     {"data", metadata.data},
                     {"tables", tables},
                     {"dense", dense}};
  // A line an entry and a line a file.
  std::string text = "{\n";
  for (const auto& [key, value] : head.items())
    text += "  \"" + key + "\": " + value.dump() + ",\n";
  text += "  \"embedding\": [";
  for (size_t i = 0; i < embedding.size(); ++i)
    text += (i > 0 ? ",\n    " : "\n    ") + embedding[i];
  text += "\n  ],\n  \"manifest_xxh3\": \"";
  return text + HashText(HashOf(text)) + std::string(kEnd);
}

StatusOr<std::string> ReadManifestText(const std::string& directory) {
  const std::string path = directory + "/" + kManifestFile;
  std::error_code ignored;
  if (std::filesystem::is_symlink(path, ignored)) {
    return UserError(path + ": a symbolic link; expected the file itself");
  }
  StatusOr<std::string> text = ReadFile(path);
  if (text.ok() || text.status().code() != StatusCode::kUser) return text;
  return UserError(text.status().message() + "; expected the folder of a checkpoint or a model");
}

StatusOr<Manifest> ParseManifest(const std::string& directory, std::string_view text) {
  const std::string path = directory + "/" + kManifestFile;
  const bool whole = MatchesItsHash(text);
  try {
    const Json json = Json::parse(text);
    if (const std::string wrong = WrongVersion(json); !wrong.empty()) {
      return UserError(path + ": " + wrong);
    }
    if (whole) return ParseJson(json);
  } catch (const Json::exception& error) {
    if (whole) return UserError(path + ": " + error.what());
  } catch (const std::string& error) {
    return UserError(path + ": " + error);
  }
  return UserError(path + ": the text does not match its hash; the file is damaged or was edited");
}

}  // namespace elastor
