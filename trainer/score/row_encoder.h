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

// Encodes raw values as the training data was encoded, by the schema, the means and deviations, and
// the vocabularies in a model's folder. Rows get the bits that `prepare --vocabulary_from` of the
// training set would give them. Thread-safe.
class RowEncoder {
 public:
  // `folder` is the model's; its vocabularies are read and verified. User error in one line when
  // the folder does not tell how raw rows are encoded.
  static StatusOr<std::unique_ptr<RowEncoder>> Open(const DataEncoding& encoding,
                                                    const std::string& folder);

  // Of the model's raw rows, which bring histories as lists in columns of their own.
  const Schema& schema() const { return schema_; }
  // The fields that the model reads, in the order of the schema.
  std::span<const FieldPlan> features() const { return features_; }

  // Returns the schema for rows whose text begins with `first_line`, which is the header if the
  // schema has one. For LIBSVM and LIBFFM it is the model's own schema. Fields that only training
  // needs may be missing from the rows. With a header, fields are found by name. Without one, the
  // columns of LABEL fields may be left out, or those of LABEL, WEIGHT, GROUP and TIME fields. With
  // several labels, rows have all of them or none.
  Schema SchemaOf(std::string_view first_line) const;
  // The same for rows of Parquet and Arrow files with these columns (table_columns.h).
  Schema SchemaOfTable(std::string_view header) const;

  // Appends the rows of a chunk that was parsed by SchemaOf. A missing label becomes not-a-number.
  void Encode(const ParsedChunk& chunk, Rows* rows) const;
  // Appends one row from its values as texts, one per feature. User error naming the field; then
  // nothing is appended.
  Status EncodeValues(std::span<const std::string_view> values, Rows* rows) const;

 private:
  RowEncoder(Schema schema, DataEncoding encoding);
  int64_t IdOf(size_t column, uint64_t parsed, const ParsedChunk& chunk) const;

  const Schema schema_;
  const DataEncoding encoding_;
  const PreparePlan plan_;
  std::vector<FieldPlan> features_;
  std::vector<Vocabulary> vocabularies_;  // by column of plan_.ids; empty without a vocabulary
};

}  // namespace elastor

#endif  // ELASTOR_TRAINER_SCORE_ROW_ENCODER_H_
