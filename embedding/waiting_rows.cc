#include "embedding/waiting_rows.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>

#include "core/base/floating_point.h"
#include "core/base/log.h"
#include "core/base/sizes.h"
#include "embedding/row_math.h"

namespace elastor {
namespace {

template <typename T>
constexpr T kZero = 0;

// Returns whether a step of a row without a gradient is sure to be smaller than the one before it.
// m falls by beta1, the root of v by that of beta2, and the quotient of exact numbers by 1 % or
// more. That is more than what rounding adds, and than what is lost where v is flushed: a root of
// 1.1e-19, which is nothing beside such an epsilon.
template <typename T>
bool Falls(const AdamSteps<T>& steps, const typename AdamSteps<T>::Step& before,
           const typename AdamSteps<T>::Step& step) {
  constexpr double kMost = 0.99, kLeastEpsilon = 1e-12, kMostInverseRoot = 1000;
  if (!(steps.epsilon >= T{kLeastEpsilon} && before.inverse_root_bias <= T{kMostInverseRoot})) {
    return false;
  }
  const double to = double{steps.beta1} * step.step_size * before.inverse_root_bias;
  const double from = std::sqrt(double{steps.beta2}) * step.inverse_root_bias * before.step_size;
  return to <= kMost * from;
}

// Returns whether Adam without a gradient leaves a row as it is: no m, no v, and no weight that
// would become NaN or be flushed.
template <typename T>
bool NeverChanges(const T* row, int64_t width) {
  // By their bits, as denormals may count as 0 here.
  const auto is_zero = [](T x) { return std::memcmp(&x, &kZero<T>, sizeof(T)) == 0; };
  const auto stays = [&](T w) { return std::isnormal(w) || is_zero(w) || is_zero(-w); };
  return std::all_of(row, row + width, stays) && std::all_of(row + width, row + 3 * width, is_zero);
}

// The calling thread has canonical floating point as long as the object lives.
class CanonicalScope {
 public:
  CanonicalScope() : before_(FloatingPoint::Get()) {
    FloatingPoint::Set(FloatingPoint::kCanonical);
  }
  ~CanonicalScope() { FloatingPoint::Set(before_); }
  CanonicalScope(const CanonicalScope&) = delete;
  CanonicalScope& operator=(const CanonicalScope&) = delete;

 private:
  const uint32_t before_;
};

}  // namespace

template <typename T>
bool WaitingRows<T>::MayWait(const SparseOptimizerOptions& options) {
  return options.rule.kind == OptimizerKind::kDenseAdam && options.l2 == 0 &&
         static_cast<T>(options.rule.epsilon) >= std::numeric_limits<T>::min();
}

template <typename T>
WaitingRows<T>::WaitingRows(const OptimizerOptions& options) : options_(options), kept_() {}

template <typename T>
void WaitingRows<T>::AddTable(const RowStore<T>* store, int64_t width) {
  tables_.push_back({store, width, ZeroPages()});
  MakeNumbers(&tables_.back());
}

template <typename T>
void WaitingRows<T>::Forget(int64_t table) {
  tables_[table].numbers = ZeroPages();  // before new ones
  MakeNumbers(&tables_[table]);
}

template <typename T>
void WaitingRows<T>::MakeNumbers(Table* table) const {
  table->numbers =
      ZeroPages(SizeProduct({table->store->extent(), kNumberBytes}), "numbers of waiting rows");
}

template <typename T>
void WaitingRows<T>::AddStep(const Adam<T>& rule) {
  CHECK_LT(++steps_, std::numeric_limits<uint32_t>::max());
  kept_.beta1 = rule.beta1;
  kept_.beta2 = rule.beta2;
  kept_.epsilon = rule.epsilon;
  const typename AdamSteps<T>::Step step = {rule.step_size, rule.inverse_root_bias};
  const bool falls = !last_.empty() && Falls(kept_, last_.back(), step);
  kept_.falling = falls ? kept_.falling + 1 : 0;
  if (std::ssize(last_) == 2 * kMostOwed) last_.erase(last_.begin(), last_.begin() + kMostOwed);
  last_.push_back(step);
  kept_.end = last_.data() + last_.size();
}

template <typename T>
template <typename Work>
void WaitingRows<T>::ForNumbers(const Table& table, std::span<T* const> rows,
                                const Work& work) const {
  std::array<uint32_t*, kAtOnce> numbers;
  for (; !rows.empty(); rows = rows.subspan(std::min(kAtOnce, rows.size()))) {
    const std::span<T* const> some = rows.first(std::min(kAtOnce, rows.size()));
    for (size_t i = 0; i < some.size(); ++i) {
      numbers[i] = table.NumberOf(some[i]);
      __builtin_prefetch(numbers[i], 1);
    }
    work(some, numbers.data());
  }
}

template <typename T>
void WaitingRows<T>::CatchUp(int64_t table, std::span<T* const> rows) const {
  const CanonicalScope canonical;  // threads that write a checkpoint have it not
  const int64_t width = tables_[table].width;
  ForNumbers(tables_[table], rows, [&](std::span<T* const> some, uint32_t* const* numbers) {
    std::array<T*, kAtOnce> owing;
    std::array<int64_t, kAtOnce> owed;
    int64_t count = 0;
    for (size_t i = 0; i < some.size(); ++i) {
      const int64_t steps = *numbers[i] == 0 ? 0 : steps_ + 1 - *numbers[i];
      if (steps == 0) continue;
      CHECK_LE(steps, kMostOwed);
      PrefetchRow<RowUse::kWrite>(some[i], 3 * width);
      owing[count] = some[i];
      owed[count++] = steps;
      *numbers[i] = static_cast<uint32_t>(steps_ + 1);
    }
    RowSums<T>().take_steps(kept_, owing.data(), owed.data(), count, width);
  });
}

template <typename T>
void WaitingRows<T>::TookStep(int64_t table, std::span<T* const> rows) {
  ForNumbers(tables_[table], rows, [&](std::span<T* const> some, uint32_t* const* numbers) {
    for (size_t i = 0; i < some.size(); ++i) {
      CHECK(*numbers[i] == 0 || *numbers[i] == steps_);
      *numbers[i] = static_cast<uint32_t>(steps_ + 1);
    }
  });
}

template <typename T>
void WaitingRows<T>::WasSet(int64_t table, T* row) {
  const bool owes = !NeverChanges(row, tables_[table].width);
  *tables_[table].NumberOf(row) = owes ? static_cast<uint32_t>(steps_ + 1) : 0;
}

template <typename T>
int64_t WaitingRows<T>::memory_bytes() const {
  int64_t bytes = 0;
  for (const Table& table : tables_) bytes += table.store->extent() * kNumberBytes;
  return bytes;
}

template class WaitingRows<float>;
template class WaitingRows<double>;

}  // namespace elastor
