#include "trainer/prepare/values/value_merge.h"

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>
#include <vector>

#include "tests/trainer/prepare/prepare_reference.h"
#include "tests/trainer/prepare/scratch.h"

namespace elastor {
namespace {

// `count` runs of words, some in several runs, some runs without long values, one empty.
struct Runs {
  std::unique_ptr<WorkFile> file;
  std::vector<ValueRun> runs;
  std::vector<ValueRunView> views;
  std::map<std::string, std::set<int>> where;  // runs of every value
};

Runs MakeRuns(int count) {
  Runs made;
  made.file = std::move(WorkFile::Open(ScratchPath("values"))).value();
  for (int run = 0; run < count; ++run) {
    Vocabulary vocabulary;
    for (int row = 0; row < 700 * (run % 4); ++row) {
      std::string word = RawRowAt(run * 5000 + row).hashed;
      if (run % 2 == 0) word.resize(std::min<size_t>(word.size(), 8));
      vocabulary.Add(word);
      made.where[word].insert(run);
    }
    vocabulary.Sort();
    made.runs.push_back(*WriteValueRun(vocabulary, made.file.get()));
  }
  EXPECT_TRUE(made.file->Map().ok());
  for (const ValueRun& run : made.runs) made.views.emplace_back(run, *made.file);
  return made;
}

TEST(ValueMergeTest, AllValuesInOrderWithAllTheirPlacesInPartsOfAnySize) {
  const Runs runs = MakeRuns(9);
  for (const int64_t part_values : {1, 7, 500, 1 << 20}) {
    auto expected = runs.where.begin();
    const auto parts = CutRuns(runs.views, part_values);
    for (const std::vector<Range>& ranges : parts) {
      ValueMerge merge(runs.views, ranges);
      for (auto places = merge.Next(); !places.empty(); places = merge.Next(), ++expected) {
        ASSERT_NE(expected, runs.where.end());
        std::set<int> where;
        for (const RunPlace& place : places) {
          ShortText text(0, 0);
          EXPECT_EQ(runs.views[place.run].Value(place.at, &text), expected->first);
          where.insert(place.run);
        }
        EXPECT_EQ(where, expected->second);
      }
      for (const ValueRunView& run : runs.views) run.Forget(0, run.size());
    }
    EXPECT_EQ(expected, runs.where.end());
    EXPECT_EQ(parts.size() == 1, part_values == 1 << 20);
  }
}

TEST(ValueMergeTest, LowerBound) {
  const Runs runs = MakeRuns(4);
  for (const auto& [value, where] : runs.where) {
    for (const ValueRunView& run : runs.views) {
      const int64_t at = run.LowerBound(value);
      ShortText text(0, 0);
      EXPECT_TRUE(at == 0 || run.Value(at - 1, &text) < value);
      EXPECT_TRUE(at == run.size() || run.Value(at, &text) >= value);
    }
  }
}

}  // namespace
}  // namespace elastor
