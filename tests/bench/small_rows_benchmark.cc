// What INT8 and INT4 rows cost and save: small_rows_benchmark --data=DATA --models=RUN/model,...
// Models differ in the seed alone. Scores the test split with FLOAT32, INT8 and INT4 rows and
// prints for each format the AUC and logloss, the mean paired difference from FLOAT32 with its
// interval of 95 % (Student's t over the models), the bytes of embedding rows, and the rows a
// second of CPU time that one thread scores, one and 256 at a time.
#include <time.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <memory>
#include <numeric>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/log.h"
#include "core/base/student_t.h"
#include "core/base/text.h"
#include "core/kernels/elementwise.h"
#include "core/kernels/small_rows.h"
#include "gflags/gflags.h"
#include "trainer/data/dataset.h"
#include "trainer/evaluate/area_under_curve.h"
#include "trainer/score/scorer.h"

DEFINE_string(data, "", "the prepared set whose test split is scored");
DEFINE_string(models, "", "folders of models that one run each has left, between commas");
DEFINE_double(seconds, 1, "for each measured time");

namespace elastor {
namespace {

constexpr int64_t kBatch = 256;

double CpuSeconds() {
  timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

Rows ReadRows(const Dataset& data, const Range& range) {
  Rows rows;
  RowOrder order;
  order.shuffled = false;
  const Status read = data.Read(Split::kTest, order, 0, range, &rows);
  CHECK(read.ok()) << read.message();
  return rows;
}

struct Quality {
  double auc = 0, logloss = 0;
};
Quality Measure(const Scorer& scorer, const Dataset& data) {
  const int64_t count = data.rows(Split::kTest);
  std::vector<std::pair<uint32_t, bool>> ordered;
  double loss = 0;
  std::vector<float> logits;
  for (int64_t begin = 0; begin < count; begin += kBatch) {
    Rows rows = ReadRows(data, {begin, std::min(begin + kBatch, count)});
    const std::vector<float> labels = rows.labels;
    const Status scored = scorer.Score(&rows, &logits);
    CHECK(scored.ok()) << scored.message();
    for (size_t i = 0; i < labels.size(); ++i) {
      const float p = Sigmoid<float>(logits[i]);
      ordered.emplace_back(OrderedScore(p), labels[i] == 1);
      const double z = labels[i] == 1 ? logits[i] : -static_cast<double>(logits[i]);
      loss += z > 0 ? std::log1p(std::exp(-z)) : std::log1p(std::exp(z)) - z;
    }
  }
  std::ranges::sort(ordered);
  PairCounter pairs;
  int64_t positives = 0;
  for (const auto& [score, positive] : ordered) {
    pairs.Add(score, positive);
    positives += positive;
  }
  const double all = 2.0 * static_cast<double>(positives) * static_cast<double>(count - positives);
  return {static_cast<double>(pairs.Won()) / all, loss / static_cast<double>(count)};
}

// Rows a second, a median of several turns.
double Speed(const Scorer& scorer, const Dataset& data, int64_t batch) {
  std::vector<Rows> batches;
  const int64_t many = std::min<int64_t>(data.rows(Split::kTest) / batch, 64);
  for (int64_t i = 0; i < many; ++i) {
    batches.push_back(ReadRows(data, {i * batch, (i + 1) * batch}));
  }
  std::vector<float> logits;
  std::vector<double> speeds;
  const double end = CpuSeconds() + FLAGS_seconds;
  while (CpuSeconds() < end || speeds.size() < 5) {
    std::vector<Rows> copies = batches;
    const double begin = CpuSeconds();
    for (Rows& rows : copies) CHECK(scorer.Score(&rows, &logits).ok());
    speeds.push_back(static_cast<double>(many * batch) / (CpuSeconds() - begin));
  }
  std::ranges::sort(speeds);
  return speeds[speeds.size() / 2];
}

struct Bytes {
  int64_t stored = 0, memory = 0;  // of keys and weights in a folder; of the weights in memory
};
Bytes BytesOf(const Scorer& scorer) {
  Bytes bytes;
  for (int64_t t = 0; t < scorer.layout().tables(); ++t) {
    const int64_t rows = scorer.CountRows(t);
    const int64_t words = RowWords(scorer.row_format(), scorer.layout().width(t));
    bytes.stored += rows * (8 + words * 4);
    bytes.memory += rows * RowBytes({words, 0}, sizeof(float));
  }
  return bytes;
}

void Run() {
  const auto data = Dataset::Open(FLAGS_data);
  CHECK(data.ok()) << data.status().message();
  constexpr int kFormats = std::size(kRowFormats);
  std::vector<double> auc[kFormats], logloss[kFormats];
  double one[kFormats] = {}, many[kFormats] = {};
  Bytes bytes[kFormats];
  std::string_view rest = FLAGS_models;
  for (int model = 0; !rest.empty(); ++model) {
    const std::string folder(rest.substr(0, rest.find(',')));
    rest.remove_prefix(std::min(rest.size(), folder.size() + 1));
    for (int f = 0; f < kFormats; ++f) {
      const auto scorer = Scorer::Open(folder, nullptr, kRowFormats[f]);
      CHECK(scorer.ok()) << scorer.status().message();
      const Quality quality = Measure(**scorer, **data);
      auc[f].push_back(quality.auc);
      logloss[f].push_back(quality.logloss);
      if (model > 0) continue;
      one[f] = Speed(**scorer, **data, 1);
      many[f] = Speed(**scorer, **data, kBatch);
      bytes[f] = BytesOf(**scorer);
    }
  }
  const auto difference = [](const std::vector<double>& of, const std::vector<double>& from) {
    const auto n = static_cast<double>(of.size());
    double sum = 0, squares = 0;
    for (size_t i = 0; i < of.size(); ++i) sum += of[i] - from[i];
    const double mean = sum / n;
    for (size_t i = 0; i < of.size(); ++i) squares += std::pow(of[i] - from[i] - mean, 2);
    const double half = MeanHalfWidth(std::sqrt(squares / std::max(n - 1, 1.0)), std::ssize(of));
    return Format("%+.7f [%+.7f, %+.7f]", mean, mean - half, mean + half);
  };
  for (int f = 0; f < kFormats; ++f) {
    const auto mean = [](const std::vector<double>& v) {
      return std::accumulate(v.begin(), v.end(), 0.0) / static_cast<double>(v.size());
    };
    std::printf("%s: AUC %.6f, difference %s\n", std::string(RowFormatName(kRowFormats[f])).c_str(),
                mean(auc[f]), difference(auc[f], auc[0]).c_str());
    std::printf("  logloss %.6f, difference %s\n", mean(logloss[f]),
                difference(logloss[f], logloss[0]).c_str());
    std::printf("  bytes stored %lld, in memory %lld; rows a second %.0f (one), %.0f (256)\n",
                static_cast<long long>(bytes[f].stored), static_cast<long long>(bytes[f].memory),
                one[f], many[f]);
  }
}

}  // namespace
}  // namespace elastor

int main(int argc, char** argv) {
  gflags::ParseCommandLineFlags(&argc, &argv, true);
  elastor::Run();
}
