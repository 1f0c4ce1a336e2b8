#include "trainer/checkpoint/manifest.h"

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <limits>
#include <set>
#include <utility>

#include "core/base/file.h"
#include "core/base/hash_text.h"
#include "core/base/json.h"
#include "core/base/json_entry.h"
#include "core/base/log.h"
#include "core/base/mapped_file.h"
#include "core/base/numerics.h"
#include "core/base/text.h"
#include "embedding/shard_plan.h"
#include "google/protobuf/util/json_util.h"
#include "trainer/data/encoding.h"

namespace elastor {
namespace {

constexpr char kFormat[] = "elastor-checkpoint";
constexpr int kVersion = 2;           // 1: without `encoding` and `vocabularies`
constexpr int kDeltaVersion = 3;      // 2 and `base`
constexpr int kPublishedVersion = 4;  // 2 and `publication`
constexpr int kKeyedVersion = 5;      // with keyed tables; `base` and `publication` as they are
constexpr int kSmallVersion = 6;      // with small rows, keyed or not; the members as in 5
constexpr char kBaseMember[] = "base";
constexpr char kPublicationMember[] = "publication";
constexpr char kRowsMember[] = "rows";  // of a publication with small rows
constexpr int64_t kMost = std::numeric_limits<int64_t>::max();

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
  Json json = Json::parse(text);
  // Earlier builds refuse fields that they do not know. Only a run that was cut short has the first
  // two, and only one with rows that leave by time the last.
  if (!control.evaluation_pending()) json.erase("evaluation_pending");
  if (!control.spectrum_pending()) json.erase("spectrum_pending");
  if (control.event_time() == 0) json.erase("event_time");
  return json;
}

Json TableJson(const StoredTable& table) {
  Json columns = Json::object();
  for (const Column& column : table.columns) columns[column.name] = column.width;
  Json json = {{"name", table.name}, {"columns", columns}};
  if (table.keys.keyed) {
    json["keyed"] = true;
  } else {
    json["keys"] = table.keys.rows;
  }
  if (table.counts) json["counts"] = true;
  return json;
}

Json FileJson(const std::string& name, const SafetensorsFacts& facts) {
  return {{"name", name}, {"bytes", facts.bytes}, {"header_xxh3", HashText(facts.header_xxh3)}};
}

Json PieceJson(const RowPiece& piece) {
  Json json = {piece.partitions.begin, piece.partitions.end, piece.rows.size()};
  for (const uint64_t hash : piece.hashes) json.push_back(HashText(hash));
  return json;
}

// ---- Reading. These throw a std::string as JsonEntry does.

// What lies in a directory that the reader knows, never elsewhere.
std::string ParseName(const JsonEntry& json, const char* expected) {
  const std::string name = json.Member("name").Text();
  if (name.empty() || name == "." || name == ".." || name.find('/') != name.npos) {
    throw "name '" + name + "'; expected " + expected;
  }
  return name;
}

std::string ParseFileName(const JsonEntry& json) {
  return ParseName(json, "a file in the same directory");
}

SafetensorsFacts ParseFileFacts(const JsonEntry& json) {
  return {json.Member("bytes").Integer(0, kMost), json.Member("header_xxh3").Hash()};
}

// before: the table in front of it in the manifest, or null.
StoredTable ParseTable(const JsonEntry& json, const StoredTable* before) {
  StoredTable table = {json.Member("name").Text(), {}, {}};
  table.keys.keyed = json.Has("keyed") && json.Member("keyed").Bool();
  if (!table.keys.keyed) table.keys.rows = json.Member("keys").Integer(1, kMost);
  table.counts = json.Has("counts") && json.Member("counts").Bool();
  const JsonEntry columns = json.Member("columns");
  for (const auto& [name, width] : columns.Members()) {
    table.columns.push_back({name, width.Integer(1, kMost)});
  }
  if (table.holds_deletions() && before != nullptr && before->keys.keyed && table.keys.keyed &&
      table.name == before->name + kDeletedSuffix) {
    return table;
  }
  if (table.columns.empty() || !FormatOfWeights(table.columns[0])) {
    columns.Wrong("'rows', 'rows_int8' or 'rows_int4' as the first column");
  }
  return table;
}

std::vector<RowPiece> ParsePieces(const StoredTable& table, const JsonEntry& json) {
  const int64_t most = table.keys.keyed ? kMost : table.keys.rows;
  std::vector<RowPiece> pieces;
  int64_t row = 0;
  for (const JsonEntry& entry : json.Elements()) {
    const std::vector<JsonEntry> values = entry.Elements();
    const auto wrong = [&] {
      throw "table '" + table.name + "': piece " + entry.json().dump() +
          "; expected [first partition, end, rows, a hash of the keys and of every column]";
    };
    if (values.size() != 4 + table.columns.size()) wrong();
    const Range partitions = {values[0].Integer(-kMost, kMost), values[1].Integer(-kMost, kMost)};
    const int64_t rows = values[2].Integer(-kMost, kMost);
    const bool ordered = pieces.empty() || partitions.begin >= pieces.back().partitions.begin;
    if (partitions.begin < 0 || partitions.end <= partitions.begin ||
        partitions.end > kPartitions || !ordered || rows < 1 || rows > most - row) {
      wrong();
    }
    RowPiece& piece = pieces.emplace_back(RowPiece{partitions, {row, row + rows}, {}});
    for (size_t i = 3; i < values.size(); ++i) piece.hashes.push_back(values[i].Hash());
    row += rows;
  }
  return pieces;
}

EmbeddingFile ParseEmbeddingFile(std::span<const StoredTable> tables, const JsonEntry& json) {
  EmbeddingFile file = {ParseFileName(json), ParseFileFacts(json), {}};
  const JsonEntry pieces = json.Member("pieces");
  size_t found = 0;
  for (const StoredTable& table : tables) {
    const bool has = pieces.Has(table.name);
    found += has ? 1 : 0;
    file.pieces.push_back(has ? ParsePieces(table, pieces.Member(table.name))
                              : std::vector<RowPiece>());
  }
  if (found != pieces.Members().size()) {
    throw file.name + ": pieces of a table that is not in 'tables'";
  }
  return file;
}

Publication ParsePublication(const JsonEntry& json) {
  Publication publication;
  publication.number = json.Member("number").Integer(1, kMost);
  publication.delta = json.Member("delta").Bool();
  publication.run = HashText(json.Member("run").Hash());
  publication.origin = HashText(json.Member("origin").Hash());
  publication.follows = json.Member("follows").Text();
  publication.result = HashText(json.Member("result").Hash());
  if (!json.Has(kRowsMember)) return publication;
  const JsonEntry rows = json.Member(kRowsMember);
  const auto found = std::ranges::find(kRowFormats, rows.Text(), RowFormatName);
  if (found == std::end(kRowFormats)) rows.Wrong("FLOAT32, INT8 or INT4");
  publication.rows = *found;
  return publication;
}

ControlRecord ParseControl(const JsonEntry& json) {
  ControlRecord control;
  if (!google::protobuf::util::JsonStringToMessage(json.json().dump(), &control).ok()) {
    json.Wrong("the fields of a control record");
  }
  return control;
}

CheckpointMetadata ParseMetadata(const JsonEntry& json) {
  const std::string contents = json.Member("contents").Text();
  if (contents != "state" && contents != "weights") {
    throw "contents '" + contents + "'; expected 'state' or 'weights'";
  }
  CheckpointMetadata metadata = {contents == "state" ? Contents::kState : Contents::kWeights,
                                 ParseControl(json.Member("control")),
                                 json.Member("state_digest").Text(),
                                 json.Has("build") ? json.Member("build").Text() : "",
                                 WithoutCompiler(json.Member("numerics").Text()),
                                 json.Member("model_hash").Text(),
                                 json.Member("numeric_hash").Text(),
                                 json.Member("experiment").Text(),
                                 json.Member("data").Text(),
                                 {}};
  if (json.json().at("version") != 1) {
    metadata.encoding = ParseEncoding(json.Member("encoding"));
    metadata.has_vocabularies = json.Member("vocabularies").Bool();
  }
  metadata.manifest_xxh3 = json.Member("manifest_xxh3").Text();
  const Json& version = json.json().at("version");
  const auto has = [&](int of, const char* member) {
    return version == of ||
           ((version == kKeyedVersion || version == kSmallVersion) && json.Has(member));
  };
  if (has(kPublishedVersion, kPublicationMember)) {
    if (metadata.contents != Contents::kWeights) throw std::string("a published state");
    metadata.publication = ParsePublication(json.Member(kPublicationMember));
  }
  if (!has(kDeltaVersion, kBaseMember)) return metadata;
  if (metadata.contents != Contents::kState) throw std::string("a delta of weights");
  const JsonEntry base = json.Member(kBaseMember);
  metadata.base = {ParseName(base, "a folder beside this one"),
                   HashText(base.Member("manifest_xxh3").Hash())};
  return metadata;
}

Manifest ParseMembers(const JsonEntry& json) {
  Manifest manifest;
  manifest.metadata = ParseMetadata(json);
  for (const JsonEntry& table : json.Member("tables").Elements()) {
    const StoredTable* const before = manifest.tables.empty() ? nullptr : &manifest.tables.back();
    manifest.tables.push_back(ParseTable(table, before));
  }
  for (const StoredTable& table : manifest.tables_of_rows()) {
    if (*FormatOfWeights(table.columns[0]) == RowFormatOf(manifest.metadata)) continue;
    throw "table '" + table.name + "': column '" + table.columns[0].name + "'; expected " +
        std::string(RowFormatName(RowFormatOf(manifest.metadata))) + " rows, by its publication";
  }
  const JsonEntry dense = json.Member("dense");
  if (const std::string name = ParseFileName(dense); name != kDenseFile) {
    throw "name '" + name + "'; expected '" + kDenseFile + "'";
  }
  manifest.dense.facts = ParseFileFacts(dense);
  for (const auto& [name, hash] : dense.Member("tensors").Members()) {
    manifest.dense.tensors[name] = hash.Hash();
  }
  std::set<std::string> names;
  for (const JsonEntry& file : json.Member("embedding").Elements()) {
    manifest.embedding.push_back(ParseEmbeddingFile(manifest.tables, file));
    const std::string& name = manifest.embedding.back().name;
    if (!names.insert(name).second) throw "names " + name + " twice";
  }
  return manifest;
}

void CheckVersion(const JsonEntry& json) {
  if (!json.Has("format") || json.json().at("format") != kFormat) {
    throw std::string("not the manifest of a checkpoint or a model");
  }
  const Json& version = json.Member("version").json();
  if (version == 1 || version == kVersion || version == kDeltaVersion ||
      version == kPublishedVersion || version == kKeyedVersion || version == kSmallVersion) {
    return;
  }
  throw "version " + version.dump() + "; expected 1 to 6";
}

}  // namespace

std::vector<StoredTable> Manifest::tables_of_rows() const {
  std::vector<StoredTable> rows;
  std::ranges::copy_if(tables, std::back_inserter(rows),
                       [](const StoredTable& table) { return !table.holds_deletions(); });
  return rows;
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
  const std::string name = table + "/" + column.name;
  if (FormatOfWeights(column).value_or(RowFormat::kFloat32) == RowFormat::kFloat32) {
    return {name, TensorType::kF32, {rows, column.width}};
  }
  return {name, TensorType::kU8, {rows, column.width * static_cast<int64_t>(sizeof(float))}};
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
  Json encoding = Json::object();
  AddEncodingJson(metadata.encoding.value_or(DataEncoding()), &encoding);
  const bool keyed = std::ranges::any_of(manifest.tables,
                                         [](const StoredTable& table) { return table.keys.keyed; });
  const bool small = RowFormatOf(metadata) != RowFormat::kFloat32;
  const int version = small   ? kSmallVersion
                      : keyed ? kKeyedVersion
                              : (metadata.publication ? kPublishedVersion
                                                      : (metadata.base ? kDeltaVersion : kVersion));
  Json head = {{"format", kFormat}, {"version", version}};
  if (const std::optional<Publication>& publication = metadata.publication) {
    head[kPublicationMember] = {{"number", publication->number},   {"delta", publication->delta},
                                {"run", publication->run},         {"origin", publication->origin},
                                {"follows", publication->follows}, {"result", publication->result}};
    if (small) head[kPublicationMember][kRowsMember] = RowFormatName(publication->rows);
  }
  if (metadata.base) {
    head[kBaseMember] = {{"name", metadata.base->name},
                         {"manifest_xxh3", metadata.base->manifest_xxh3}};
  }
  head.update({{"contents", ContentsName(metadata.contents)},
               {"control", ControlJson(metadata.control)},
               {"state_digest", metadata.state_digest},
               {"build", metadata.build},
               {"numerics", metadata.numerics},
               {"model_hash", metadata.model_hash},
               {"numeric_hash", metadata.numeric_hash},
               {"experiment", metadata.experiment},
               {"data", metadata.data},
               {"encoding", encoding},
               {"vocabularies", metadata.has_vocabularies},
               {"tables", tables},
               {"dense", dense}});
  // A line an entry and a line a file.
  std::string text = "{\n";
  for (const auto& [key, value] : head.items())
    text += "  \"" + key + "\": " + value.dump() + ",\n";
  text += "  \"embedding\": [";
  for (size_t i = 0; i < embedding.size(); ++i)
    text += (i > 0 ? ",\n    " : "\n    ") + embedding[i];
  return SealJson(text + "\n  ],\n  \"manifest_xxh3\": \"");
}

// ManifestText writes a line an entry; the first three are the brace, the format and the version.
std::optional<std::string> PeekBase(const std::string& directory) {
  const StatusOr<MappedFile> file =
      MappedFile::Open(directory + "/" + kManifestFile, MappedFile::Links::kRefuse);
  if (!file.ok()) return std::nullopt;
  std::string_view lines(file->data(), file->bytes());
  const std::string opening = StrCat("  \"", kBaseMember, "\": ");
  constexpr int kLines = 4;
  for (int i = 0; i < kLines; ++i) {
    if (lines.empty()) return std::nullopt;
    const std::string_view line = lines.substr(0, lines.find('\n'));
    lines.remove_prefix(std::min(line.size() + 1, lines.size()));
    if (!line.starts_with(opening)) continue;
    const Json base = Json::parse(line.substr(opening.size(), line.rfind(',') - opening.size()));
    if (!base.is_object() || !base.contains("name") || !base["name"].is_string()) {
      return std::nullopt;
    }
    return base["name"].get<std::string>();
  }
  return "";
}

std::string FolderBeside(const std::string& directory, const std::string& name) {
  std::error_code ignored;
  std::filesystem::path folder = directory;
  if (!folder.has_filename()) folder = folder.parent_path();  // "link/"
  if (std::filesystem::is_symlink(folder, ignored)) {
    folder = std::filesystem::canonical(folder, ignored);
  }
  return (folder / ".." / name).lexically_normal();
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
  try {
    const Json json = ParseJson(text);
    CheckVersion(JsonEntry(json));
    if (IsSealed(text)) return ParseMembers(JsonEntry(json));
  } catch (const std::string& mistake) {
    return UserError(path + ": " + mistake);
  }
  return UserError(path + ": the text does not match its hash; the file is damaged or was edited");
}

}  // namespace elastor
