#include "trainer/prepare/synthetic/synthetic.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <functional>
#include <map>
#include <numeric>
#include <string>
#include <utility>

#include "core/base/leaves.h"
#include "core/base/text.h"
#include "trainer/data/block_format.h"
#include "trainer/prepare/split_ranges.h"
#include "trainer/prepare/synthetic/history_teacher.h"
#include "trainer/prepare/synthetic/teacher.h"

namespace elastor {
namespace {

std::string Numbered(char letter, int number) { return letter + std::to_string(number); }

// One block of rows being made.
struct Draft {
  std::string block;
  std::vector<double> logits;  // [rows][labels]
  std::vector<float> labels;   // [rows][labels]
  std::vector<uint64_t> groups;
};

// Appends a row and returns its labels' true logits.
using AppendRow = std::function<std::vector<double>(int64_t row, Rows* rows)>;

AppendRow RowsOf(const Synthetic& plan) {
  if (plan.teacher() == Synthetic::HISTORY) {
    return [teacher = HistoryTeacher(plan)](int64_t row, Rows* rows) {
      return std::vector{teacher.AppendRow(row, rows)};
    };
  }
  return
      [teacher = Teacher(plan)](int64_t row, Rows* rows) { return teacher.AppendRow(row, rows); };
}

void MakeDraft(const AppendRow& append_row, const DatasetInfo& info, const Range& range,
               Draft* draft) {
  Rows rows;
  draft->logits.clear();
  for (int64_t row = range.begin; row < range.end; ++row) {
    const std::vector<double> logits = append_row(row, &rows);
    draft->logits.insert(draft->logits.end(), logits.begin(), logits.end());
  }
  draft->block = EncodeBlock(info, rows);
  draft->labels = std::move(rows.labels);
  draft->groups = std::move(rows.groups);
}

// AUC of the teacher's scores over the rows that have the label. scores, labels: [rows][count].
double BestAuc(const std::vector<double>& scores, const std::vector<float>& labels, size_t count,
               size_t label) {
  std::vector<double> own_scores;
  std::vector<float> own_labels;
  for (size_t at = label; at < labels.size(); at += count) {
    if (std::isnan(labels[at])) continue;
    own_scores.push_back(scores[at]);
    own_labels.push_back(labels[at]);
  }
  return ExactAuc(own_scores, own_labels);
}

}  // namespace

DatasetInfo SyntheticInfo(const Schema& schema) {
  const Synthetic& plan = schema.synthetic();
  DatasetInfo info;
  info.name = schema.name();
  info.rows_per_block = schema.rows_per_block();
  for (int i = 1; plan.labels() > 1 && i <= plan.labels(); ++i) {
    info.labels.push_back({Numbered('L', i)});
  }
  for (int i = 1; i <= plan.numeric_fields(); ++i) {
    info.numeric.push_back({Numbered('N', i)});
  }
  for (int i = 1; i <= plan.categorical_fields(); ++i) {
    info.categorical.push_back(
        {Numbered('C', i), plan.ids_per_field(), false, false, -1, "planted"});
  }
  for (int i = 1; i <= plan.multi_hot_fields(); ++i) {
    info.categorical.push_back(
        {Numbered('M', i), plan.ids_per_field(), true, false, -1, "planted"});
  }
  for (DatasetInfo::Categorical& field : info.categorical) {
    if (plan.drift() == 0) break;
    field.ids = 0;
    field.keyed = info.has_times = true;
  }
  if (plan.teacher() == Synthetic::HISTORY) {
    info.has_groups = true;
    info.categorical.push_back({"history", plan.ids_per_field(), true, true, 0, "planted",
                                StrCat("last ", plan.history_length())});
  }
  return info;
}

namespace {

// mantissa * 2^exponent, as x86-64's long double has it: 64 bits, the first of them set.
struct Extended {
  uint64_t mantissa;
  int exponent;
};
Extended ToExtended(uint64_t number) {
  const int shift = std::countl_zero(number);
  return {number << shift, -shift};
}
Extended Divide(Extended x, Extended y) {
  const int shift = x.mantissa < y.mantissa ? 64 : 63;
  const auto dividend = static_cast<unsigned __int128>(x.mantissa) << shift;
  auto quotient = static_cast<uint64_t>(dividend / y.mantissa);
  const auto twice_rest = dividend % y.mantissa * 2;
  int exponent = x.exponent - y.exponent - shift;
  // To nearest, ties to even.
  if (twice_rest > y.mantissa || (twice_rest == y.mantissa && quotient % 2 == 1)) {
    if (++quotient == 0) return {uint64_t{1} << 63, exponent + 1};
  }
  return {quotient, exponent};
}

}  // namespace

double ExactAuc(const std::vector<double>& scores, const std::vector<float>& labels) {
  std::vector<size_t> order(scores.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return scores[a] < scores[b]; });
  // Twice the number of (positive, negative) pairs in the right order, equal scores counting one.
  uint64_t twice = 0;
  int64_t negatives = 0, positives = 0;
  for (size_t begin = 0; begin < order.size();) {
    int64_t equal_positives = 0, equal_negatives = 0;
    size_t end = begin;
    for (; end < order.size() && scores[order[end]] == scores[order[begin]]; ++end) {
      ++(labels[order[end]] > 0.5f ? equal_positives : equal_negatives);
    }
    twice += static_cast<uint64_t>(equal_positives) * (2 * negatives + equal_negatives);
    positives += equal_positives;
    negatives += equal_negatives;
    begin = end;
  }
  if (positives == 0 || negatives == 0) return -1;
  if (twice == 0) return 0;
  const Extended auc =
      Divide(Divide(ToExtended(twice), ToExtended(2 * positives)), ToExtended(negatives));
  return std::ldexp(static_cast<double>(auc.mantissa), auc.exponent);
}

double ExactGauc(const std::vector<double>& scores, const std::vector<float>& labels,
                 const std::vector<uint64_t>& groups) {
  std::map<uint64_t, std::pair<std::vector<double>, std::vector<float>>> by_group;
  for (size_t i = 0; i < groups.size(); ++i) {
    by_group[groups[i]].first.push_back(scores[i]);
    by_group[groups[i]].second.push_back(labels[i]);
  }
  double sum = 0, rows = 0;
  for (const auto& [group, of_group] : by_group) {
    const double auc = ExactAuc(of_group.first, of_group.second);
    if (auc < 0) continue;
    const auto count = static_cast<double>(of_group.second.size());
    sum += count * auc;
    rows += count;
  }
  return rows == 0 ? -1 : sum / rows;
}

Status WriteSynthetic(const PrepareOptions& options, ThreadPool* pool, DatasetWriter* writer,
                      PrepareReport*) {
  const AppendRow append_row = RowsOf(options.schema.synthetic());
  const int64_t labels_a_row = std::max(options.schema.synthetic().labels(), 1);
  const int64_t total = options.schema.synthetic().rows();
  const int64_t block_rows = writer->info().rows_per_block;
  const std::array<Range, 3> splits = SplitRanges(options.schema.split(), total);
  std::vector<double> logits;
  std::vector<float> labels;
  std::vector<uint64_t> groups;
  std::vector<Draft> drafts(4 * pool->threads());
  for (const Split split : {Split::kTrain, Split::kValidation, Split::kTest}) {
    const Range range = splits[static_cast<int>(split)];
    const int64_t together = static_cast<int64_t>(drafts.size());
    const int64_t blocks = (range.size() + block_rows - 1) / block_rows;
    for (int64_t first = 0; first < blocks; first += together) {
      const int64_t count = std::min(together, blocks - first);
      pool->ParallelFor(count, 1, [&](int, int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
          const int64_t row = range.begin + (first + i) * block_rows;
          MakeDraft(append_row, writer->info(), {row, std::min(row + block_rows, range.end)},
                    &drafts[i]);
        }
      });
      for (int64_t i = 0; i < count; ++i) {
        const Draft& draft = drafts[i];
        ELASTOR_RETURN_IF_ERROR(writer->AppendEncoded(
            split, static_cast<int64_t>(draft.labels.size()) / labels_a_row, draft.block));
        if (split != Split::kValidation) continue;
        logits.insert(logits.end(), draft.logits.begin(), draft.logits.end());
        labels.insert(labels.end(), draft.labels.begin(), draft.labels.end());
        groups.insert(groups.end(), draft.groups.begin(), draft.groups.end());
      }
      if (options.progress) {
        const int64_t done = std::min(range.begin + (first + count) * block_rows, range.end);
        options.progress(
            {"writing", static_cast<double>(done) / static_cast<double>(total), done, 0});
      }
    }
  }
  std::vector<double> best;
  for (int64_t i = 0; i < labels_a_row; ++i) {
    best.push_back(BestAuc(logits, labels, labels_a_row, i));
  }
  writer->set_best_auc(best);
  writer->set_best_gauc(ExactGauc(logits, labels, groups));
  return writer->Commit({});
}

}  // namespace elastor
