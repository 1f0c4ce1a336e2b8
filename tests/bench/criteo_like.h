#ifndef ELASTOR_TESTS_BENCH_CRITEO_LIKE_H_
#define ELASTOR_TESTS_BENCH_CRITEO_LIKE_H_

#include <cstdint>

#include "trainer/data/batch.h"
#include "trainer/data/dataset.h"

namespace elastor {

// Data of Criteo's shape for benchmarks of a step: 13 numeric fields, 26 categorical ones with a
// table of ids_per_field rows each.
DatasetInfo CriteoLikeData(int64_t ids_per_field);

// Batch `index` of the only rank: uniform numeric values, P(id) about (id + 1)^-zipf, a quarter of
// the labels 1.
LocalBatch CriteoLikeBatch(int index, int64_t rows, int64_t ids_per_field, double zipf,
                           int64_t leaves);

}  // namespace elastor

#endif  // ELASTOR_TESTS_BENCH_CRITEO_LIKE_H_
