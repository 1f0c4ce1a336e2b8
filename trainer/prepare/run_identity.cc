#include "trainer/prepare/run_identity.h"

#include <fcntl.h>
#include <google/protobuf/text_format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <vector>

#include "core/base/file.h"
#include "core/base/hash_text.h"
#include "core/base/json.h"
#include "core/base/text.h"
#include "trainer/data/block_format.h"
#include "trainer/data/text_source.h"

namespace elastor {
namespace {

// Raised when working files of an unfinished run mean something else than before.
constexpr int kWorkVersion = 3;

StatusOr<Json> FileIdentity(const std::string& path, const char* split) {
  ELASTOR_RETURN_IF_ERROR(CheckInputFile(path));
  ELASTOR_ASSIGN_OR_RETURN(const int file, OpenFile(path, O_RDONLY));
  struct stat facts = {};
  std::string head(64 << 10, '\0');
  ssize_t got = -1;
  if (fstat(file, &facts) == 0) got = pread(file, head.data(), head.size(), 0);
  const Status failed = SystemError(path, "read");
  close(file);
  if (got < 0) return failed;
  const int64_t modified_ns = int64_t{facts.st_mtim.tv_sec} * 1'000'000'000 + facts.st_mtim.tv_nsec;
  return Json{{"path", path},
              {"split", split},
              {"bytes", facts.st_size},
              {"modified_ns", modified_ns},
              {"head", HashTextOf({head.data(), static_cast<size_t>(got)})}};
}

}  // namespace

StatusOr<std::string> RunIdentity(const PrepareOptions& options) {
  Json identity;
  identity["version"] = kWorkVersion;
  std::string schema;
  Schema of_rows = options.schema;
  for (Lookup& lookup : *of_rows.mutable_lookup()) lookup.clear_xxh3();  // among the inputs
  google::protobuf::TextFormat::PrintToString(of_rows, &schema);
  identity["schema"] = schema;
  identity["inputs"] = Json::array();
  for (const auto& [paths, split] :
       {std::pair(&options.inputs, "train"), std::pair(&options.validation_inputs, "validation"),
        std::pair(&options.test_inputs, "test")}) {
    for (const std::string& path : *paths) {
      ELASTOR_ASSIGN_OR_RETURN(const Json file, FileIdentity(path, split));
      identity["inputs"].push_back(file);
    }
  }
  for (const Lookup& lookup : options.schema.lookup()) {
    ELASTOR_ASSIGN_OR_RETURN(Json file, FileIdentity(lookup.file(), "lookup"));
    file["head"] = lookup.xxh3();
    identity["inputs"].push_back(file);
  }
  identity["vocabulary_from"] = nullptr;
  if (!options.vocabulary_from.empty()) {
    ELASTOR_ASSIGN_OR_RETURN(
        const Json file,
        FileIdentity(options.vocabulary_from + "/" + kMetaFile, "vocabulary_from"));
    identity["vocabulary_from"] = file;
  }
  if (options.grow) identity["grow"] = true;
  if (options.unlabelled_test) identity["unlabelled_test"] = true;
  // A path need not be UTF-8.
  return identity.Sorted().dump(1) + "\n";
}

std::string IdentityDifference(const std::string& begun, const std::string& now) {
  const Json a = Json::parse(begun);
  const Json b = Json::parse(now);
  if (a == b) return "";
  // What may stand in `a` is anything.
  const auto part = [](const Json& of, const char* key) {
    return of.is_object() ? of.value(key, Json()) : Json();
  };
  if (part(a, "version") != b.at("version")) return "another version of prepare's working files";
  if (part(a, "schema") != b.at("schema")) return "another schema";
  if (part(a, "vocabulary_from") != b.at("vocabulary_from")) return "another --vocabulary_from";
  if (part(a, "grow") != part(b, "grow")) return "another --grow";
  const Json before = part(a, "inputs");
  const Json& inputs = b.at("inputs");
  if (before.size() != inputs.size()) {
    return StrCat(before.size(), " inputs, now ", inputs.size());
  }
  for (size_t i = 0; i < inputs.size(); ++i) {
    const std::string path = inputs[i].at("path").get<std::string>();
    for (const char* key : {"path", "split", "bytes", "modified_ns", "head"}) {
      if (before.is_array() && part(before[i], key) == inputs[i].at(key)) continue;
      const bool is_changed = std::strcmp(key, "path") != 0 && std::strcmp(key, "split") != 0;
      return is_changed ? "an input that has changed since, " + path
                        : "other inputs (" + path + ")";
    }
  }
  return "other options";
}

}  // namespace elastor
