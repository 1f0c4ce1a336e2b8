#ifndef ELASTOR_TRAINER_DATA_ENCODING_H_
#define ELASTOR_TRAINER_DATA_ENCODING_H_

#include <string>
#include <vector>

#include "core/base/json_entry.h"
#include "trainer/data/dataset.h"

namespace elastor {

// How raw values became the numbers and ids of a data set: what the rows that a model was trained
// on and the rows it is used on must have in common.
struct DataEncoding {
  std::vector<DatasetInfo::Numeric> numeric;
  std::vector<DatasetInfo::Categorical> categorical;
  std::vector<DatasetInfo::Label> labels = {};  // as DatasetInfo's
  std::string schema = {};                      // likewise; it is not compared
  int64_t classes = 0;                          // likewise
  DatasetInfo::Image image = {};                // likewise
};
DataEncoding EncodingOf(const DatasetInfo& info);

// The first thing that differs, with both values: "numeric field I1: transform NONE; TRAINED was
// trained on LOG2_STANDARDIZE". Empty when rows of `data` mean to a model what those of `trained`
// did. What a set of version 2 does not tell is not compared.
std::string EncodingDifference(const DataEncoding& data, const DataEncoding& trained,
                               const std::string& trained_name);
// Of one numeric field.
std::string ScaleDifference(const DatasetInfo::Numeric& data, const DatasetInfo::Numeric& trained,
                            const std::string& trained_name);
// Of the images' size and of how their pixels are scaled.
std::string ImageDifference(const DatasetInfo::Image& data, const DatasetInfo::Image& trained,
                            const std::string& trained_name);
// Of what the ids of one field, and so the rows of its table, stand for. Tables of IDENTITY may
// have different sizes, and a vocabulary of `data` may have grown from that of `trained`.
std::string IdDifference(const DatasetInfo::Categorical& data,
                         const DatasetInfo::Categorical& trained, const std::string& trained_name);

// Of the labels, which EncodingDifference does not compare: what a model has learned is chosen.
std::string LabelDifference(const DataEncoding& data, const DataEncoding& trained,
                            const std::string& trained_name);

// The members "numeric", "categorical", of several labels "labels" and, where it is known, "schema"
// of meta.json and of a manifest's "encoding".
void AddEncodingJson(const DataEncoding& encoding, Json* json);
// Throws a std::string as JsonEntry does.
DataEncoding ParseEncoding(const JsonEntry& json);
// A member such as "best_auc", from 0 to 1; -1: there is none. Throws likewise.
double ParseBest(const JsonEntry& json, const char* name);

}  // namespace elastor

#endif  // ELASTOR_TRAINER_DATA_ENCODING_H_
