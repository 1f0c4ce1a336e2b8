#ifndef ELASTOR_TRAINER_DATA_ENCODING_H_
#define ELASTOR_TRAINER_DATA_ENCODING_H_

#include <string>
#include <vector>

#include "core/base/json_entry.h"
#include "trainer/data/dataset.h"

namespace elastor {

// Describes how raw values became the numbers and ids of a data set. The rows that a model is used
// on must be encoded like the rows that it was trained on.
struct DataEncoding {
  std::vector<DatasetInfo::Numeric> numeric;
  std::vector<DatasetInfo::Categorical> categorical;
  std::vector<DatasetInfo::Label> labels = {};  // as DatasetInfo's
  std::string schema = {};                      // likewise; it is not compared
  int64_t classes = 0;                          // likewise
  DatasetInfo::Image image = {};                // likewise
};
DataEncoding EncodingOf(const DatasetInfo& info);

// Returns the first difference, with both values: "numeric field I1: transform NONE; TRAINED was
// trained on LOG2_STANDARDIZE". Empty when both encode rows alike for a model. Properties that a
// set of version 2 does not record are not compared.
std::string EncodingDifference(const DataEncoding& data, const DataEncoding& trained,
                               const std::string& trained_name);
// Returns the first difference in one numeric field, like EncodingDifference.
std::string ScaleDifference(const DatasetInfo::Numeric& data, const DatasetInfo::Numeric& trained,
                            const std::string& trained_name);
// Returns the first difference in the images' size or in the scale of their pixels.
std::string ImageDifference(const DatasetInfo::Image& data, const DatasetInfo::Image& trained,
                            const std::string& trained_name);
// Returns the first difference in the meaning of one field's ids, and so of its table's rows.
// Tables of IDENTITY may have different sizes, and a vocabulary of `data` may have grown from the
// one of `trained`.
std::string IdDifference(const DatasetInfo::Categorical& data,
                         const DatasetInfo::Categorical& trained, const std::string& trained_name);

// Returns the first difference in the labels. EncodingDifference does not compare them, because the
// experiment chooses which labels a model learns.
std::string LabelDifference(const DataEncoding& data, const DataEncoding& trained,
                            const std::string& trained_name);

// Adds the members of meta.json and of a manifest's "encoding": "numeric", "categorical", "labels"
// if there are several, and "schema" if it is known.
void AddEncodingJson(const DataEncoding& encoding, Json* json);
// Parses the members that AddEncodingJson writes. Throws a std::string as JsonEntry does.
DataEncoding ParseEncoding(const JsonEntry& json);
// Returns a member such as "best_auc", from 0 to 1, or -1 if there is none. Throws a std::string as
// JsonEntry does.
double ParseBest(const JsonEntry& json, const char* name);

}  // namespace elastor

#endif  // ELASTOR_TRAINER_DATA_ENCODING_H_
