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

// Characters that may stand between the items of a bag.
constexpr std::string_view kBagSeparators = "|^;";

// What the values of a column look like.
struct SampleColumn {
  std::string name;
  std::unordered_map<std::string, int64_t> values;  // not missing, with their rows
  std::map<std::string, int64_t> nulls;             // texts that mean missing, with their rows
  int64_t missing = 0;
  int64_t numbers = 0;
  int64_t integers = 0;
  int64_t times[3] = {0, 0, 0};  // by Field::TimeFormat
  double least = std::numeric_limits<double>::infinity();
  double largest = -std::numeric_limits<double>::infinity();
  double sum = 0;
  int64_t bags[3] = {0, 0, 0};  // values with each of kBagSeparators
  int64_t longest_bag[3] = {1, 1, 1};
  int64_t count = 0;  // not missing

  void Add(const std::string& value);
  bool numeric() const { return count > 0 && numbers == count; }
  bool integral() const { return count > 0 && integers == count; }
  double mean() const { return sum / static_cast<double>(numbers); }
};

struct SampleColumns {
  std::vector<SampleColumn> columns;
  int64_t rows = 0;
  int64_t bad_rows = 0;  // with another number of columns
};

// Calls `row` for each row of the sample, its values cut by `schema`.
void ForEachRow(const Schema& schema, const TextSample& sample,
                const std::function<void(const std::vector<std::string>& values)>& row);

// Reads all rows of the sample into `count` columns, named by the first file's header or else c1,
// c2, ... REQUIRES: schema.header is set.
SampleColumns ReadColumns(const Schema& schema, size_t count, const TextSample& sample);

// Returns the texts that mean missing in any column, sorted.
std::vector<std::string> NullTexts(const std::vector<SampleColumn>& columns);

}  // namespace elastor

#endif  // ELASTOR_TRAINER_PREPARE_GUESS_COLUMNS_H_
