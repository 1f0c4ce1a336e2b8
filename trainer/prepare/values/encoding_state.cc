#include "trainer/prepare/values/encoding_state.h"

#include <xxhash.h>

#include <algorithm>
#include <limits>
#include <memory>

#include "core/base/file.h"
#include "core/base/hash_text.h"
#include "core/base/json.h"
#include "core/base/json_entry.h"
#include "core/base/text.h"
#include "trainer/data/block_format.h"

namespace elastor {
namespace {

std::string TransformName(const Field& field) {
  switch (field.transform()) {
    case Field::LOG2_STANDARDIZE:
      return "log2_standardize";
    case Field::STANDARDIZE:
      return "standardize";
    case Field::LOG2:
      return "log2";
    default:
      return "none";
  }
}

// Fills `state` from the meta file of a prepared set; returns what does not fit, or nothing.
std::string TakeMeta(const Json& meta, const PreparePlan& plan, EncodingState* state) {
  const DatasetInfo info = plan.Info();
  const Json& numeric = meta.at("numeric");
  if (numeric.size() != plan.numeric.size()) {
    return StrCat("has ", numeric.size(), " numeric fields, the schema ", plan.numeric.size());
  }
  for (size_t i = 0; i < plan.numeric.size(); ++i) {
    const std::string wanted =
        plan.numeric[i]->name() + " (" + TransformName(*plan.numeric[i]) + ")";
    const std::string found = numeric[i].at("name").get<std::string>() + " (" +
                              numeric[i].at("transform").get<std::string>() + ")";
    if (found != wanted) return "has the numeric field " + found + ", the schema " + wanted;
    state->scales.push_back({numeric[i].at("transform").get<std::string>(),
                             numeric[i].at("mean").get<double>(),
                             numeric[i].at("stddev").get<double>()});
  }
  const Json& categorical = meta.at("categorical");
  if (categorical.size() != plan.ids.size()) {
    return StrCat("has ", categorical.size(), " categorical fields, the schema ", plan.ids.size());
  }
  for (size_t i = 0; i < plan.ids.size(); ++i) {
    const PreparePlan::IdColumn& column = plan.ids[i];
    const std::string& name = column.field->name();
    const Json& found = categorical[i];
    if (found.at("name") != name) {
      return "has the field " + found.at("name").get<std::string>() + ", the schema " + name;
    }
    const bool owns = column.table == static_cast<int>(i);
    if (found.at("shares") != (owns ? -1 : column.table)) {
      return "shares the table of field " + name + " otherwise";
    }
    const std::string encoding = found.value("encoding", "").get<std::string>();
    const bool keyed = found.value("keyed", false).get<bool>();
    if (keyed != column.keyed || (keyed && encoding != info.categorical[i].encoding)) {
      return StrCat("encodes field ", name, " as ", encoding, ", the schema as ",
                    info.categorical[i].encoding);
    }
    const std::string checksum = found.value("vocabulary_checksum", "").get<std::string>();
    if (owns && column.text == checksum.empty()) {
      return StrCat("has ", column.text ? "no" : "a", " vocabulary of field ", name);
    }
    const int64_t rows = keyed ? 0 : found.at("ids").get<int64_t>();
    const int64_t buckets = plan.ids[column.table].field->buckets();
    if (!column.text && rows != buckets) {
      return StrCat("has ", rows, " ids in field ", name, ", the schema ", buckets);
    }
    state->table_rows.push_back(rows);
    state->vocabularies.push_back(checksum);
  }
  return "";
}

}  // namespace

std::string StateJson(const EncodingState& state) {
  Json json;
  json["scales"] = Json::array();
  for (const NumericScale& scale : state.scales) {
    json["scales"].push_back({scale.transform, scale.mean, scale.stddev});
  }
  json["table_rows"] = state.table_rows;
  json["vocabularies"] = state.vocabularies;
  json["unknown_shares"] = Json::array();
  for (const auto& [name, share] : state.unknown_shares) {
    json["unknown_shares"].push_back({name, share});
  }
  json["ids_checksum"] = state.ids_checksum;
  json["statistics_checksum"] = state.statistics_checksum;
  json["checksum"] = "";
  const std::string text = json.dump(1);
  return SealJson(text.substr(0, text.rfind('"')));
}

StatusOr<EncodingState> ReadState(const std::string& path) {
  ELASTOR_ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  const Status damaged = MachineError(path + ": damaged; begin anew with --restart");
  if (!IsSealed(text)) return damaged;
  try {
    const Json json = ParseJson(text);
    const JsonEntry entry(json);
    EncodingState state;
    for (const JsonEntry& scale : entry.Member("scales").Elements()) {
      const std::vector<JsonEntry> parts = scale.Elements();
      if (parts.size() != 3) scale.Wrong("three parts");
      state.scales.push_back({parts[0].Text(), parts[1].Number(), parts[2].Number()});
    }
    for (const JsonEntry& rows : entry.Member("table_rows").Elements()) {
      state.table_rows.push_back(rows.Integer(0, std::numeric_limits<int64_t>::max()));
    }
    for (const JsonEntry& checksum : entry.Member("vocabularies").Elements()) {
      state.vocabularies.push_back(checksum.Text());
    }
    for (const JsonEntry& share : entry.Member("unknown_shares").Elements()) {
      const std::vector<JsonEntry> parts = share.Elements();
      if (parts.size() != 2) share.Wrong("two parts");
      state.unknown_shares.emplace_back(parts[0].Text(), parts[1].Number());
    }
    state.ids_checksum = entry.Member("ids_checksum").Text();
    state.statistics_checksum = entry.Member("statistics_checksum").Text();
    return state;
  } catch (const std::string&) {
    return damaged;
  }
}

Status CheckFile(const std::string& path, const std::string& checksum) {
  const std::unique_ptr<XXH3_state_t, decltype(&XXH3_freeState)> hash(XXH3_createState(),
                                                                      &XXH3_freeState);
  XXH3_64bits_reset(hash.get());
  constexpr size_t kPieceBytes = 1 << 20;
  const Status read = ReadFileInPieces(path, kPieceBytes, [&](std::string_view piece) {
    XXH3_64bits_update(hash.get(), piece.data(), piece.size());
  });
  if (read.code() == StatusCode::kMachine) return read;
  if (read.ok() && HashText(XXH3_64bits_digest(hash.get())) == checksum) return OkStatus();
  return MachineError(path + ": damaged; begin anew with --restart");
}

std::vector<NumericScale> ScalesOf(const PreparePlan& plan, const Measures& measures) {
  std::vector<NumericScale> scales;
  for (size_t i = 0; i < plan.numeric.size(); ++i) {
    const Field& field = *plan.numeric[i];
    const NumericTally& tally = measures.splits[0].numeric[i];
    NumericScale scale = {TransformName(field), 0, 1};
    if (field.transform() == Field::STANDARDIZE || field.transform() == Field::LOG2_STANDARDIZE) {
      scale.mean = tally.Mean();
      scale.stddev = tally.Stddev();
    }
    scales.push_back(scale);
  }
  return scales;
}

std::vector<std::pair<std::string, double>> UnknownShares(const PreparePlan& plan,
                                                          const RankedValues& ranked) {
  std::vector<std::pair<std::string, double>> shares;
  for (size_t i = 0; i < plan.ids.size(); ++i) {
    if (!plan.ids[i].text) continue;
    const ValueTally& tally = ranked.tallies[i];
    int64_t unknown = 0, values = 0;
    for (int split = 0; split < 3; ++split) {
      unknown += tally.unknown[split];
      values += tally.values[split] - tally.missing[split];
    }
    shares.push_back(
        {plan.ids[i].field->name(),
         values == 0 ? 0 : static_cast<double>(unknown) / static_cast<double>(values)});
  }
  return shares;
}

StatusOr<EncodingState> ReadGivenEncoding(const std::string& path, const PreparePlan& plan) {
  ELASTOR_ASSIGN_OR_RETURN(const std::unique_ptr<Dataset> given, Dataset::Open(path));
  const std::string file = path + "/" + kMetaFile;
  ELASTOR_ASSIGN_OR_RETURN(const std::string text, ReadFile(file));
  try {
    EncodingState state;
    const std::string difference = TakeMeta(Json::parse(text), plan, &state);
    if (!difference.empty()) return UserError("--vocabulary_from=" + path + " " + difference);
    for (const DatasetInfo::Categorical& field : given->info().categorical) {
      state.grown_from.push_back(field.grown_from);
    }
    return state;
  } catch (const JsonError&) {
    return UserError(file + ": a part of `numeric` or `categorical` is missing or damaged; " +
                     "expected what prepare has written");
  }
}

StatusOr<std::vector<GivenVocabulary>> ReadGivenVocabularies(const PrepareOptions& options,
                                                             const PreparePlan& plan,
                                                             const EncodingState& state,
                                                             WorkFile* values) {
  std::vector<GivenVocabulary> given(plan.ids.size());
  for (size_t i = 0; i < plan.ids.size(); ++i) {
    if (!plan.ids[i].text || plan.ids[i].table != static_cast<int>(i)) continue;
    const std::string path =
        options.vocabulary_from + "/vocabulary/" + VocabularyFileName(plan.ids[i].field->name());
    ELASTOR_ASSIGN_OR_RETURN(given[i],
                             ReadVocabularyFile(path, {state.table_rows[i], state.vocabularies[i]},
                                                options.memory_bytes / 2, values));
  }
  return given;
}

}  // namespace elastor
