#include "trainer/data/encoding.h"

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <set>
#include <string_view>

#include "core/base/json.h"
#include "core/base/text.h"

namespace elastor {
namespace {

constexpr int64_t kMostIds = int64_t{1} << 48;
constexpr int64_t kMostClasses = int64_t{1} << 20;
constexpr std::string_view kTransforms[] = {"none", "log2", "standardize", "log2_standardize"};

// As schemas write it.
std::string Upper(std::string text) {
  for (char& c : text) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return text;
}

std::string NumberText(double value) { return Json(value).dump(); }

// One property of a field, in data and in what a model was trained on; empty: equal.
struct Comparison {
  std::string field;  // "numeric field I1"
  std::string trained_name;

  std::string operator()(const std::string& what, const std::string& data,
                         const std::string& trained) const {
    if (data == trained) return "";
    return field + ": " + what + " " + data + "; " + trained_name + " was trained on " + trained;
  }
  // Compares a property that may be unknown (empty) on either side.
  std::string OfKnown(const std::string& what, const std::string& data,
                      const std::string& trained) const {
    return data.empty() || trained.empty() ? "" : (*this)(what, data, trained);
  }
};

std::string FirstOf(std::initializer_list<std::string> differences) {
  for (const std::string& difference : differences) {
    if (!difference.empty()) return difference;
  }
  return "";
}

std::string CategoricalName(const std::string& name) { return "categorical field " + name; }

std::string VocabularyText(const DatasetInfo::Categorical& field) {
  if (field.vocabulary.empty()) return "none";
  return StrCat(field.vocabulary, " of ", field.ids, " ids");
}

bool HasGrownFrom(const DatasetInfo::Categorical& field, const DatasetInfo::Categorical& earlier) {
  return std::ranges::any_of(field.grown_from, [&](const DatasetInfo::Vocabulary& vocabulary) {
    return vocabulary.checksum == earlier.vocabulary && vocabulary.ids == earlier.ids;
  });
}

std::string TableOf(const std::vector<DatasetInfo::Categorical>& fields, size_t i) {
  return fields[fields[i].shares < 0 ? i : fields[i].shares].name;
}

std::string CategoricalDifference(const DataEncoding& data, const DataEncoding& trained, size_t i,
                                  const std::string& trained_name) {
  const DatasetInfo::Categorical& found = data.categorical[i];
  const DatasetInfo::Categorical& expected = trained.categorical[i];
  const Comparison compare = {CategoricalName(found.name), trained_name};
  const auto bag = [](const DatasetInfo::Categorical& field) {
    return field.multi_hot ? "bags of ids" : "single ids";
  };
  const auto pooling = [](const DatasetInfo::Categorical& field) {
    return field.mean_pooling ? "MEAN" : "SUM";
  };
  return FirstOf(
      {IdDifference(found, expected, trained_name),
       compare("ids", std::to_string(found.ids), std::to_string(expected.ids)),
       compare("with", bag(found), bag(expected)),
       compare("pooling", pooling(found), pooling(expected)),
       compare.OfKnown("keeps the", found.keeps, expected.keeps),
       compare("the table of", TableOf(data.categorical, i), TableOf(trained.categorical, i))});
}

// Number and names of fields of a kind.
template <typename Field>
std::string NamesDifference(const char* kind, const std::vector<Field>& data,
                            const std::vector<Field>& trained, const std::string& trained_name) {
  for (size_t i = 0; i < std::min(data.size(), trained.size()); ++i) {
    if (data[i].name == trained[i].name) continue;
    return StrCat(kind, " field ", i + 1, ": ", data[i].name, "; ", trained_name,
                  " was trained on ", trained[i].name);
  }
  if (data.size() == trained.size()) return "";
  return StrCat(data.size(), " ", kind, " fields; ", trained_name, " was trained on ",
                trained.size());
}

DatasetInfo::Numeric ParseNumeric(const JsonEntry& json) {
  DatasetInfo::Numeric field = {json.Member("name").Text(), json.Member("transform").Text(),
                                json.Member("mean").Number(), json.Member("stddev").Number()};
  if (std::find(std::begin(kTransforms), std::end(kTransforms), field.transform) ==
      std::end(kTransforms)) {
    json.Member("transform").Wrong("none, log2, standardize or log2_standardize");
  }
  if (field.stddev <= 0) json.Member("stddev").Wrong("a number above 0");
  return field;
}

// others: what the rows have besides.
DatasetInfo::Image ParseImage(const JsonEntry& json, const DataEncoding& others) {
  DatasetInfo::Image image = {json.Member("height").Integer(1, kMostImageSide),
                              json.Member("width").Integer(1, kMostImageSide),
                              json.Member("mean").Number(), json.Member("stddev").Number()};
  if (image.stddev <= 0) json.Member("stddev").Wrong("a number above 0");
  if (!others.numeric.empty() || !others.categorical.empty()) json.Wrong("no fields beside it");
  if (others.classes == 0) json.Wrong("labels of classes beside it");
  return image;
}

// before: the fields before it.
DatasetInfo::Categorical ParseCategorical(const JsonEntry& json,
                                          const std::vector<DatasetInfo::Categorical>& before) {
  const bool keyed = json.Has("keyed") && json.Member("keyed").Bool();
  DatasetInfo::Categorical field = {json.Member("name").Text(),
                                    keyed ? 0 : json.Member("ids").Integer(1, kMostIds),
                                    json.Member("multi_hot").Bool()};
  field.keyed = keyed;
  const std::string pooling = json.Member("pooling").Text();
  if (pooling != "sum" && pooling != "mean") json.Member("pooling").Wrong("sum or mean");
  field.mean_pooling = pooling == "mean";
  field.shares =
      static_cast<int>(json.Member("shares").Integer(-1, static_cast<int64_t>(before.size()) - 1));
  if (field.shares >= 0 &&
      (before[field.shares].shares != -1 || before[field.shares].ids != field.ids ||
       before[field.shares].keyed != keyed)) {
    throw "field " + field.name + " shares no earlier field with as many ids";
  }
  if (json.Has("encoding")) field.encoding = json.Member("encoding").Text();
  if (json.Has("keeps")) field.keeps = json.Member("keeps").Text();
  if (json.Has("vocabulary_checksum")) {
    field.vocabulary = json.Member("vocabulary_checksum").HashText();
  }
  if (json.Has("grown_from")) {
    for (const JsonEntry& earlier : json.Member("grown_from").Elements()) {
      field.grown_from.push_back({earlier.Member("vocabulary_checksum").HashText(),
                                  earlier.Member("ids").Integer(1, field.ids)});
    }
  }
  return field;
}

}  // namespace

double ParseBest(const JsonEntry& json, const char* name) {
  if (!json.Has(name)) return -1;
  const double best = json.Member(name).Number();
  if (best < 0 || best > 1) json.Member(name).Wrong("a number from 0 to 1");
  return best;
}

DataEncoding EncodingOf(const DatasetInfo& info) {
  return {info.numeric, info.categorical, info.labels, info.schema, info.classes, info.image};
}

std::string ScaleDifference(const DatasetInfo::Numeric& data, const DatasetInfo::Numeric& trained,
                            const std::string& trained_name) {
  const Comparison compare = {"numeric field " + data.name, trained_name};
  return FirstOf({compare("transform", Upper(data.transform), Upper(trained.transform)),
                  compare("mean", NumberText(data.mean), NumberText(trained.mean)),
                  compare("stddev", NumberText(data.stddev), NumberText(trained.stddev))});
}

std::string ImageDifference(const DatasetInfo::Image& data, const DatasetInfo::Image& trained,
                            const std::string& trained_name) {
  const Comparison compare = {"images", trained_name};
  const auto size = [](const DatasetInfo::Image& image) {
    return image.height == 0 ? "none" : StrCat(image.height, " x ", image.width);
  };
  return FirstOf({compare("of", size(data), size(trained)),
                  compare("mean", NumberText(data.mean), NumberText(trained.mean)),
                  compare("stddev", NumberText(data.stddev), NumberText(trained.stddev))});
}

std::string IdDifference(const DatasetInfo::Categorical& data,
                         const DatasetInfo::Categorical& trained, const std::string& trained_name) {
  const Comparison compare = {CategoricalName(data.name), trained_name};
  const bool hashed = data.encoding.find("hash") != std::string::npos;
  const std::string buckets =
      hashed ? compare("buckets", std::to_string(data.ids), std::to_string(trained.ids)) : "";
  return FirstOf({compare.OfKnown("encoding", Upper(data.encoding), Upper(trained.encoding)),
                  HasGrownFrom(data, trained)
                      ? ""
                      : compare("vocabulary", VocabularyText(data), VocabularyText(trained)),
                  buckets});
}

std::string EncodingDifference(const DataEncoding& data, const DataEncoding& trained,
                               const std::string& trained_name) {
  std::string difference =
      FirstOf({NamesDifference("numeric", data.numeric, trained.numeric, trained_name),
               NamesDifference("categorical", data.categorical, trained.categorical, trained_name),
               ImageDifference(data.image, trained.image, trained_name)});
  for (size_t i = 0; difference.empty() && i < data.numeric.size(); ++i) {
    difference = ScaleDifference(data.numeric[i], trained.numeric[i], trained_name);
  }
  for (size_t i = 0; difference.empty() && i < data.categorical.size(); ++i) {
    difference = CategoricalDifference(data, trained, i, trained_name);
  }
  return difference;
}

std::string LabelDifference(const DataEncoding& data, const DataEncoding& trained,
                            const std::string& trained_name) {
  const auto names = [](const DataEncoding& encoding) {
    std::string text;
    for (const DatasetInfo::Label& label : encoding.labels) {
      text += (text.empty() ? "" : ", ") + label.name;
    }
    if (text.empty()) text = "one without a name";
    return encoding.classes == 0 ? text : StrCat(text, " of ", encoding.classes, " classes");
  };
  return Comparison{"labels", trained_name}("are", names(data), names(trained));
}

void AddEncodingJson(const DataEncoding& encoding, Json* json) {
  Json& numeric = (*json)["numeric"] = Json::array();
  for (const DatasetInfo::Numeric& field : encoding.numeric) {
    numeric.push_back({{"name", field.name},
                       {"transform", field.transform},
                       {"mean", field.mean},
                       {"stddev", field.stddev}});
  }
  Json& categorical = (*json)["categorical"] = Json::array();
  for (const DatasetInfo::Categorical& field : encoding.categorical) {
    Json& entry = categorical.emplace_back();
    entry["name"] = field.name;
    if (field.keyed) {
      entry["keyed"] = true;
    } else {
      entry["ids"] = field.ids;
    }
    entry["multi_hot"] = field.multi_hot;
    entry["pooling"] = field.mean_pooling ? "mean" : "sum";
    entry["shares"] = field.shares;
    if (!field.encoding.empty()) entry["encoding"] = field.encoding;
    if (!field.keeps.empty()) entry["keeps"] = field.keeps;
    if (!field.vocabulary.empty()) entry["vocabulary_checksum"] = field.vocabulary;
    for (const DatasetInfo::Vocabulary& earlier : field.grown_from) {
      entry["grown_from"].push_back(
          {{"vocabulary_checksum", earlier.checksum}, {"ids", earlier.ids}});
    }
  }
  for (const DatasetInfo::Label& label : encoding.labels) {
    Json& entry = (*json)["labels"].emplace_back();
    entry["name"] = label.name;
    if (label.best_auc >= 0) entry["best_auc"] = label.best_auc;
  }
  if (encoding.classes > 0) (*json)["classes"] = encoding.classes;
  if (encoding.image.height > 0) {
    (*json)["image"] = {{"height", encoding.image.height},
                        {"width", encoding.image.width},
                        {"mean", encoding.image.mean},
                        {"stddev", encoding.image.stddev}};
  }
  if (!encoding.schema.empty()) (*json)["schema"] = encoding.schema;
}

DataEncoding ParseEncoding(const JsonEntry& json) {
  DataEncoding encoding;
  std::set<std::string> names;
  const auto check_name = [&names](const JsonEntry& field) {
    const JsonEntry name = field.Member("name");
    if (!names.insert(name.Text()).second) name.Wrong("a name that no field before has");
  };
  for (const JsonEntry& field : json.Member("numeric").Elements()) {
    check_name(field);
    encoding.numeric.push_back(ParseNumeric(field));
  }
  for (const JsonEntry& field : json.Member("categorical").Elements()) {
    check_name(field);
    encoding.categorical.push_back(ParseCategorical(field, encoding.categorical));
  }
  if (json.Has("schema")) encoding.schema = json.Member("schema").Text();
  if (json.Has("classes")) encoding.classes = json.Member("classes").Integer(2, kMostClasses);
  if (json.Has("image")) encoding.image = ParseImage(json.Member("image"), encoding);
  if (!json.Has("labels")) return encoding;
  for (const JsonEntry& label : json.Member("labels").Elements()) {
    check_name(label);
    encoding.labels.push_back({label.Member("name").Text(), ParseBest(label, "best_auc")});
  }
  if (encoding.labels.size() < 2) json.Member("labels").Wrong("none, or two and more");
  return encoding;
}

}  // namespace elastor
