#include "trainer/prepare/values/value_tally.h"

#include <algorithm>

#include "core/base/canonical_math.h"

namespace elastor {
namespace {

constexpr size_t kTopValues = 10;

// p log2(2p / (p + q)) + q log2(2q / (p + q)), p and q > 0.
double SharedDivergence(double p, double q) {
  const double log = p * CanonicalLog(2 * p / (p + q)) + q * CanonicalLog(2 * q / (p + q));
  return log / CanonicalLog(2.0);
}

bool MoreFrequent(const TopValue& a, const TopValue& b) { return a.counts[0] > b.counts[0]; }

}  // namespace

void ValueTallyBuilder::Add(std::string_view value, Kind kind, const SplitCounts& counts) {
  const bool missing = kind == Kind::kMissing;
  for (int split = 0; split < 3; ++split) {
    const int64_t count = counts[split];
    if (missing) tally_.missing[split] += count;
    if (kind == Kind::kUnknown) tally_.unknown[split] += count;
    tally_.distinct[split] += count > 0 && !missing;
    if (split == 0) continue;
    if (count > 0 && counts[0] > 0) {
      shared_[split].Add(SharedDivergence(Share(counts[0], 0), Share(count, split)));
    } else {
      only_here_[split] += count;
      only_in_train_[split] += counts[0];
    }
  }
  std::vector<TopValue>& top = tally_.top;
  const bool enters = top.size() < kTopValues || counts[0] > top.back().counts[0];
  if (missing || counts[0] == 0 || !enters) return;
  TopValue entry = {std::string(value), counts};
  top.insert(std::upper_bound(top.begin(), top.end(), entry, MoreFrequent), entry);
  if (top.size() > kTopValues) top.pop_back();
}

void ValueTallyBuilder::Append(const ValueTallyBuilder& other) {
  for (int split = 0; split < 3; ++split) {
    tally_.missing[split] += other.tally_.missing[split];
    tally_.unknown[split] += other.tally_.unknown[split];
    tally_.distinct[split] += other.tally_.distinct[split];
    shared_[split].Merge(other.shared_[split]);
    only_here_[split] += other.only_here_[split];
    only_in_train_[split] += other.only_in_train_[split];
  }
  std::vector<TopValue>& top = tally_.top;
  top.insert(top.end(), other.tally_.top.begin(), other.tally_.top.end());
  std::stable_sort(top.begin(), top.end(), MoreFrequent);
  if (top.size() > kTopValues) top.resize(kTopValues);
}

ValueTally ValueTallyBuilder::Finish() {
  for (int split = 1; split < 3; ++split) {
    if (tally_.values[0] == 0 || tally_.values[split] == 0) continue;
    tally_.divergence[split] =
        std::max(0.0, 0.5 * (shared_[split].Value() + Share(only_here_[split], split) +
                             Share(only_in_train_[split], 0)));
  }
  return std::move(tally_);
}

}  // namespace elastor
