#include "core/kernels/row_sums.h"

#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <iterator>
#include <limits>
#include <vector>

#include "core/base/floating_point.h"
#include "core/base/random.h"
#include "core/optimizer/adam.h"
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

// Numbers that a row may hold, beside others: signed zeros, denormals, the least normal number,
// powers of two, of which the last place below is half of that above, and infinities.
template <typename T>
T SomeNumber(uint32_t i, T usual) {
  using Limits = std::numeric_limits<T>;
  const T numbers[] = {T{0},
                       -T{0},
                       Limits::denorm_min(),
                       Limits::min(),
                       -Limits::min(),
                       Limits::min() * 3,
                       T(0x1p-100),
                       T(0x1p-90),
                       T(0x1p-20),
                       -T(0x1p-7),
                       T{1},
                       Limits::max(),
                       Limits::infinity()};
  return i < std::size(numbers) ? numbers[i] : usual;
}

// The steps of a run whose rate changes, and the rules that they follow.
template <typename T>
struct AdamRun {
  std::vector<Adam<T>> rules;
  std::vector<typename AdamSteps<T>::Step> steps;
  AdamSteps<T> kernel;
};
template <typename T>
AdamRun<T> MakeAdamRun(const OptimizerOptions& options, int64_t first, int64_t count,
                       int64_t falling, const std::function<double(int64_t)>& rate) {
  AdamRun<T> run;
  for (int64_t i = 0; i < count; ++i) {
    run.rules.push_back(Adam<T>::ForStep(options, rate(i), first + i));
    run.steps.push_back({run.rules.back().step_size, run.rules.back().inverse_root_bias});
  }
  const Adam<T>& rule = run.rules[0];
  run.kernel = {rule.beta1, rule.beta2, rule.epsilon, run.steps.data() + count, falling};
  return run;
}

// Rows of some width that took some of the last steps have the bits of Adam with g = 0 w.
template <typename T>
void ExpectStepsOfAdam(const AdamRun<T>& run, uint64_t stream) {
  constexpr int64_t kRows = 61;
  constexpr T kLeast = std::numeric_limits<T>::min();
  const auto count = static_cast<int64_t>(run.rules.size());
  for (const int64_t width : {1, 4, 7, 16, 20, 64}) {
    std::vector<std::vector<T>> rows(kRows, std::vector<T>(3 * width + 1, T{7}));
    std::vector<T*> pointers;
    std::vector<int64_t> owed;
    for (int64_t r = 0; r < kRows; ++r) {
      for (int64_t i = 0; i < 3 * width; ++i) {
        const auto words = Philox(stream, {static_cast<uint32_t>(width), static_cast<uint32_t>(r),
                                           static_cast<uint32_t>(i), 0});
        const double u = UniformFromBits(words[0]);
        // Half of the rows have usual numbers alone: their steps are what stops. Some of these have
        // an m that decays to ±0 behind that.
        const uint32_t kind = r % 2 == 0 ? 99 : words[1] % 30;
        const T scale = std::exp2(T(words[2] % 40) - T(r % 4 < 2 ? 30 : 10));
        T number = SomeNumber<T>(kind, T(i < 2 * width ? 2 * u - 1 : u * u) * scale);
        if (r % 8 == 4 && i / width == 1) number = std::copysign(T{9000}, number) * kLeast;
        rows[r][i] = i < 2 * width || number == 0 ? number : std::abs(number);
      }
      owed.push_back(1 + (r * 7) % count);
      if (r % 3 == 0) owed.back() = count;
      pointers.push_back(rows[r].data());
    }
    std::vector<std::vector<T>> expected = rows;
    for (int64_t r = 0; r < kRows; ++r) {
      T* const w = expected[r].data();
      for (int64_t step = count - owed[r]; step < count; ++step) {
        for (int64_t i = 0; i < width; ++i) {
          run.rules[step].Element(T{0} * w[i], &w[i], &w[width + i], &w[2 * width + i]);
        }
      }
    }
    RowSums<T>().take_steps(run.kernel, pointers.data(), owed.data(), kRows, width);
    for (int64_t r = 0; r < kRows; ++r) {
      for (int64_t i = 0; i <= 3 * width; ++i) {
        if (std::isnan(expected[r][i]) && std::isnan(rows[r][i])) continue;
        ASSERT_EQ(std::memcmp(&rows[r][i], &expected[r][i], sizeof(T)), 0)
            << "width " << width << " row " << r << " element " << i << ": " << rows[r][i]
            << ", expected " << expected[r][i];
      }
    }
  }
}

template <typename T>
void ExpectStepsOfManyRuns() {
  const uint32_t control = FloatingPoint::Get();
  FloatingPoint::Set(FloatingPoint::kCanonical);
  const auto constant = [](int64_t) { return 1e-3; };
  const auto rising = [](int64_t i) { return 1e-6 * static_cast<double>(i + 1); };
  const auto restarts = [](int64_t i) { return i < 150 ? 1e-3 : 0.5; };
  const OptimizerOptions usual;
  OptimizerOptions no_beta1, slow_beta1, small_epsilon;
  no_beta1.beta1 = 0;
  slow_beta1.beta1 = 0.9999;
  small_epsilon.epsilon = 1e-30;
  ExpectStepsOfAdam<T>(MakeAdamRun<T>(usual, 1, 256, 255, constant), 1);
  ExpectStepsOfAdam<T>(MakeAdamRun<T>(usual, 100'000, 256, 256, constant), 2);
  ExpectStepsOfAdam<T>(MakeAdamRun<T>(usual, 1, 200, 150, rising), 3);
  ExpectStepsOfAdam<T>(MakeAdamRun<T>(usual, 1000, 256, 105, restarts), 4);
  ExpectStepsOfAdam<T>(MakeAdamRun<T>(no_beta1, 5, 40, 40, constant), 5);
  ExpectStepsOfAdam<T>(MakeAdamRun<T>(slow_beta1, 1, 100, 0, constant), 6);
  ExpectStepsOfAdam<T>(MakeAdamRun<T>(small_epsilon, 50, 256, 0, constant), 7);
  FloatingPoint::Set(control);
}

TEST(RowSumsTest, RowsTakeStepsOfAdam) {
  ExpectStepsOfManyRuns<float>();
  ExpectStepsOfManyRuns<double>();
}

// Where a weight is a power of two, half a step above it is a whole one below.
TEST(RowSumsTest, AWeightStopsBelowAQuarterOfItsLastPlace) {
  const uint32_t control = FloatingPoint::Get();
  FloatingPoint::Set(FloatingPoint::kCanonical);
  // v = 0 and epsilon = 1: the step is the rate times m, which decays to 7/8 of it.
  OptimizerOptions options;
  options.beta1 = 0.875;
  options.epsilon = 1;
  const auto run = MakeAdamRun<float>(options, 1000, 3, 3, [](int64_t) { return 1.0; });
  for (const float m : {0x1p-23f, 0x1p-24f, 0x1p-25f, 0x1p-26f}) {
    std::vector<float> row = {1, m, 0}, expected = row;
    for (const Adam<float>& rule : run.rules) {
      rule.Element(0, &expected[0], &expected[1], &expected[2]);
    }
    EXPECT_EQ(expected[0] == 1, m <= 0x1p-25f) << m;
    float* const pointer = row.data();
    const int64_t owed = 3;
    RowSums<float>().take_steps(run.kernel, &pointer, &owed, 1, 1);
    EXPECT_EQ(row, expected) << m;
  }
  FloatingPoint::Set(control);
}

TEST(RowSumsTest, AddRowsInOrder) {
  ExpectSumsInOrder<float>();
  ExpectSumsInOrder<double>();
}

}  // namespace
}  // namespace elastor
