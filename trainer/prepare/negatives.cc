#include "trainer/prepare/negatives.h"

#include <xxhash.h>

#include <algorithm>
#include <array>
#include <compare>
#include <cstdio>
#include <cstring>
#include <iterator>
#include <numeric>
#include <utility>

#include "core/base/random.h"
#include "core/base/text.h"
#include "trainer/data/sized_text.h"
#include "trainer/data/vocabulary.h"
#include "trainer/prepare/external_sort.h"
#include "trainer/prepare/rows/time_splits.h"
#include "trainer/prepare/split_ranges.h"
#include "trainer/prepare/work_appender.h"

namespace elastor {
namespace {

constexpr uint32_t kUnknownSplit = 3;  // until all rows are counted
constexpr const char* kSuffixes[] = {".rows", ".times", ".unordered", ".draws"};

using UserHash = std::array<uint64_t, 2>;  // XXH3-128 of the text; zeros: the row has no user

// A row of the log. A positive one's text has its item and what stands beside it; if the row lacks
// the item, it has no text. Rows of a user follow one another, and alike ones of all users, too.
// The place in the files comes last in the order: no two rows have the same.
struct LoggedRow {
  UserHash user = {};
  int64_t time = 0;
  uint64_t text_hash = 0;  // XXH3-64; 0: there is no text
  uint32_t input = 0, chunk = 0, record = 0;
  uint32_t row = 0;    // of the chunk's good ones
  uint32_t bytes = 0;  // of text
  uint32_t split = 0;

  size_t text_bytes() const { return bytes; }
  auto operator<=>(const LoggedRow&) const = default;
};

// The time of a row. Which of two equal ones comes first does not matter.
struct RowTime {
  int64_t time = 0;

  static size_t text_bytes() { return 0; }
  auto operator<=>(const RowTime&) const = default;
};

// What is drawn for a record. The text has the numbers of the items.
struct DrawHead {
  int64_t record = 0;  // of all inputs
  uint32_t split = 0;
  uint32_t items = 0;

  size_t text_bytes() const { return items * sizeof(uint32_t); }
  auto operator<=>(const DrawHead&) const = default;
};

int64_t StrideOf(uint32_t most) { return int64_t{sizeof(uint32_t)} * (2 + most); }

// Reads all inputs and sorts their rows by user.
class LogCollector {
 public:
  using Rows = ExternalSort<LoggedRow>;
  using Times = ExternalSort<RowTime>;

  LogCollector(const PrepareOptions& options, const PreparePlan& plan, const LogSource& source,
               WorkFile* rows, WorkFile* times, ThreadPool* pool)
      : options_(options),
        plan_(plan),
        source_(source),
        threads_(pool->threads()),
        by_time_(plan.schema.split().by() == SplitPlan::TIME),
        pass_(options, source, "reading rows for negatives", pool),
        rows_(rows),
        times_(times) {}

  Status Run();
  // Calls visit(row, text) for all rows, sorted by user, then by time. REQUIRES: Run.
  template <typename Visit>
  Status Merge(const Visit& visit) {
    return rows_.Merge(source_.memory_bytes / 4, [&](LoggedRow row, std::string_view text) {
      if (row.split == kUnknownSplit) row.split = static_cast<uint32_t>(SplitOf(row));
      return visit(row, text);
    });
  }
  // User error when a split by time has none of these rows.
  Status CheckSplits(const std::array<int64_t, 3>& rows, int64_t first, int64_t last) const {
    if (!by_time_) return OkStatus();
    return CheckSplitRows(plan_.schema.split(), time_splits_, rows, first, last);
  }
  const LogPass& pass() const { return pass_; }

 private:
  // The split as far as a row tells it, or its input.
  uint32_t SplitBefore(uint32_t input, const ParsedChunk& parsed, int64_t row) const;
  int SplitOf(const LoggedRow& row) const;
  Status FindSplits();

  const PrepareOptions& options_;
  const PreparePlan& plan_;
  const LogSource& source_;
  const int threads_;
  const bool by_time_;
  LogPass pass_;
  Rows rows_;
  Times times_;
  TimeSplits time_splits_;
  std::array<Range, 3> ranges_;  // of rows in the order of the files
  std::vector<std::vector<int64_t>> first_rows_;
};

uint32_t LogCollector::SplitBefore(uint32_t input, const ParsedChunk& parsed, int64_t row) const {
  const size_t train = options_.inputs.size();
  const size_t validation = options_.validation_inputs.size();
  if (input >= train) return input < train + validation ? 1 : 2;
  if (plan_.split_by_hash) {
    return static_cast<uint32_t>(SplitOfHash(plan_.schema.split(), parsed.split_hashes[row]));
  }
  return plan_.stores_splits ? kUnknownSplit : 0;
}

int LogCollector::SplitOf(const LoggedRow& row) const {
  if (by_time_) return time_splits_.SplitOf(row.time);
  const int64_t number = first_rows_[row.input][row.chunk] + row.row;
  return number < ranges_[1].begin ? 0 : number < ranges_[2].begin ? 1 : 2;
}

Status LogCollector::Run() {
  const SplitPlan& split = plan_.schema.split();
  const bool needs_times = by_time_ && split.validation_from().empty() && split.test_from().empty();
  const int64_t share = source_.memory_bytes / 4 / threads_;
  std::vector<Rows::Batch> rows;
  std::vector<Times::Batch> times;
  for (int i = 0; i < threads_; ++i) {
    rows.emplace_back(share);
    times.emplace_back(needs_times ? share / 4 : 0);
  }
  const auto visit = [&](int thread, const TextChunk& source, const ParsedChunk& parsed) -> Status {
    if (source.input >= source_.labelled) return OkStatus();
    const size_t columns = 2 + plan_.schema.negatives().beside_size();
    LoggedRow row;
    row.input = source.input;
    row.chunk = source.number;
    ForEachRow(parsed, [&](int64_t i, uint32_t record) {
      const uint64_t* events = parsed.events.data() + i * columns;
      const std::string_view user = parsed.TextOf(events[0]), item = parsed.TextOf(events[1]);
      row.record = record;
      row.row = static_cast<uint32_t>(i);
      row.time = parsed.times.empty() ? 0 : parsed.times[i];
      row.split = SplitBefore(source.input, parsed, i);
      row.user = {};
      if (!user.empty()) {
        const XXH128_hash_t hash = XXH3_128bits(user.data(), user.size());
        row.user = {hash.high64, hash.low64};
      }
      std::string text;
      if (parsed.labels[i] == 1 && !item.empty()) {
        for (size_t j = 1; j < columns; ++j) PutText(parsed.TextOf(events[j]), &text);
      }
      row.text_hash = text.empty() ? 0 : XXH3_64bits(text.data(), text.size());
      row.bytes = static_cast<uint32_t>(text.size());
      rows[thread].Add(row, text);
      if (needs_times) times[thread].Add({row.time}, "");
    });
    if (times[thread].full() && needs_times) ELASTOR_RETURN_IF_ERROR(times_.Spill(&times[thread]));
    return rows[thread].full() ? rows_.Spill(&rows[thread]) : OkStatus();
  };
  ELASTOR_RETURN_IF_ERROR(pass_.Run(visit, [&](int thread) -> Status {
    ELASTOR_RETURN_IF_ERROR(times_.Spill(&times[thread]));
    return rows_.Spill(&rows[thread]);
  }));
  return FindSplits();
}

Status LogCollector::FindSplits() {
  first_rows_ = pass_.FirstRows();
  const SplitPlan& split = plan_.schema.split();
  const int64_t rows = first_rows_.back().back();
  ranges_ = SplitRanges(split, rows);
  if (!by_time_) return OkStatus();
  const auto times_of_ranks =
      [this](const std::vector<int64_t>& ranks) -> StatusOr<std::vector<int64_t>> {
    std::vector<int64_t> times;
    int64_t rank = 0;
    const auto visit = [&](const RowTime& row, std::string_view) {
      while (times.size() < ranks.size() && ranks[times.size()] == rank) times.push_back(row.time);
      ++rank;
      return OkStatus();
    };
    ELASTOR_RETURN_IF_ERROR(times_.Merge(source_.memory_bytes / 4, visit));
    return times;
  };
  ELASTOR_ASSIGN_OR_RETURN(time_splits_, TimeSplitsOf(split, rows, times_of_ranks));
  return OkStatus();
}

// Compares sized texts one after another.
bool AreSmaller(std::string_view a, std::string_view b) {
  while (!a.empty()) {
    const std::string_view first = TakeText(&a), second = TakeText(&b);
    if (first != second) return first < second;
  }
  return false;
}

// The items of positive training rows, numbered in the order of their texts.
class Candidates {
 public:
  explicit Candidates(const Negatives& plan) : plan_(plan) {}

  // Adds a positive training row.
  void Add(const LoggedRow& row, std::string_view text) {
    const std::string_view item = TakeText(&text);
    const uint32_t added = added_.Add(item);
    text_bytes_ += SizeBytes(item.size());
    if (added == counts_.size()) {
      text_bytes_ += static_cast<int64_t>(item.size());
      counts_.push_back(0);
      texts_.emplace_back(item);
      if (plan_.beside_size() > 0) earliest_.emplace_back();
    }
    ++counts_[added];
    if (plan_.beside_size() == 0) return;
    Earliest& earliest = earliest_[added];
    if (counts_[added] > 1) {
      if (row.time > earliest.time) return;
      if (row.time == earliest.time && !AreSmaller(text, earliest.beside)) return;
    }
    text_bytes_ += std::ssize(text) - std::ssize(earliest.beside);
    earliest = {row.time, std::string(text)};
  }

  // Once all rows are added.
  void End(DrawnItems* items) {
    std::vector<uint32_t> order(counts_.size());
    std::iota(order.begin(), order.end(), 0);
    std::ranges::sort(order, {},
                      [this](uint32_t added) { return std::string_view(texts_[added]); });
    numbers_.resize(order.size());
    for (const uint32_t added : order) {
      numbers_[added] = static_cast<uint32_t>(ends_.size());
      items->Add(texts_[added]);
      if (plan_.beside_size() > 0) {
        std::string_view beside = earliest_[added].beside;
        while (!beside.empty()) items->Add(TakeText(&beside));
      }
      total_ += plan_.by() == Negatives::UNIFORM ? 1 : counts_[added];
      ends_.push_back(total_);
    }
    texts_ = {};
    earliest_ = {};
    counts_ = {};
  }

  int64_t bytes() const {
    constexpr int64_t kItem = sizeof(std::string) + 2 * sizeof(uint64_t) + 2 * sizeof(uint32_t);
    const auto beside = static_cast<int64_t>(earliest_.size() * sizeof(Earliest));
    return added_.bytes() + kItem * std::ssize(counts_) + beside + 2 * text_bytes_;
  }
  int64_t size() const { return added_.size(); }
  // Returns the item's number; -1: it is not one.
  int64_t Find(std::string_view item) const {
    const int64_t added = added_.Find(item);
    return added < 0 ? -1 : int64_t{numbers_[added]};
  }
  uint64_t total() const { return total_; }
  // Returns the item whose share of [0, total) has `place`.
  uint32_t At(uint64_t place) const {
    return static_cast<uint32_t>(std::ranges::upper_bound(ends_, place) - ends_.begin());
  }
  uint64_t begin(uint32_t item) const { return item == 0 ? 0 : ends_[item - 1]; }
  uint64_t weight(uint32_t item) const { return ends_[item] - begin(item); }

 private:
  struct Earliest {
    int64_t time = 0;
    std::string beside;
  };

  const Negatives& plan_;
  Vocabulary added_;  // in the order of Add
  std::vector<uint64_t> counts_;
  std::vector<std::string> texts_;
  std::vector<Earliest> earliest_;
  int64_t text_bytes_ = 0;
  std::vector<uint32_t> numbers_;  // by place in added_
  std::vector<uint64_t> ends_;
  uint64_t total_ = 0;
};

// Draws for the rows of one user after another.
class Drawer {
 public:
  Drawer(const Negatives& plan, const Candidates& candidates)
      : candidates_(candidates),
        most_(static_cast<size_t>(plan.per_positive())),
        key_(MakeRandomKey(static_cast<uint64_t>(plan.seed()), RandomPurpose::kNegatives, 0)) {}

  struct Row {
    int64_t record;
    uint64_t key;         // of the random numbers; alike rows have it in common
    uint32_t occurrence;  // among the alike rows of its split
    uint32_t split;
  };

  // Adds a positive row. REQUIRES: alike rows follow one another, also across End.
  void Add(const LoggedRow& row, int64_t record, std::string_view text) {
    const uint64_t parts[] = {row.user[0], row.user[1], static_cast<uint64_t>(row.time),
                              row.text_hash};
    const uint64_t key = XXH3_64bits(parts, sizeof parts);
    if (key != last_key_) alike_ = {};
    last_key_ = key;
    rows_.push_back({record, key, alike_[row.split]++, row.split});
    const int64_t number = candidates_.Find(TakeText(&text));
    if (number >= 0) own_.emplace_back(static_cast<uint32_t>(number), row.split);
  }
  // Of the rows since the last End, and of what it needs for them.
  int64_t bytes() const {
    return std::ssize(rows_) * int64_t{sizeof(Row)} +
           std::ssize(own_) * int64_t{sizeof(own_[0]) + sizeof(Gap)};
  }

  // Calls visit(row, items) for the rows since the last call.
  template <typename Visit>
  Status End(const Visit& visit) {
    // Of an item, the earliest split stays.
    std::ranges::sort(own_);
    const auto same = [](const auto& a, const auto& b) { return a.first == b.first; };
    own_.erase(std::unique(own_.begin(), own_.end(), same), own_.end());
    for (uint32_t split = 0; split < 3; ++split) {
      if (std::ranges::find(rows_, split, &Row::split) == rows_.end()) continue;
      LeaveOut(split);
      for (const Row& row : rows_) {
        if (row.split != split) continue;
        Draw(row);
        ELASTOR_RETURN_IF_ERROR(visit(row, drawn_));
      }
    }
    rows_.clear();
    own_.clear();
    return OkStatus();
  }
  int64_t short_rows() const { return short_rows_; }

 private:
  // The candidates that are left for the user have shares of [0, left_), in their order. An item of
  // the user is a gap between them.
  struct Gap {
    uint64_t at;       // in [0, left_]
    uint64_t skipped;  // weight of this gap and all before it
  };
  // The share of an item that is drawn.
  struct Share {
    uint64_t begin;  // in [0, left_)
    uint64_t weight;
  };

  // Leaves out the user's items of the split and earlier ones.
  void LeaveOut(uint32_t split) {
    gaps_.clear();
    uint64_t skipped = 0;
    for (const auto& [item, own_split] : own_) {
      if (own_split > split) continue;
      const uint64_t at = candidates_.begin(item) - skipped;
      skipped += candidates_.weight(item);
      gaps_.push_back({at, skipped});
    }
    left_ = candidates_.total() - skipped;
  }

  void Draw(const Row& row) {
    drawn_.clear();
    shares_.clear();
    uint64_t left = left_;
    while (drawn_.size() < most_) {
      if (left == 0) {
        ++short_rows_;
        return;
      }
      const PhiloxBlock bits =
          Philox(key_, {static_cast<uint32_t>(row.key), static_cast<uint32_t>(row.key >> 32),
                        row.occurrence, 4 * static_cast<uint32_t>(drawn_.size()) + row.split});
      uint64_t place = Below(uint64_t{bits[0]} << 32 | bits[1], left);
      for (const Share& share : shares_) {
        if (share.begin <= place) place += share.weight;
      }
      const auto gap = std::ranges::upper_bound(gaps_, place, {}, &Gap::at);
      const uint64_t skipped = gap == gaps_.begin() ? 0 : std::prev(gap)->skipped;
      const uint32_t item = candidates_.At(place + skipped);
      const Share share = {candidates_.begin(item) - skipped, candidates_.weight(item)};
      shares_.insert(std::ranges::upper_bound(shares_, share.begin, {}, &Share::begin), share);
      left -= share.weight;
      drawn_.push_back(item);
    }
  }

  static uint64_t Below(uint64_t random, uint64_t end) {
    return static_cast<uint64_t>(static_cast<unsigned __int128>(random) * end >> 64);
  }

  const Candidates& candidates_;
  const size_t most_;
  const uint64_t key_;
  uint64_t last_key_ = 0;
  std::array<uint32_t, 3> alike_ = {};  // rows with last_key_, by split
  std::vector<Row> rows_;
  std::vector<std::pair<uint32_t, uint32_t>> own_;  // the user's positive items and their splits
  std::vector<Gap> gaps_;
  uint64_t left_ = 0;
  std::vector<uint32_t> drawn_;
  std::vector<Share> shares_;  // of what is drawn, ascending
  int64_t short_rows_ = 0;
};

Status Damaged(const std::string& path) {
  return MachineError(path + ": working files are damaged; begin anew with --restart");
}

// Writes what is drawn, in the order of records. Each takes StrideOf(most) bytes.
Status WriteDraws(const std::string& path, ExternalSort<DrawHead>* sorted, int64_t records,
                  uint32_t most, int64_t memory_bytes, WorkFile* file) {
  Appender all(file);
  std::string bytes(StrideOf(most), '\0');
  int64_t next = 0;
  const auto skip_to = [&](int64_t record) -> Status {
    std::ranges::fill(bytes, '\0');
    for (; next < record; ++next) ELASTOR_RETURN_IF_ERROR(all.Append(bytes));
    return OkStatus();
  };
  ELASTOR_RETURN_IF_ERROR(
      sorted->Merge(memory_bytes, [&](const DrawHead& head, std::string_view items) -> Status {
        if (head.record < next || head.record >= records || head.items > most) {
          return Damaged(path);
        }
        ELASTOR_RETURN_IF_ERROR(skip_to(head.record));
        const uint32_t numbers[] = {head.split, head.items};
        std::memcpy(bytes.data(), numbers, sizeof numbers);
        std::memcpy(bytes.data() + sizeof numbers, items.data(), items.size());
        ++next;
        return all.Append(bytes);
      }));
  ELASTOR_RETURN_IF_ERROR(skip_to(records));
  return all.Flush();
}

}  // namespace

DrawnNegatives::DrawnNegatives(const Schema& schema, std::string path)
    : path_(std::move(path)),
      most_(static_cast<uint32_t>(schema.negatives().per_positive())),
      items_(1 + schema.negatives().beside_size()) {}

DrawnNegatives::~DrawnNegatives() {
  for (const char* suffix : kSuffixes) std::remove((path_ + suffix).c_str());
}

StatusOr<std::unique_ptr<DrawnNegatives>> DrawnNegatives::Make(const PrepareOptions& options,
                                                               const PreparePlan& plan,
                                                               const LogSource& source,
                                                               const std::string& path,
                                                               ThreadPool* pool) {
  std::unique_ptr<DrawnNegatives> made(new DrawnNegatives(plan.schema, path));
  std::unique_ptr<WorkFile> files[3];
  for (int i = 0; i < 3; ++i) {
    ELASTOR_ASSIGN_OR_RETURN(files[i], WorkFile::Open(path + kSuffixes[i]));
  }
  ELASTOR_ASSIGN_OR_RETURN(made->draws_, WorkFile::Open(path + kSuffixes[3]));
  LogCollector log(options, plan, source, files[0].get(), files[1].get(), pool);
  ELASTOR_RETURN_IF_ERROR(log.Run());
  made->first_records_ = log.pass().FirstRecords();
  const int64_t records = made->first_records_.back().back();
  const auto record_of = [&](const LoggedRow& row) {
    const bool known = row.input < made->first_records_.size() &&
                       row.chunk + 1 < made->first_records_[row.input].size();
    return known ? made->first_records_[row.input][row.chunk] + row.record : records;
  };
  int64_t done = 0;
  const auto show = [&](const char* phase, int64_t of) {
    constexpr int64_t kRows = 1 << 14;
    if (done++ % kRows > 0 || !options.progress) return;
    options.progress({phase, double(done - 1) / double(std::max<int64_t>(of, 1)), done - 1, 0});
  };
  const Negatives& negatives = plan.schema.negatives();
  Candidates candidates(negatives);
  std::array<int64_t, 3> rows = {};
  int64_t first = 0, last = 0;
  ELASTOR_RETURN_IF_ERROR(log.Merge([&](const LoggedRow& row, std::string_view text) -> Status {
    if (record_of(row) >= records || row.split > 2) return Damaged(path);
    show("counting items", records);
    const bool is_first = rows[0] + rows[1] + rows[2] == 0;
    first = is_first ? row.time : std::min(first, row.time);
    last = is_first ? row.time : std::max(last, row.time);
    ++rows[row.split];
    if (row.split > 0 || text.empty()) return OkStatus();
    candidates.Add(row, text);
    if (candidates.bytes() <= source.memory_bytes / 2) return OkStatus();
    return UserError(StrCat("negatives: ", candidates.size(), " items of `of` take more than ",
                            source.memory_bytes >> 21,
                            " MiB, half of --memory_gib; expected a larger --memory_gib"));
  }));
  ELASTOR_RETURN_IF_ERROR(log.CheckSplits(rows, first, last));
  if (candidates.size() == 0) {
    return UserError("negatives: no positive training row has a value of " + negatives.of() +
                     "; expected some, whose items are drawn");
  }
  candidates.End(&made->items_);
  done = 0;
  ExternalSort<DrawHead> draws(files[2].get());
  Drawer drawer(negatives, candidates);
  {
    ExternalSort<DrawHead>::Batch batch(source.memory_bytes / 4);
    const auto add = [&](const Drawer::Row& row, const std::vector<uint32_t>& items) -> Status {
      show("drawing negatives", records);
      const DrawHead head = {row.record, row.split, static_cast<uint32_t>(items.size())};
      batch.Add(head, {reinterpret_cast<const char*>(items.data()), head.text_bytes()});
      return batch.full() ? draws.Spill(&batch) : OkStatus();
    };
    UserHash user = {};
    ELASTOR_RETURN_IF_ERROR(log.Merge([&](const LoggedRow& row, std::string_view text) -> Status {
      // Rows without a user have nothing in common.
      if (row.user != user || user == UserHash()) ELASTOR_RETURN_IF_ERROR(drawer.End(add));
      user = row.user;
      if (text.empty()) return add({record_of(row), 0, 0, row.split}, {});
      drawer.Add(row, record_of(row), text);
      if (drawer.bytes() <= source.memory_bytes / 4) return OkStatus();
      return UserError(
          StrCat("negatives: the rows of one user take more than ", source.memory_bytes >> 22,
                 " MiB, a quarter of --memory_gib; expected a larger --memory_gib, or a "
                 "missing value (null) where the user is not known"));
    }));
    ELASTOR_RETURN_IF_ERROR(drawer.End(add));
    ELASTOR_RETURN_IF_ERROR(draws.Spill(&batch));
  }
  if (drawer.short_rows() > 0 && options.warn) {
    options.warn(StrCat("negatives: ", drawer.short_rows(), " positive rows have fewer than ",
                        made->most_, ", as their users have all other items"));
  }
  ELASTOR_RETURN_IF_ERROR(
      WriteDraws(path, &draws, records, made->most_, source.memory_bytes / 4, made->draws_.get()));
  for (int i = 0; i < 3; ++i) {
    files[i].reset();
    std::remove((path + kSuffixes[i]).c_str());
  }
  return made;
}

Status DrawnNegatives::Read(uint32_t input, uint32_t number, ParsedChunk* chunk) const {
  chunk->draws.clear();
  chunk->drawn.clear();
  chunk->items = &items_;
  const std::vector<int64_t>& firsts = first_records_[input];
  if (number + 1 >= firsts.size()) return OkStatus();  // it has changed, which is told at the end
  const int64_t records = firsts[number + 1] - firsts[number];
  const int64_t stride = StrideOf(most_) / int64_t{sizeof(uint32_t)};
  std::vector<uint32_t> read(records * stride);
  ELASTOR_RETURN_IF_ERROR(draws_->ReadAt(firsts[number] * StrideOf(most_),
                                         std::ssize(read) * int64_t{sizeof(uint32_t)},
                                         reinterpret_cast<char*>(read.data())));
  for (int64_t record = 0; record < records; ++record) {
    const uint32_t* at = read.data() + record * stride;
    if (at[0] > 2 || at[1] > most_) return Damaged(path_);
    const auto begin = static_cast<uint32_t>(chunk->drawn.size());
    for (uint32_t i = 0; i < at[1]; ++i) {
      if (at[2 + i] >= items_.size()) return Damaged(path_);
      chunk->drawn.push_back(at[2 + i]);
    }
    chunk->draws.push_back({static_cast<uint8_t>(at[0]), begin, begin + at[1]});
  }
  return OkStatus();
}

}  // namespace elastor
