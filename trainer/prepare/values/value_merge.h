#ifndef ELASTOR_TRAINER_PREPARE_VALUES_VALUE_MERGE_H_
#define ELASTOR_TRAINER_PREPARE_VALUES_VALUE_MERGE_H_

#include <algorithm>
#include <cstdint>
#include <vector>

#include "core/base/leaves.h"
#include "trainer/data/value_runs.h"

namespace elastor {

// Where a value stands: in which of the merged runs, and where in it.
struct RunPlace {
  int run;
  int64_t at;
};

// Goes through parts of several sorted runs in ascending order of values, equal values together.
class ValueMerge {
 public:
  // Merges the values [ranges[i].begin, ranges[i].end) of every run i.
  ValueMerge(const std::vector<ValueRunView>& runs, const std::vector<Range>& ranges)
      : runs_(runs), ranges_(ranges) {
    for (const Range& range : ranges) at_.push_back(range.begin);
    for (int run = 0; run < static_cast<int>(runs.size()); ++run) {
      if (ranges[run].size() > 0) heap_.push_back(run);
    }
    std::make_heap(heap_.begin(), heap_.end(), After{this});
  }

  // The places of the next value, by run; empty at the end.
  const std::vector<RunPlace>& Next() {
    places_.clear();
    while (!heap_.empty() && (places_.empty() || EqualsFirst(heap_.front()))) {
      const int run = heap_.front();
      places_.push_back({run, at_[run]});
      Advance(run);
    }
    return places_;
  }

 private:
  struct After {
    const ValueMerge* merge;
    bool operator()(int a, int b) const { return merge->Comes(b, a); }
  };

  bool Comes(int a, int b) const {
    const int order = CompareValues(runs_[a], at_[a], runs_[b], at_[b]);
    return order != 0 ? order < 0 : a < b;
  }
  bool EqualsFirst(int run) const {
    const RunPlace& first = places_.front();
    return CompareValues(runs_[first.run], first.at, runs_[run], at_[run]) == 0;
  }
  // Moves the first run of the heap on, and down to where it belongs; the last run takes its place
  // when it is used up.
  void Advance(int run) {
    if (++at_[run] == ranges_[run].end) {
      run = heap_.back();
      heap_.pop_back();
      if (heap_.empty()) return;
    }
    const size_t size = heap_.size();
    size_t hole = 0;
    for (size_t child = 1; child < size; child = 2 * hole + 1) {
      if (child + 1 < size && Comes(heap_[child + 1], heap_[child])) ++child;
      if (!Comes(heap_[child], run)) break;
      heap_[hole] = heap_[child];
      hole = child;
    }
    heap_[hole] = run;
  }

  const std::vector<ValueRunView>& runs_;
  const std::vector<Range>& ranges_;
  std::vector<int64_t> at_;  // by run
  std::vector<int> heap_;    // runs with values left; the first one comes next
  std::vector<RunPlace> places_;
};

// The values of all runs cut into parts of about `part_values` values: ranges[part][run]. Equal
// values are in one part, and the values of a part come before those of the next.
std::vector<std::vector<Range>> CutRuns(const std::vector<ValueRunView>& runs, int64_t part_values);

}  // namespace elastor

#endif  // ELASTOR_TRAINER_PREPARE_VALUES_VALUE_MERGE_H_
