// Negatives: rows of label 0 that are made for a log of positive rows.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "core/base/text.h"
#include "tests/trainer/prepare/scratch.h"

namespace elastor {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

struct Event {
  int user, item, category, time;
  bool positive = true;

  auto Key() const { return std::tuple(user, time, item); }
  std::string Text() const {
    return StrCat(user, ",", item, ",", category, ",", positive ? 5 : 2, ",", time, "\n");
  }
};

// Users that have a few of 60 items, the small numbers most often. Times and rows repeat.
std::vector<Event> MakeEvents(int rows) {
  std::vector<Event> events;
  uint64_t state = 7;
  const auto draw = [&state](uint64_t below) {
    state = state * 6364136223846793005 + 1442695040888963407;
    return static_cast<int>((state >> 33) % below);
  };
  for (int i = 0; i < rows; ++i) {
    Event event = {draw(90), draw(8) * draw(8), 0, 1400000000 + draw(rows / 3), draw(5) > 0};
    event.category = event.item % 7 + 10 * (draw(50) == 0);  // a few are wrong
    events.push_back(event);
  }
  return events;
}

// The split of each row by shares of 0.7, 0.1 and 0.2 in order of time.
std::vector<int> SplitsByTime(const std::vector<Event>& events) {
  std::vector<int> times, splits;
  for (const Event& event : events) times.push_back(event.time);
  std::ranges::sort(times);
  const auto begin = [&](double share) {
    return times[std::llround(share * static_cast<double>(times.size()))];
  };
  for (const Event& event : events) {
    splits.push_back(event.time < begin(0.7) ? 0 : event.time < begin(0.8) ? 1 : 2);
  }
  return splits;
}

constexpr char kFields[] =
    "delimiter: ',' header: true "
    "fields { name: 'rating' type: LABEL at_least: 4 } fields { name: 'user' type: GROUP }"
    "fields { name: 'time' type: TIME }"
    "fields { name: 'uid' column: 'user' type: CATEGORICAL encoding: IDENTITY buckets: 1000 }"
    "fields { name: 'item' type: CATEGORICAL encoding: IDENTITY buckets: 1000 }"
    "fields { name: 'category' type: CATEGORICAL encoding: IDENTITY buckets: 1000 }"
    "fields { name: 'maker' type: CATEGORICAL encoding: IDENTITY buckets: 1000 }"
    "fields { name: 'h' type: SEQUENCE encoding: IDENTITY buckets: 1000 }"
    "history { name: 'h' of: 'item' by: 'user' where: 'rating >= 4' max_length: 9 } ";

std::string EventText(const std::vector<Event>& events) {
  std::string text = "user,item,category,rating,time\n";
  for (const Event& event : events) text += event.Text();
  return text;
}

PrepareOptions EventOptions(const std::vector<Event>& events, const std::string& negatives,
                            const std::string& output = "out") {
  std::string makers = "item,maker\n";
  for (int item = 0; item < 60; ++item) makers += StrCat(item, ",", 500 + item * 3, "\n");
  return OptionsOf(std::string(kFields) + "lookup { file: '" + WriteScratch("makers", makers) +
                       "' by: 'item' key: 'item' columns: 'maker' } "
                       "split { by: TIME train: 0.7 validation: 0.1 test: 0.2 } " +
                       negatives,
                   {WriteScratch("log", EventText(events))}, output);
}

void PrepareWell(const PrepareOptions& options) {
  const auto report = Prepare(options);
  ASSERT_TRUE(report.ok()) << report.status().message();
}

// A row as it was prepared.
struct Prepared {
  float label = 0;
  uint64_t group = 0;
  int64_t time = 0, user = 0, item = 0, category = 0, maker = 0;
  std::vector<int64_t> history;
};

std::vector<Prepared> Read(const std::string& folder, Split split) {
  const Rows rows = ReadAll(*OpenOrDie(folder), split);
  std::vector<Prepared> all;
  for (int64_t i = 0; i < rows.rows; ++i) {
    const int64_t* ids = rows.ids.data() + rows.offsets[5 * i];
    all.push_back({rows.labels[i], rows.groups[i], rows.times[i], ids[0], ids[1], ids[2], ids[3],
                   std::vector<int64_t>(ids + 4, rows.ids.data() + rows.offsets[5 * i + 5])});
  }
  return all;
}

// The prepared rows of all splits are those of the log in its order, each positive one with its
// negatives behind it, by their definition.
TEST(NegativesTest, EqualTheirDefinition) {
  const std::vector<Event> events = MakeEvents(3000);
  const std::vector<int> splits = SplitsByTime(events);
  const PrepareOptions options = EventOptions(
      events, "negatives { of: 'item' user: 'user' per_positive: 3 beside: 'category' }");
  PrepareWell(options);
  std::map<int, std::pair<int, int>> categories;  // of an item: time and value of the first row
  std::set<int> candidates;
  std::array<std::set<std::pair<int, int>>, 3> own;  // by split: those up to it
  for (size_t i = 0; i < events.size(); ++i) {
    const Event& event = events[i];
    if (!event.positive) continue;
    for (int split = splits[i]; split < 3; ++split) own[split].emplace(event.user, event.item);
    if (splits[i] > 0) continue;
    candidates.insert(event.item);
    const auto [at, is_new] = categories.emplace(event.item, std::pair(event.time, event.category));
    if (!is_new && event.time < at->second.first) at->second = {event.time, event.category};
  }
  int later_positives = 0;  // items that a training negative has, and its user in a later split
  for (int split = 0; split < 3; ++split) {
    const std::vector<Prepared> rows = Read(options.output_dir, static_cast<Split>(split));
    size_t at = 0;
    for (size_t i = 0; i < events.size(); ++i) {
      if (splits[i] != split) continue;
      const Event& event = events[i];
      ASSERT_LT(at + (event.positive ? 3 : 0), rows.size());
      const Prepared& row = rows[at++];
      ASSERT_EQ(row.label, event.positive);
      ASSERT_EQ(row.user, event.user);
      ASSERT_EQ(row.item, event.item);
      ASSERT_EQ(row.category, event.category);
      if (!event.positive) continue;
      std::set<int64_t> drawn;
      for (int j = 0; j < 3; ++j) {
        const Prepared& negative = rows[at++];
        const int item = static_cast<int>(negative.item);
        ASSERT_EQ(negative.label, 0);
        EXPECT_EQ(negative.user, event.user);
        EXPECT_EQ(negative.time, event.time);
        EXPECT_EQ(negative.group, row.group);
        EXPECT_EQ(negative.history, row.history);
        EXPECT_TRUE(drawn.insert(item).second) << item;
        EXPECT_TRUE(candidates.contains(item)) << item;
        EXPECT_FALSE(own[split].contains({event.user, item})) << item;
        EXPECT_EQ(negative.maker, 500 + item * 3);
        EXPECT_EQ(negative.category, categories.at(item).second) << item;
        later_positives += own[2].contains({event.user, item});
      }
    }
    EXPECT_EQ(at, rows.size());
  }
  EXPECT_GT(later_positives, 20);
}

TEST(NegativesTest, SameBytesForAnyThreadsMemoryAndFiles) {
  const std::vector<Event> events = MakeEvents(4000);
  const char* negatives = "negatives { of: 'item' user: 'user' seed: 3 beside: 'category' }";
  // Side tables take more memory than is given here.
  const auto options_of = [&](const std::string& text, const std::string& output) {
    PrepareOptions options = EventOptions(events, text, output);
    options.schema.clear_lookup();
    auto* fields = options.schema.mutable_fields();
    fields->erase(std::ranges::find(*fields, "maker", &Field::name));
    return options;
  };
  const PrepareOptions whole = options_of(negatives, "whole");
  PrepareWell(whole);
  const std::string text = EventText(events);
  const size_t cut = text.find('\n', text.size() / 3) + 1;
  const std::string header = text.substr(0, text.find('\n') + 1);
  for (const int threads : {1, 2, 5}) {
    PrepareOptions options = options_of(negatives, "out");
    options.inputs = {WriteScratch("1", Gzip(text.substr(0, cut))),
                      WriteScratch("2", header + text.substr(cut))};
    options.threads = threads;
    options.memory_bytes = threads == 1 ? int64_t{1} << 30 : threads * 100 << 10;
    PrepareWell(options);
    for (const char* part : {"/train.rows", "/validation.rows", "/test.rows"}) {
      EXPECT_TRUE(FileBytes(options.output_dir + part) == FileBytes(whole.output_dir + part))
          << part << threads;
    }
    EXPECT_FALSE(std::filesystem::exists(options.output_dir + ".partial"));
  }
  const PrepareOptions other =
      options_of("negatives { of: 'item' user: 'user' seed: 4 beside: 'category' }", "other");
  PrepareWell(other);
  EXPECT_FALSE(FileBytes(other.output_dir + "/train.rows") ==
               FileBytes(whole.output_dir + "/train.rows"));
}

// Rows of later splits get other users and items. No byte of the training rows changes. The same
// rows in another order in the file have the same negatives.
TEST(NegativesTest, DependOnNoLaterSplitAndOnNoPlaceInTheFile) {
  std::vector<Event> events = MakeEvents(3000);
  std::ranges::sort(events, {}, &Event::Key);
  const auto same = [](const Event& a, const Event& b) { return a.Key() == b.Key(); };
  events.erase(std::unique(events.begin(), events.end(), same), events.end());
  std::ranges::stable_sort(events, {}, &Event::time);
  const std::vector<int> splits = SplitsByTime(events);
  const char* negatives = "negatives { of: 'item' user: 'user' by: UNIFORM }";
  const PrepareOptions options = EventOptions(events, negatives);
  PrepareWell(options);
  const std::string train = FileBytes(options.output_dir + "/train.rows");
  const std::string test = FileBytes(options.output_dir + "/test.rows");
  const auto negatives_of = [&] {
    std::map<std::tuple<int64_t, int64_t, int64_t>, std::vector<int64_t>> all;
    for (const Split split : {Split::kTrain, Split::kValidation, Split::kTest}) {
      std::vector<int64_t>* drawn = nullptr;
      for (const Prepared& row : Read(options.output_dir, split)) {
        const std::tuple key(row.user, row.time, row.item);
        if (row.label == 1) drawn = &all[key];
        if (row.label == 0 && drawn != nullptr) drawn->push_back(row.item);
      }
    }
    return all;
  };
  std::erase_if(events, [](const Event& event) { return !event.positive; });
  PrepareWell(EventOptions(events, negatives));
  const auto before = negatives_of();
  std::vector<Event> shuffled = events;
  for (size_t i = 0; i < shuffled.size(); ++i) {
    std::swap(shuffled[i], shuffled[i * 7919 % shuffled.size()]);
  }
  PrepareWell(EventOptions(shuffled, negatives));
  EXPECT_EQ(before.size(), events.size());
  EXPECT_TRUE(negatives_of() == before);

  events = MakeEvents(3000);
  std::ranges::sort(events, {}, &Event::Key);
  events.erase(std::unique(events.begin(), events.end(), same), events.end());
  std::ranges::stable_sort(events, {}, &Event::time);
  for (size_t i = 0; i < events.size(); ++i) {
    if (splits[i] == 0) continue;
    events[i].user = (events[i].user * 31 + 5) % 90;
    events[i].item = (events[i].item * 17 + 3) % 60;
  }
  PrepareWell(EventOptions(events, negatives));
  EXPECT_TRUE(FileBytes(options.output_dir + "/train.rows") == train);
  EXPECT_FALSE(FileBytes(options.output_dir + "/test.rows") == test);
}

// The positive rows of a split, each with the ids of its own row and of its negatives, in a fixed
// order.
std::vector<std::vector<int64_t>> Groups(const std::string& folder, Split split) {
  const Rows rows = ReadAll(*OpenOrDie(folder), split);
  std::vector<std::vector<int64_t>> groups;
  for (int64_t i = 0; i < rows.rows; ++i) {
    if (rows.labels[i] == 1) groups.emplace_back();
    const int64_t fields = std::ssize(rows.ids) / rows.rows;
    const int64_t* const ids = rows.ids.data() + fields * i;
    groups.back().insert(groups.back().end(), ids, ids + fields);
  }
  std::ranges::sort(groups);
  return groups;
}

constexpr char kIds[] =
    "fields { names: ['user', 'item', 'category'] type: CATEGORICAL encoding: IDENTITY buckets: "
    "1000 } negatives { of: 'item' user: 'user' per_positive: 3 beside: 'category' } ";

// Many rows of each time, or no times. The same rows from last to first have the same negatives.
TEST(NegativesTest, OrderOfTheFilesDoesNotMatter) {
  std::vector<Event> events = MakeEvents(1500);
  for (Event& event : events) event.time = 1400000000 + event.time % 5;
  std::vector<Event> reversed(events.rbegin(), events.rend());
  for (const char* time : {"fields { name: 'time' type: TIME } ", ""}) {
    const auto groups_of = [&](const std::vector<Event>& rows, const char* output) {
      const PrepareOptions options = OptionsOf(StrCat("delimiter: ',' header: true ", time, kIds),
                                               {WriteScratch("log", EventText(rows))}, output);
      PrepareWell(options);
      return Groups(options.output_dir, Split::kTrain);
    };
    EXPECT_TRUE(groups_of(events, "out") == groups_of(reversed, "reversed")) << time;
  }
}

// By HASH, rows of other splits stand between the training rows. Without them no byte changes.
TEST(NegativesTest, OtherSplitsByHashChangeNoTrainingRow) {
  std::string text = "user,item,category,row\n";
  std::vector<std::string> lines;
  for (const Event& event : MakeEvents(1500)) {
    lines.push_back(StrCat(event.user % 9, ",", event.item, ",1,", lines.size(), "\n"));
    text += lines.back();
  }
  const std::string schema = StrCat(
      "delimiter: ',' header: true fields { name: 'row' type: CATEGORICAL encoding: IDENTITY "
      "buckets: 2000 } split { by: HASH train: 0.5 validation: 0.25 test: 0.25 } ",
      kIds);
  const PrepareOptions all = OptionsOf(schema, {WriteScratch("log", text)}, "all");
  PrepareWell(all);
  std::string training = "user,item,category,row\n";
  const Rows rows = ReadAll(*OpenOrDie(all.output_dir), Split::kTrain);
  for (int64_t i = 0; i < rows.rows; ++i) {
    if (rows.labels[i] == 1) training += lines[rows.ids[4 * i]];
  }
  ASSERT_LT(training.size(), text.size() * 2 / 3);
  const PrepareOptions alone = OptionsOf(schema, {WriteScratch("training", training)}, "alone");
  PrepareWell(alone);
  EXPECT_TRUE(FileBytes(alone.output_dir + "/train.rows") ==
              FileBytes(all.output_dir + "/train.rows"));
}

// One user has all items but 10. This takes minutes if each negative looks at all of them.
TEST(NegativesTest, AUserOfNearlyAllItems) {
  constexpr int kRows = 40000;
  std::string text = "user,item\n";
  for (int i = 0; i < kRows; ++i) text += StrCat("u,", i, "\n");
  for (int i = 0; i < 10; ++i) text += StrCat("v", i, ",", kRows + i, "\n");
  PrepareOptions options = OptionsOf(
      "delimiter: ',' header: true fields { name: 'item' type: CATEGORICAL encoding: "
      "IDENTITY buckets: 50000 } negatives { of: 'item' user: 'user' per_positive: 3 }",
      {WriteScratch("log", text)}, "out");
  int shown = 0;
  options.progress = [&](const PrepareProgress& now) {
    shown += now.phase == "drawing negatives" && now.share > 0;
  };
  PrepareWell(options);
  EXPECT_GE(shown, 2);
  std::vector<int> found(10);
  for (const std::vector<int64_t>& group : Groups(options.output_dir, Split::kTrain)) {
    ASSERT_EQ(group.size(), 4);
    if (group[0] >= kRows) continue;
    EXPECT_EQ(std::set<int64_t>(group.begin(), group.end()).size(), 4);
    for (size_t i = 1; i < 4; ++i) ++found.at(group[i] - kRows);
  }
  for (const int times : found) EXPECT_NEAR(times, kRows * 0.3, 500);  // five standard deviations

  options.memory_bytes = 4 << 20;
  std::filesystem::remove_all(options.output_dir);
  options.schema.mutable_negatives()->set_by(Negatives::UNIFORM);
  options.inputs = {WriteScratch("one_item", [] {
    std::string rows = "user,item\nv,2\n";
    for (int i = 0; i < kRows; ++i) rows += "u,1\n";
    return rows;
  }())};
  EXPECT_EQ(Prepare(options).status().message(),
            "negatives: the rows of one user take more than 1 MiB, a quarter of --memory_gib; "
            "expected a larger --memory_gib, or a missing value (null) where the user is not "
            "known");
}

TEST(NegativesTest, AlikeRowsWithoutAUserDrawEachTheirOwn) {
  std::string text = "user,item,category\n";
  for (int i = 0; i < 200; ++i) text += StrCat(",", i % 40, ",0\n");
  const PrepareOptions options = OptionsOf(
      "delimiter: ',' header: true fields { name: 'item' type: CATEGORICAL encoding: IDENTITY "
      "buckets: 50 } negatives { of: 'item' user: 'user' per_positive: 5 }",
      {WriteScratch("log", text)}, "out");
  PrepareWell(options);
  const auto groups = Groups(options.output_dir, Split::kTrain);
  ASSERT_EQ(groups.size(), 200);
  // Two of 200 rows are alike once in thousands of logs.
  EXPECT_EQ(std::set(groups.begin(), groups.end()).size(), 200);
}

// Users have items of one day each. An item of a later day gives -1 days, which is no id.
TEST(NegativesTest, BadNegativesAreToldWithTheirRowAndItem) {
  const std::string log = WriteScratch("log",
                                       "user,item,t,pub\nu1,a,2020-01-10,2020-01-01\n"
                                       "u2,b,2020-02-10,2020-02-01\nu3,c,2020-03-10,2020-03-01\n");
  PrepareOptions options = OptionsOf(
      "delimiter: ',' header: true max_bad_rows: 9 fields { name: 't' type: TIME time_format: "
      "YYYY_MM_DD_HH_MM_SS } fields { name: 'item' type: CATEGORICAL } fields { name: 'pub' type: "
      "CATEGORICAL transform: DAYS_SINCE time_format: YYYY_MM_DD_HH_MM_SS encoding: IDENTITY "
      "buckets: 100 } negatives { of: 'item' user: 'user' per_positive: 2 beside: 'pub' }",
      {log}, "out");
  std::vector<std::string> warnings;
  options.warn = [&](const std::string& line) { warnings.push_back(line); };
  const auto report = Prepare(options);
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_EQ(report->bad_rows, 3);
  EXPECT_EQ(report->rows[0], 3 + 6 - 3);
  const auto line = [&](int number, const char* item) {
    return testing::Contains(testing::StartsWith(StrCat(
        "bad row: ", log, ":", number, ": negative with item '", item, "': column 4 (pub)")));
  };
  EXPECT_THAT(warnings, testing::AllOf(line(2, "b"), line(2, "c"), line(3, "c")));
}

// One positive row a user. A negative of a user with item o is item i with probability
// weight(i) / (all - weight(o)).
TEST(NegativesTest, ItemsAreDrawnByTheirWeights) {
  constexpr int kItems = 12;
  std::vector<int> counts(kItems);
  std::string text = "user,item\n";
  int user = 0;
  for (int item = 0; item < kItems; ++item) {
    counts[item] = 40 + 30 * item * item;
    for (int i = 0; i < counts[item]; ++i) text += StrCat(++user, ",", item, "\n");
  }
  for (const bool uniform : {false, true}) {
    const PrepareOptions options =
        OptionsOf(StrCat("delimiter: ',' header: true fields { name: 'item' type: CATEGORICAL "
                         "encoding: IDENTITY buckets: 99 } negatives { of: 'item' user: 'user' "
                         "per_positive: 1 by: ",
                         uniform ? "UNIFORM }" : "POPULARITY }"),
                  {WriteScratch("log", text)}, "out");
    PrepareWell(options);
    const Rows rows = ReadAll(*OpenOrDie(options.output_dir), Split::kTrain);
    ASSERT_EQ(rows.rows, 2 * user);
    std::vector<double> found(kItems), expected(kItems);
    const auto weight = [&](int item) { return uniform ? 1.0 : counts[item]; };
    double all = 0;
    for (int item = 0; item < kItems; ++item) all += weight(item);
    for (int64_t i = 0; i < rows.rows; i += 2) {
      ASSERT_EQ(rows.labels[i], 1);
      ASSERT_EQ(rows.labels[i + 1], 0);
      ++found[rows.ids[i + 1]];
      const auto own = static_cast<int>(rows.ids[i]);
      for (int item = 0; item < kItems; ++item) {
        if (item != own) expected[item] += weight(item) / (all - weight(own));
      }
    }
    double chi_square = 0;
    for (int item = 0; item < kItems; ++item) {
      chi_square +=
          (found[item] - expected[item]) * (found[item] - expected[item]) / expected[item];
    }
    EXPECT_LT(chi_square, 31.3) << uniform;  // exceeded once in 1,000 by 11 degrees of freedom
  }
}

// Who has nearly all items gets those that are left; rows without a user or an item; rows to
// predict.
TEST(NegativesTest, WhereItemsOrValuesAreMissing) {
  std::string text;
  for (int item = 0; item < 30; ++item) text += StrCat("u\t", item, "\n");
  text += "v\ta\nv\tb\nw\tc\n\td\nx\t\n";
  PrepareOptions options = OptionsOf(
      "fields { name: 'user' type: GROUP } fields { name: 'item' type: CATEGORICAL }"
      "negatives { of: 'item' user: 'user' per_positive: 4 }",
      {WriteScratch("log", text)}, "out");
  options.test_inputs = {WriteScratch("rows", "u\t1\nv\ta\n")};
  options.unlabelled_test = true;
  std::vector<std::string> warnings;
  options.warn = [&](const std::string& line) { warnings.push_back(line); };
  PrepareWell(options);
  const std::unique_ptr<Dataset> dataset = OpenOrDie(options.output_dir);
  const Rows rows = ReadAll(*dataset, Split::kTrain);
  // Every row has 4 negatives, but for the last one, which lacks its item.
  EXPECT_EQ(rows.rows, 34 * 5 + 1);
  EXPECT_EQ(std::ranges::count(rows.labels, 1), 35);
  const Rows test = ReadAll(*dataset, Split::kTest);
  EXPECT_EQ(test.rows, 2);
  EXPECT_TRUE(std::isnan(test.labels[0]));
  EXPECT_THAT(warnings, testing::Not(testing::Contains(HasSubstr("negatives"))));

  warnings.clear();
  options.schema.mutable_negatives()->set_per_positive(6);
  std::filesystem::remove_all(options.output_dir);
  PrepareWell(options);
  // u has all but a, b, c and d.
  EXPECT_EQ(ReadAll(*OpenOrDie(options.output_dir), Split::kTrain).rows, 30 * 5 + 4 * 7 + 1);
  EXPECT_THAT(warnings, testing::Contains("negatives: 30 positive rows have fewer than 6, as their "
                                          "users have all other items"));
}

TEST(NegativesTest, SplitsByHashAndOrderAndFiles) {
  const std::vector<Event> events = MakeEvents(1000);
  const char* negatives = " negatives { of: 'item' user: 'user' per_positive: 2 }";
  const std::string log = WriteScratch("log", EventText(events));
  const std::string fields =
      "delimiter: ',' header: true fields { name: 'rating' type: LABEL at_least: 0 } "
      "fields { name: 'item' type: CATEGORICAL } ";
  const auto rows_of = [&](const std::string& split, bool by_files, const char* rest) {
    PrepareOptions options = OptionsOf(fields + split + rest, {log}, "out");
    if (by_files) {
      options.test_inputs = {
          WriteScratch("test", EventText({events.begin(), events.begin() + 90}))};
    }
    const auto report = Prepare(options);
    EXPECT_TRUE(report.ok()) << report.status().message();
    return report.ok() ? std::vector<int64_t>(report->rows, report->rows + 3)
                       : std::vector<int64_t>();
  };
  EXPECT_THAT(rows_of("split { train: 0.7 validation: 0.1 test: 0.2 }", false, negatives),
              ElementsAre(2100, 300, 600));
  EXPECT_THAT(rows_of("", true, negatives), ElementsAre(3000, 0, 270));
  const std::string hash = "split { by: HASH hash_field: 'item' train: 0.7 test: 0.3 }";
  const std::vector<int64_t> log_rows = rows_of(hash, false, "");
  EXPECT_THAT(rows_of(hash, false, negatives), ElementsAre(3 * log_rows[0], 0, 3 * log_rows[2]));
}

TEST(NegativesTest, Mistakes) {
  const std::string log = WriteScratch("log", "user,item,category,rating,time\n1,2,3,4,x\n");
  const auto message_of = [&](const std::string& negatives,
                              const std::string& fields =
                                  "fields { name: 'rating' type: LABEL at_least: 4 } "
                                  "fields { name: 'item' type: CATEGORICAL }") {
    const auto schema = ParseSchema(
        "delimiter: ',' header: true " + fields + " negatives { " + negatives + " }", "s");
    Status status = schema.status();
    if (status.ok()) {
      PrepareOptions options;
      options.schema = *schema;
      options.inputs = {log};
      options.output_dir = ScratchPath("out");
      status = Prepare(options).status();
    }
    EXPECT_EQ(status.code(), StatusCode::kUser) << negatives;
    EXPECT_EQ(status.message().find('\n'), std::string::npos);
    return status.message();
  };
  EXPECT_EQ(message_of("user: 'user'"),
            "s: negatives: of is missing; expected a column of the rows");
  EXPECT_EQ(message_of("of: 'item'"),
            "s: negatives: user is missing; expected a column of the rows");
  EXPECT_EQ(message_of("of: 'item' user: 'item'"),
            "s: negatives: of and user are both 'item'; expected the column of items and that of "
            "users");
  EXPECT_EQ(message_of("of: 'item' user: 'user' per_positive: 101"),
            "s: negatives: per_positive is 101; expected 1 to 100");
  EXPECT_EQ(message_of("of: 'item' user: 'user' beside: 'item'"),
            "s: negatives: column 'item' stands twice; expected it once");
  EXPECT_EQ(message_of("of: 'rating' user: 'user'"),
            "s: negatives: of is 'rating', the label; expected the column of items");
  EXPECT_EQ(message_of("of: 'item' user: 'uid'"),
            log +
                ":1: negatives: user: found columns 'user', 'item', 'category', 'rating', "
                "'time'; expected one 'uid'");
  const std::string items = WriteScratch("items", "item,born\n2,5\n");
  const auto changes = [&](const std::string& what, const std::string& column) {
    return log + ":1: negatives: " + what + " reads '" + column +
           "', which changes with the item; expected a column that does not";
  };
  const std::string item = "fields { name: 'item' type: CATEGORICAL } lookup { file: '" + items +
                           "' by: 'item' key: 'item' columns: 'born' } ";
  EXPECT_EQ(message_of("of: 'item' user: 'user' beside: 'time'",
                       item + "fields { name: 'time' type: TIME }"),
            changes("field time of type TIME", "time"));
  EXPECT_EQ(message_of("of: 'item' user: 'user'",
                       item + "fields { name: 'g' type: GROUP column: 'item' }"),
            changes("field g of type GROUP", "item"));
  EXPECT_EQ(message_of("of: 'item' user: 'user'",
                       item + "fields { name: 'w' type: WEIGHT column: 'born' }"),
            changes("field w of type WEIGHT", "born"));
  EXPECT_EQ(
      message_of("of: 'item' user: 'born'", item + "fields { name: 'born' type: CATEGORICAL }"),
      changes("user", "born"));
  EXPECT_EQ(message_of("of: 'item' user: 'user'",
                       "fields { name: 'rating' type: LABEL at_least: 5 } "
                       "fields { name: 'item' type: CATEGORICAL }"),
            "negatives: no positive training row has a value of item; expected some, whose items "
            "are drawn");
  EXPECT_EQ(message_of("of: 'item' user: 'user'",
                       "fields { names: ['rating', 'time'] type: LABEL } fields { name: 'item' }"),
            "s: negatives: there are several labels; expected one, or none");
  EXPECT_EQ(ParseSchema("layout: LIBSVM fields { name: 'a' } negatives { of: 'a' user: 'b' }", "s")
                .status()
                .message(),
            "s: negatives are for layout DELIMITED");
}

}  // namespace
}  // namespace elastor
