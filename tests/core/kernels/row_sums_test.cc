#include "core/kernels/row_sums.h"

#include <cstdint>
#include <vector>

#include "core/base/random.h"
#include "core/optimizer/sum_of_squares.h"
#include "gtest/gtest.h"

namespace elastor {
namespace {

// Element after element, in order, and nothing behind the row: for rows narrower than a vector,
// with a rest, and wider than one sweep. Squares are those of SumOfSquares.
template <typename T>
void ExpectSumsInOrder() {
  constexpr int64_t kRows = 40;
  for (const int64_t width :
       {1, 2, 3, 5, 7, 8, 9, 15, 16, 17, 20, 31, 33, 64, 100, 128, 129, 271}) {
    std::vector<std::vector<T>> memory(kRows, std::vector<T>(width));
    std::vector<const T*> rows;
    for (int64_t r = 0; r < kRows; ++r) {
      FillNormal(width, r, 1, width, memory[r].data());
      rows.push_back(memory[r].data());
    }
    for (const int64_t count : {1, 2, 3, 33}) {
      std::vector<T> sum(width + 1, T{7});
      RowSums<T>().sum(rows.data(), count, rows.data() + kRows - count, width, sum.data());
      for (int64_t i = 0; i < width; ++i) {
        T expected = rows[0][i];
        for (int64_t r = 1; r < count; ++r) expected += rows[r][i];
        ASSERT_EQ(sum[i], expected) << width << " " << count << " " << i;
      }
      ASSERT_EQ(sum[width], T{7});
      std::vector<double> squares(count);
      RowSums<T>().squares(rows.data(), count, width, squares.data());
      for (int64_t r = 0; r < count; ++r) {
        ASSERT_EQ(squares[r], SumOfSquares(rows[r], width)) << width << " " << count;
      }
    }
  }
}

TEST(RowSumsTest, AddRowsInOrder) {
  ExpectSumsInOrder<float>();
  ExpectSumsInOrder<double>();
}

}  // namespace
}  // namespace elastor
