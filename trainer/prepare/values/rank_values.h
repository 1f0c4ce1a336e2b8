#ifndef ELASTOR_TRAINER_PREPARE_VALUES_RANK_VALUES_H_
#define ELASTOR_TRAINER_PREPARE_VALUES_RANK_VALUES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "core/base/thread_pool.h"
#include "trainer/data/saved_vocabulary.h"
#include "trainer/data/work_file.h"
#include "trainer/prepare/plan.h"
#include "trainer/prepare/prepare_options.h"
#include "trainer/prepare/text_pass.h"
#include "trainer/prepare/values/measure.h"
#include "trainer/prepare/values/value_tally.h"

namespace elastor {

struct RankedValues {
  // By column of PreparePlan::ids; keyed ones have values and missing ones only.
  std::vector<ValueTally> tallies;
  std::vector<int64_t> table_rows;            // the same; 0 of keyed ones
  std::vector<SavedVocabulary> vocabularies;  // the same; only of columns that own one
  int id_bytes = 4;                           // of an id in the file of ids
  std::vector<std::vector<int64_t>> ids_at;   // by segment, then column: in the file of ids
};

// Where the ids of the values of each run go: PlaceIds(...)[segment][column], by number of value.
std::vector<std::vector<int64_t>> PlaceIds(const TextPassResult& text, int id_bytes, WorkFile* ids);

// What goes in and where results go.
struct RankFiles {
  WorkFile* values;   // mapped
  WorkFile* counts;   // mapped
  WorkFile* ids;      // written: by place of PlaceIds, the id of every value by its number
  WorkFile* scratch;  // for intermediate results
  std::string vocabulary_folder;
};

// Gives every value of every run its id. The runs of all columns of a table are merged, part by
// part in order of values; when all counts are known, ranks follow without sorting everything: a
// value's id is the number of values in higher classes of counts, and those of its own class before
// it. `given`: runs of the vocabularies to be used, by column (empty: rank by count); with
// options.grow values that they lack come behind them, by rank.
StatusOr<RankedValues> RankValues(const PrepareOptions& options, const PreparePlan& plan,
                                  const TextPassResult& text, const Measures& measures,
                                  const std::vector<GivenVocabulary>& given, const RankFiles& files,
                                  ThreadPool* pool);

}  // namespace elastor

#endif  // ELASTOR_TRAINER_PREPARE_VALUES_RANK_VALUES_H_
