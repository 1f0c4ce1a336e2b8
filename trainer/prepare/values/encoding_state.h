#ifndef ELASTOR_TRAINER_PREPARE_VALUES_ENCODING_STATE_H_
#define ELASTOR_TRAINER_PREPARE_VALUES_ENCODING_STATE_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "core/base/status.h"
#include "trainer/data/dataset_writer.h"
#include "trainer/data/saved_vocabulary.h"
#include "trainer/data/work_file.h"
#include "trainer/prepare/plan.h"
#include "trainer/prepare/prepare_options.h"
#include "trainer/prepare/values/measure.h"
#include "trainer/prepare/values/rank_values.h"

namespace elastor {

// How raw values become stored ones, beside the ids of values: what a run that goes on with writing
// blocks must know, and what one set takes over from another.
struct EncodingState {
  std::vector<NumericScale> scales;       // by numeric field
  std::vector<int64_t> table_rows;        // by column of PreparePlan::ids
  std::vector<std::string> vocabularies;  // the same: checksums of vocabulary files, or empty
  // The same, of a set that is taken over: what its vocabularies have grown from.
  std::vector<std::vector<DatasetInfo::Vocabulary>> grown_from;
  std::vector<std::pair<std::string, double>> unknown_shares;  // with --vocabulary_from
  std::string ids_checksum;                                    // of the working file of ids
  std::string statistics_checksum;                             // of stats.json
};

// A file that holds a state, and reading it: machine error when it is not as it was written.
std::string StateJson(const EncodingState& state);
StatusOr<EncodingState> ReadState(const std::string& path);
// Whether a file, whatever its size, still has a checksum (XXH3-64, 16 hex digits) that a state
// holds. Machine error when not, or when it cannot be read.
Status CheckFile(const std::string& path, const std::string& checksum);

// Means and deviations of the training split.
std::vector<NumericScale> ScalesOf(const PreparePlan& plan, const Measures& measures);
// Share of values without an id, over all splits together, for every field with a vocabulary.
std::vector<std::pair<std::string, double>> UnknownShares(const PreparePlan& plan,
                                                          const RankedValues& ranked);

// The scales, table sizes and checksums of a prepared set. User error when its fields are not those
// of the plan.
StatusOr<EncodingState> ReadGivenEncoding(const std::string& path, const PreparePlan& plan);
// Its vocabularies, by column; written to `values` as runs.
StatusOr<std::vector<GivenVocabulary>> ReadGivenVocabularies(const PrepareOptions& options,
                                                             const PreparePlan& plan,
                                                             const EncodingState& state,
                                                             WorkFile* values);

}  // namespace elastor

#endif  // ELASTOR_TRAINER_PREPARE_VALUES_ENCODING_STATE_H_
