#ifndef ELASTOR_TRAINER_SCORE_ROW_ENCODER_H_
#define ELASTOR_TRAINER_SCORE_ROW_ENCODER_H_

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "configs/proto/schema.pb.h"
#include "core/base/status.h"
#include "trainer/data/encoding.h"
#include "trainer/data/vocabulary.h"
#include "trainer/prepare/plan.h"
#include "trainer/prepare/rows/parsed_chunk.h"
#include "trainer/prepare/rows/row_builder.h"

namespace elastor {

// Turns raw values into what a model was trained on, by what its folder tells: the schema, the
// means and deviations, and the vocabularies. Rows get the bits that `prepare --vocabulary_from` of
// the training set would give them. Thread-safe.
class RowEncoder {
 public:
  // folder: of the model; its vocabularies are read and verified. User error in one line when the
  // folder does not tell how raw rows are encoded.
  static StatusOr<std::unique_ptr<RowEncoder>> Open(const DataEncoding& encoding,
                                                    const std::string& folder);

  const Schema& schema() const { return schema_; }
  // The fields that the model reads, in the order of the schema.
  std::span<const FieldPlan> features() const { return features_; }

  // The schema for rows whose text begins with `first_line` (of LIBSVM and with a header, the
  // header): fields that only training needs may be missing there. With a header they are found by
  // name; without one, the columns of LABEL fields may be left out, or those of LABEL, WEIGHT,
  // GROUP and TIME fields. A model of several labels has all of them or none.
  Schema SchemaOf(std::string_view first_line) const;

  // Appends the rows of a chunk that was parsed by SchemaOf, with labels that are not-a-number
  // where they are missing.
  void Encode(const ParsedChunk& chunk, Rows* rows) const;
  // Appends a row by its values as text, by feature. User error naming the field; then nothing is
  // appended.
  Status EncodeValues(std::span<const std::string_view> values, Rows* rows) const;

 private:
  RowEncoder(Schema schema, DataEncoding encoding);
  int64_t IdOf(size_t column, uint64_t parsed, const ParsedChunk& chunk) const;

  const Schema schema_;
  const DataEncoding encoding_;
  const PreparePlan plan_;
  std::vector<FieldPlan> features_;
  std::vector<Vocabulary> vocabularies_;  // by column of plan_.ids; empty where there is none
};

}  // namespace elastor

#endif  // ELASTOR_TRAINER_SCORE_ROW_ENCODER_H_
