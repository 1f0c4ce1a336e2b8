#include "core/spectrum/spectrum_statistics.h"

#include <algorithm>
#include <cmath>

#include "glog/logging.h"

namespace elastor {

void SpectrumStatistics::Add(const Spectrum& spectrum, int64_t i) {
  CHECK_EQ(spectrum.max_rank(), static_cast<int64_t>(profile_.size()));
  ++rows_;
  AddTo(spectrum.rank(i).stable, &stable_);
  AddTo(spectrum.rank(i).entropy, &entropy_);
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

template <typename Self, typename Visit>
void SpectrumStatistics::ForEachSum(Self& self, const Visit& visit) {
  for (auto* kind : {&self.stable_, &self.entropy_}) {
    visit(kind->sum);
    visit(kind->squares);
  }
  for (auto& sum : self.profile_) visit(sum);
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
  return 1 + 2 * kBins + (4 + static_cast<int64_t>(profile_.size())) * ExactSum::kWords;
}

void SpectrumStatistics::AppendWords(std::vector<int64_t>* words) const {
  words->push_back(rows_);
  for (const Kind* kind : {&stable_, &entropy_}) {
    words->insert(words->end(), kind->histogram.begin(), kind->histogram.end());
  }
  ForEachSum(*this, [words](const ExactSum& sum) {
    const auto part = sum.ToWords();
    words->insert(words->end(), part.begin(), part.end());
  });
}

void SpectrumStatistics::SetWords(std::span<const int64_t> words) {
  CHECK_EQ(static_cast<int64_t>(words.size()), word_count());
  auto from = words.begin();
  rows_ = *from++;
  for (Kind* kind : {&stable_, &entropy_}) {
    std::copy_n(from, kBins, kind->histogram.begin());
    from += kBins;
  }
  ForEachSum(*this, [&from](ExactSum& sum) {
    std::array<int64_t, ExactSum::kWords> part;
    std::copy_n(from, part.size(), part.begin());
    from += ExactSum::kWords;
    sum = ExactSum::FromWords(part);
  });
}

SpectrumStatistics::Distribution SpectrumStatistics::DistributionOf(const Kind& kind) const {
  CHECK_GT(rows_, 0);
  const auto rows = static_cast<double>(rows_);
  Distribution result;
  result.mean = kind.sum.Value() / rows;
  result.histogram = kind.histogram;
  if (rows_ > 1) {
    const double squares = kind.squares.Value() - result.mean * kind.sum.Value();
    result.stddev = std::sqrt(std::max(squares, 0.0) / (rows - 1));
  }
  return result;
}

std::vector<double> SpectrumStatistics::profile() const {
  CHECK_GT(rows_, 0);
  std::vector<double> means;
  for (const ExactSum& sum : profile_) means.push_back(sum.Value() / static_cast<double>(rows_));
  return means;
}

}  // namespace elastor
