#include "core/spectrum/spectrum_statistics.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "core/base/log.h"

namespace elastor {

void SpectrumStatistics::Add(const Spectrum& spectrum, int64_t i, const EffectiveRank* before) {
  CHECK_EQ(spectrum.max_rank(), static_cast<int64_t>(profile_.size()));
  ++rows_;
  const EffectiveRank rank = spectrum.rank(i);
  AddTo(rank.stable, &stable_);
  AddTo(rank.entropy, &entropy_);
  if (before != nullptr) {
    AddChange(rank.stable - before->stable, &stable_);
    AddChange(rank.entropy - before->entropy, &entropy_);
  }
  const double largest = spectrum.singular_value(0, i);
  if (largest == 0) return;
  for (size_t n = 0; n < profile_.size(); ++n) {
    profile_[n].Add(spectrum.singular_value(static_cast<int64_t>(n), i) / largest);
  }
}

void SpectrumStatistics::AddTo(double rank, Kind* kind) const {
  kind->sum.Add(rank);
  kind->squares.Add(rank * rank);
  if (std::isnan(rank)) return;
  const double bin = rank * kBins / static_cast<double>(profile_.size());
  ++kind->histogram[std::min<int64_t>(static_cast<int64_t>(bin), kBins - 1)];
}

void SpectrumStatistics::AddChange(double change, Kind* kind) {
  kind->change_sum.Add(change);
  kind->change_squares.Add(change * change);
  kind->rising += change > 0 ? 1 : 0;
  kind->falling += change < 0 ? 1 : 0;
}

template <typename Self, typename VisitCount, typename VisitSum>
void SpectrumStatistics::ForEach(Self& self, const VisitCount& visit_count,
                                 const VisitSum& visit_sum) {
  visit_count(self.rows_);
  for (auto* kind : {&self.stable_, &self.entropy_}) {
    visit_count(kind->rising);
    visit_count(kind->falling);
    for (auto& count : kind->histogram) visit_count(count);
    for (auto* sum : {&kind->sum, &kind->squares, &kind->change_sum, &kind->change_squares}) {
      visit_sum(*sum);
    }
  }
  for (auto& sum : self.profile_) visit_sum(sum);
}

void SpectrumStatistics::Merge(const SpectrumStatistics& other) {
  std::vector<int64_t> words, added;
  AppendWords(&words);
  other.AppendWords(&added);
  CHECK_EQ(words.size(), added.size());
  for (size_t i = 0; i < words.size(); ++i) words[i] += added[i];
  SetWords(words);
}

int64_t SpectrumStatistics::word_count() const {
  return 1 + 2 * (2 + kBins) + (8 + static_cast<int64_t>(profile_.size())) * ExactSum::kWords;
}

void SpectrumStatistics::AppendWords(std::vector<int64_t>* words) const {
  ForEach(
      *this, [words](int64_t count) { words->push_back(count); },
      [words](const ExactSum& sum) {
        const auto part = sum.ToWords();
        words->insert(words->end(), part.begin(), part.end());
      });
}

void SpectrumStatistics::SetWords(std::span<const int64_t> words) {
  CHECK_EQ(static_cast<int64_t>(words.size()), word_count());
  auto from = words.begin();
  ForEach(
      *this, [&from](int64_t& count) { count = *from++; },
      [&from](ExactSum& sum) {
        std::array<int64_t, ExactSum::kWords> part;
        std::copy_n(from, part.size(), part.begin());
        from += ExactSum::kWords;
        sum = ExactSum::FromWords(part);
      });
}

SpectrumStatistics::Moments SpectrumStatistics::MomentsOf(const ExactSum& sum,
                                                          const ExactSum& squares) const {
  const auto rows = static_cast<double>(rows_);
  Moments moments = {.mean = sum.Value() / rows};
  if (rows_ > 1) {
    const double about_mean = squares.Value() - moments.mean * sum.Value();
    moments.stddev = std::sqrt(std::max(about_mean, 0.0) / (rows - 1));
  }
  return moments;
}

SpectrumStatistics::Distribution SpectrumStatistics::DistributionOf(const Kind& kind) const {
  CHECK_GT(rows_, 0);
  return {.rank = MomentsOf(kind.sum, kind.squares),
          .change = MomentsOf(kind.change_sum, kind.change_squares),
          .rising = kind.rising,
          .falling = kind.falling,
          .histogram = kind.histogram};
}

std::vector<double> SpectrumStatistics::profile() const {
  CHECK_GT(rows_, 0);
  std::vector<double> means;
  for (const ExactSum& sum : profile_) means.push_back(sum.Value() / static_cast<double>(rows_));
  return means;
}

double HistogramQuantile(std::span<const int64_t> histogram, double max_rank, double q) {
  const int64_t rows = std::accumulate(histogram.begin(), histogram.end(), int64_t{0});
  const double wanted = q * static_cast<double>(rows);
  double below = 0;
  double quantile = std::numeric_limits<double>::quiet_NaN();
  for (size_t bin = 0; bin < histogram.size(); ++bin) {
    const auto count = static_cast<double>(histogram[bin]);
    if (count == 0) continue;
    const double share = std::min((wanted - below) / count, 1.0);
    quantile =
        (static_cast<double>(bin) + share) * max_rank / static_cast<double>(histogram.size());
    if (below + count >= wanted) break;
    below += count;
  }
  return quantile;
}

}  // namespace elastor
