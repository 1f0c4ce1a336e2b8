#ifndef ELASTOR_TRAINER_PREPARE_GUESS_COLUMNS_H_
#define ELASTOR_TRAINER_PREPARE_GUESS_COLUMNS_H_

#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "configs/proto/schema.pb.h"
#include "trainer/prepare/guess/text_sample.h"

namespace elastor {

// What the values of a column look like.
struct SampleColumn {
  std::string name;      // empty: a header leaves it so, and no field reads the column
  bool is_list = false;  // in a table, which says so
  std::unordered_map<std::string, int64_t> values;  // not missing, with their rows
  std::map<std::string, int64_t> nulls;             // texts that count as missing, with their rows
  int64_t missing = 0;

  // Rows of values that are not missing, set by Summarise.
  int64_t count = 0;
  int64_t numbers = 0;                              // ParseNumber reads them
  int64_t wholes = 0;                               // of these, without a fraction
  int64_t integers = 0;                             // of these, written with digits alone
  int64_t times[Field::TimeFormat_ARRAYSIZE] = {};  // by format, where IsLikelyTime
  int64_t written_numbers = 0;                      // IsWrittenNumber
  int64_t written_times = 0;                        // IsWrittenTime
  bool leading_zeros = false;                       // in some integer, as 0042
  double least = std::numeric_limits<double>::infinity();
  double largest = -std::numeric_limits<double>::infinity();
  double sum = 0;

  void Add(const std::string& value);
  // Makes the `nulls` among the values missing, and counts the others. REQUIRES: called once.
  void Summarise(const std::vector<std::string>& nulls);

  bool numeric() const { return count > 0 && numbers == count; }
  bool whole() const { return count > 0 && wholes == count; }
  bool integral() const { return count > 0 && integers == count; }
  double mean() const { return sum / static_cast<double>(numbers); }
};

struct SampleColumns {
  std::vector<SampleColumn> columns;
  int64_t rows = 0;    // with as many columns as there should be
  bool named = false;  // the columns' names are of a header
};

// Calls `row` for each row of the sample from its first_row on, its values cut by `schema`.
void ForEachRow(const Schema& schema, const TextSample& sample,
                const std::function<void(const std::vector<std::string>& values)>& row);

// Reads all rows of the sample into columns of these names.
SampleColumns ReadColumns(const Schema& schema, const std::vector<std::string>& names,
                          const TextSample& sample);

}  // namespace elastor

#endif  // ELASTOR_TRAINER_PREPARE_GUESS_COLUMNS_H_
