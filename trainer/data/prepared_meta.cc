#include "trainer/data/prepared_meta.h"

#include <filesystem>
#include <utility>

#include "core/base/file.h"
#include "core/base/json.h"
#include "core/base/json_entry.h"
#include "core/base/text.h"
#include "trainer/data/encoding.h"

namespace elastor {
namespace {

constexpr int kOldestVersion = 2;
constexpr int64_t kMostRowsPerBlock = int64_t{1} << 31;
constexpr int64_t kMostRows = int64_t{1} << 48;
constexpr int64_t kMostBytes = int64_t{1} << 60;
constexpr char kHashMember[] = "meta_xxh3";

int64_t ReadVersion(const JsonEntry& json) {
  if (!json.Has("format") || json.json().at("format") != kPreparedFormat) {
    throw std::string("not the meta file of a prepared data set");
  }
  const Json& version = json.Member("version").json();
  for (int known = kOldestVersion; known <= kKeyedVersion; ++known) {
    if (version == known) return known;
  }
  throw StrCat("version ", version.dump(), ", expected ", kOldestVersion, " to ", kKeyedVersion,
               "; prepare the data again");
}

PreparedMeta::SplitFile ReadSplit(const JsonEntry& json, int64_t version, int64_t* rows) {
  *rows = json.Member("rows").Integer(0, kMostRows);
  const JsonEntry checksum = json.Member("index_checksum");
  PreparedMeta::SplitFile split = {json.Member("bytes").Integer(0, kMostBytes), 0};
  if (version > 2) {
    split.index_checksum = checksum.Hash();
  } else if (checksum.json().is_number_unsigned()) {
    split.index_checksum = checksum.json().get<uint64_t>();
  } else {
    checksum.Wrong("an integer");
  }
  return split;
}

// Names of files in the set, never elsewhere.
std::map<std::string, FileFacts> ReadFiles(const JsonEntry& json) {
  std::map<std::string, FileFacts> files;
  for (const auto& [name, facts] : json.Members()) {
    const std::filesystem::path path(name);
    if (name.empty() || path.is_absolute() || path.lexically_normal() != path ||
        *path.begin() == "..") {
      throw "files: found '" + name + "'; expected the path of a file in the set";
    }
    files[name] = {facts.Member("bytes").Integer(0, kMostBytes), facts.Member("xxh3").HashText()};
  }
  return files;
}

// The widths of ids follow from the fields.
void CheckIdBytes(const JsonEntry& json, int64_t version, const DatasetInfo& info) {
  if (info.has_keys() != (version >= kKeyedVersion)) {
    json.Member("version").Wrong(
        StrCat(info.has_keys() ? kKeyedVersion : kPreparedVersion, ", by its fields"));
  }
  const IdWidths widths(info);
  const auto check = [](const JsonEntry& entry, int64_t bytes) {
    if (entry.Integer(4, 8) != bytes) entry.Wrong(StrCat(bytes, ", by the ids of the fields"));
  };
  if (!info.has_keys()) return check(json.Member("id_bytes"), IdBytes(info));
  const std::vector<JsonEntry> fields = json.Member("categorical").Elements();
  for (size_t i = 0; i < fields.size(); ++i) {
    check(fields[i].Member("id_bytes"), widths.wide(info.categorical[i]) ? 8 : 4);
  }
}

PreparedMeta ReadMembers(const JsonEntry& json, int64_t version) {
  PreparedMeta meta;
  meta.version = static_cast<int>(version);
  DatasetInfo& info = meta.info;
  info.name = json.Member("name").Text();
  info.rows_per_block = json.Member("rows_per_block").Integer(1, kMostRowsPerBlock);
  info.best_auc = ParseBest(json, "best_auc");
  info.best_gauc = ParseBest(json, "best_gauc");
  info.has_weights = json.Member("weights").Bool();
  info.has_groups = json.Member("groups").Bool();
  info.has_times = json.Member("times").Bool();
  DataEncoding encoding = ParseEncoding(json);
  info.numeric = std::move(encoding.numeric);
  info.categorical = std::move(encoding.categorical);
  info.labels = std::move(encoding.labels);
  info.schema = std::move(encoding.schema);
  info.classes = encoding.classes;
  info.image = encoding.image;
  CheckIdBytes(json, version, info);
  for (int split = 0; split < 3; ++split) {
    meta.splits[split] =
        ReadSplit(json.Member("splits").Member(SplitName(static_cast<Split>(split))), version,
                  &info.rows[split]);
  }
  if (version > 2) meta.files = ReadFiles(json.Member("files"));
  return meta;
}

// The hash of what version 2 says of the same contents, its members in order of name, without white
// space; keyed fields, which version 2 lacks, stand there as they are. meta.json holds the
// checksums of the indexes, and these the checksums of the blocks: so it stands for every row.
std::string FingerprintOf(const std::string& text, const PreparedMeta& meta) {
  Json contents = Json::parse(text);
  contents["version"] = meta.version < kKeyedVersion ? kOldestVersion : meta.version;
  contents.erase("files");
  contents.erase("schema");
  contents.erase(kHashMember);
  for (int split = 0; split < 3; ++split) {
    contents["splits"][SplitName(static_cast<Split>(split))]["index_checksum"] =
        meta.splits[split].index_checksum;
  }
  for (Json& field : contents["categorical"]) {
    if (field.contains("keyed")) continue;
    field.erase("encoding");
    field.erase("keeps");
  }
  return HashTextOf(contents.Sorted().dump());
}

}  // namespace

std::string PreparedMetaText(const PreparedMeta& meta) {
  const DatasetInfo& info = meta.info;
  Json json;
  json["format"] = kPreparedFormat;
  json["version"] = info.has_keys() ? kKeyedVersion : kPreparedVersion;
  json["name"] = info.name;
  json["rows_per_block"] = info.rows_per_block;
  if (!info.has_keys()) json["id_bytes"] = IdBytes(info);
  if (info.best_auc >= 0) json["best_auc"] = info.best_auc;
  if (info.best_gauc >= 0) json["best_gauc"] = info.best_gauc;
  for (int split = 0; split < 3; ++split) {
    json["splits"][SplitName(static_cast<Split>(split))] = {
        {"rows", info.rows[split]},
        {"bytes", meta.splits[split].bytes},
        {"index_checksum", HashText(meta.splits[split].index_checksum)}};
  }
  json["weights"] = info.has_weights;
  json["groups"] = info.has_groups;
  json["times"] = info.has_times;
  AddEncodingJson(EncodingOf(info), &json);
  const IdWidths widths(info);
  for (size_t i = 0; info.has_keys() && i < info.categorical.size(); ++i) {
    json["categorical"][i]["id_bytes"] = widths.wide(info.categorical[i]) ? 8 : 4;
  }
  json["files"] = Json::object();
  for (const auto& [name, facts] : meta.files) {
    json["files"][name] = {{"bytes", facts.bytes}, {"xxh3", facts.xxh3}};
  }
  std::string text = json.dump(1);
  text.resize(text.rfind("\n}"));
  return SealJson(text + ",\n \"" + kHashMember + "\": \"");
}

StatusOr<PreparedMeta> ReadPreparedMeta(const std::string& path) {
  const std::string file = path + "/" + kMetaFile;
  ELASTOR_ASSIGN_OR_RETURN(const bool there, IsThere(file));
  if (!there) {
    return UserError(path + ": not a prepared data set (no " + kMetaFile +
                     "); make one with `prepare`");
  }
  ELASTOR_ASSIGN_OR_RETURN(const std::string text, ReadFile(file));
  try {
    const Json json = ParseJson(text);
    const int64_t version = ReadVersion(JsonEntry(json));
    const bool has_hash = json.contains(kHashMember);
    if (version > 2 ? !IsSealed(text) : has_hash) {
      return UserError(file +
                       ": the text does not match its hash; the file is damaged or was edited");
    }
    PreparedMeta meta = ReadMembers(JsonEntry(json), version);
    meta.fingerprint = FingerprintOf(text, meta);
    return meta;
  } catch (const std::string& mistake) {
    return UserError(file + ": " + mistake);
  }
}

}  // namespace elastor
