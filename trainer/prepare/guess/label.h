#ifndef ELASTOR_TRAINER_PREPARE_GUESS_LABEL_H_
#define ELASTOR_TRAINER_PREPARE_GUESS_LABEL_H_

#include <cstddef>
#include <string>
#include <vector>

#include "configs/proto/schema.pb.h"
#include "core/base/status.h"
#include "trainer/prepare/guess/columns.h"
#include "trainer/prepare/guess/text_sample.h"

namespace elastor {

// Returns how likely a column is the label; 0: it cannot be. `named`: a header names the columns.
int LabelScore(const SampleColumn& column, bool named);

// Returns the places of the columns that can be the label, the best first. User error naming `path`
// when there are none or no rows.
StatusOr<std::vector<size_t>> LabelCandidates(const SampleColumns& sample, bool named,
                                              const std::string& path);

// Returns the place of the column that --label names. User error when it cannot be a label.
StatusOr<size_t> GivenLabel(const std::vector<SampleColumn>& columns, const std::string& name);

// Whether a label's two values are texts, not 0 and 1.
bool IsTwoTexts(const SampleColumn& label);
// Returns the one of two texts that counts as 1: by its meaning, else the rarer one.
std::string PositiveText(const SampleColumn& label);
// Returns the rating from which on a row counts as positive: the first one above the mean.
double LabelThreshold(const SampleColumn& label);
// Returns the share of rows that are positive.
double PositiveRate(const SampleColumn& label);

// Returns, by column, whether its value tells the label, as the label's opposite does.
std::vector<bool> LabelCopies(const Schema& schema, const TextSample& sample,
                              const std::vector<SampleColumn>& columns, size_t label);

}  // namespace elastor

#endif  // ELASTOR_TRAINER_PREPARE_GUESS_LABEL_H_
