#ifndef ELASTOR_TRAINER_PREPARE_GUESS_LABEL_H_
#define ELASTOR_TRAINER_PREPARE_GUESS_LABEL_H_

#include <cstddef>
#include <string>
#include <vector>

#include "configs/proto/schema.pb.h"
#include "core/base/status.h"
#include "trainer/prepare/guess/columns.h"
#include "trainer/prepare/guess/name_hints.h"
#include "trainer/prepare/guess/text_sample.h"

namespace elastor {

// How a label's values are 0 and 1.
enum class LabelForm {
  kNone,        // they cannot be
  kZeroOne,     // 0 or -1, and 1
  kTwoTexts,    // one of them is positive
  kTwoNumbers,  // others than 0 and 1: the larger one is positive
  kRatings,     // numbers: from a threshold on they are positive
  kTexts        // several: one of them is positive
};
LabelForm LabelFormOf(const SampleColumn& column);

// Whether a label of 0 and 1 has both 0 and -1; the doubt about it.
bool HasThreeSigns(const SampleColumn& label);
inline constexpr char kThreeSigns[] = "has 0, 1 and -1; -1 counts as 0";

// Returns how likely a column is the label; 0: it cannot be. `named`: a header names the columns.
int LabelScore(const SampleColumn& column, bool named);

// Returns the places of the columns that can be the label, the best first. User error naming `path`
// when there are none or no rows.
StatusOr<std::vector<size_t>> LabelCandidates(const SampleColumns& sample, const std::string& path);

// Returns the place of the column that --label names. User error when it cannot be a label.
StatusOr<size_t> GivenLabel(const std::vector<SampleColumn>& columns, const std::string& name);

// Returns why the label should be looked at; empty: no reason. `candidates`: its place, then those
// of the other columns that can be the label. `given`: --label names it.
std::string LabelDoubt(const SampleColumns& sample, const std::vector<size_t>& candidates,
                       bool given);

// Whether a column that is not the label can be it as well: it has the name of a label
// or of ratings, or the label has no such name and it looks like one. `candidates`: as above;
// `place`: of the column.
bool MayBeLabel(const SampleColumns& sample, const std::vector<size_t>& candidates, size_t place);

// Whether a column with two values has a name of this kind: kYes is a label as the chosen one is,
// known only afterwards, and kPartly may be one. REQUIRES: `name` is not kNo.
bool IsSecondLabel(const SampleColumn& column, LabelName name);

// Returns the text that counts as 1: by its meaning, else the rarer one.
std::string PositiveText(const SampleColumn& label);
// Returns the number from which on a row counts as positive: the first one above the mean.
double LabelThreshold(const SampleColumn& label);
// Returns the share of rows that are positive.
double PositiveRate(const SampleColumn& label);

// What a column says about the label.
enum class Telling {
  kNothing,
  kValue,    // its value tells the label, as the label's opposite does
  kMark,     // its commonest value does, as the -1 of all rows without a conversion
  kPresence  // whether it is missing does, as the time of a conversion's
};
// Returns the value of the most rows; of several, the least text. REQUIRES: there is a value.
const std::string& CommonestValue(const SampleColumn& column);
// Returns that of every column; kNothing of the label's own.
std::vector<Telling> FindTelling(const Schema& schema, const TextSample& sample,
                                 const std::vector<SampleColumn>& columns, size_t label);

}  // namespace elastor

#endif  // ELASTOR_TRAINER_PREPARE_GUESS_LABEL_H_
