#include "embedding/owned_tables.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <string>
#include <type_traits>
#include <utility>

#include "core/base/canonical_flush.h"
#include "core/base/leaves.h"
#include "core/base/log.h"
#include "core/kernels/row_sums.h"
#include "core/optimizer/with_rule.h"
#include "embedding/node_fold.h"
#include "embedding/row_math.h"
#include "embedding/wire_format.h"

namespace elastor {
namespace {

constexpr int64_t kGrain = 64;     // rows a thread takes at least, and are folded at a time
constexpr int64_t kLookAhead = 8;  // rows fetched into the cache before their turn

}  // namespace

template <typename T>
OwnedTables<T>::OwnedTables(const EmbeddingLayout* layout, const EmbeddingOptions& options,
                            const ShardPlan* plan, int rank, ThreadPool* pool)
    : layout_(layout),
      optimizer_(options.optimizer),
      gradient_format_(options.wire.gradients),
      plan_(plan),
      rank_(rank),
      pool_(pool),
      tier_(options.tier),
      track_touched_(options.track_touched),
      track_unpublished_(options.track_unpublished),
      unpublished_(this) {
  // Its steps use the marks, and change every row anyhow.
  CHECK((!track_touched_ && !track_unpublished_) || !dense())
      << "dense-equivalent Adam touches every row at every step";
  for (int64_t t = 0; t < layout->tables(); ++t) {
    has_keyed_ |= keyed(t);
    CHECK(!keyed(t) || !dense()) << layout->table(t).name << ": no rows but those that occurred";
    names_.push_back(Digest::NameSeed("embedding/" + layout->table(t).name));
    stores_.emplace_back(
        layout->table(t), Slots(t), plan->PartitionsOnRank(static_cast<int>(t), rank),
        typename RowStore<T>::Initial{options.seed, InitialSlot()},
        track_touched_ ? RowStore<T>::NewRows::kTouched : RowStore<T>::NewRows::kUntouched,
        notes_published(t) ? RowStore<T>::Published::kNoted : RowStore<T>::Published::kUnknown,
        tier_);
    if (dense()) CreateAllRows(t);
  }
  if (options.rows_wait && WaitingRows<T>::MayWait(optimizer_)) {
    waiting_.emplace(optimizer_.rule);
    for (int64_t t = 0; t < layout->tables(); ++t) {
      waiting_->AddTable(&stores_[t], layout->width(t));
    }
  }
  met_.resize(stores_.size());
  admissions_.resize(stores_.size());
  for (int64_t t = 0; t < layout->tables(); ++t) {
    if (layout->table(t).rules.admits()) MakeAdmission(t);
  }
}

template <typename T>
void OwnedTables<T>::MakeAdmission(int64_t table) {
  const int shared = layout_->Beside(table, TableRole::kShared);
  int counts = layout_->Beside(table, TableRole::kCounts);
  if (counts < 0) counts = layout_->Beside(table, TableRole::kSketch);
  CHECK_GE(counts, 0) << layout_->table(table).name << ": WithAdmission adds its counts";
  admissions_[table] = std::make_unique<Admission<T>>(
      layout_->table(table), &stores_[table], &stores_[counts],
      shared < 0 ? nullptr : &stores_[shared], track_touched_, pool_->threads());
}

template <typename T>
T OwnedTables<T>::InitialSlot() const {
  return static_cast<T>(elastor::InitialSlot(optimizer_.rule));
}

template <typename T>
void OwnedTables<T>::CreateAllRows(int64_t table) {
  const std::vector<int32_t> partitions = plan_->PartitionsOnRank(static_cast<int>(table), rank_);
  const int64_t rows = layout_->table(table).rows;
  pool_->ParallelFor((rows + kPartitions - 1) / kPartitions, 1,
                     [&](int, int64_t begin, int64_t end) {
                       T* row;
                       for (int64_t q = begin; q < end; ++q) {
                         for (const int64_t p : partitions) {
                           const int64_t key = q * kPartitions + p;
                           if (key >= rows) break;
                           stores_[table].FindOrCreate(std::span(&key, 1), &row);
                         }
                       }
                     });
}

// ---- Loops

template <typename T>
template <typename Work>
void OwnedTables<T>::ForTablesOf(const IdRoute& route, const Range& keys, const Work& work) const {
  for (int64_t t = 0; t < layout_->tables(); ++t) {
    const Range owned = route.OwnedOfTable(t);
    const int64_t first = std::max(keys.begin, owned.begin);
    const int64_t last = std::min(keys.end, owned.end);
    if (first < last) work(t, first, last);
  }
}

template <typename T>
template <typename Work>
void OwnedTables<T>::ForOwnedKeys(const IdRoute& route, const Work& work) const {
  pool_->ParallelFor(route.owned_size(), kGrain, [&](int thread, int64_t begin, int64_t end) {
    ForTablesOf(route, {begin, end},
                [&](int64_t t, int64_t first, int64_t last) { work(thread, t, first, last); });
  });
}

template <typename T>
template <typename Work>
void OwnedTables<T>::ForOwnRows(int64_t table, T* const* rows, const Range& keys,
                                const Work& work) const {
  if (admissions_[table] == nullptr) return work(keys.begin, keys.end);
  const auto owns = [&](int64_t j) { return stores_[table].Holds(rows[j]); };
  for (int64_t begin = keys.begin; begin < keys.end;) {
    int64_t end = begin;
    while (end < keys.end && owns(end)) ++end;
    if (begin < end) work(begin, end);
    for (begin = end; begin < keys.end && !owns(begin);) ++begin;
  }
}

template <typename T>
template <typename Work>
void OwnedTables<T>::ForUntouchedRows(const IdRoute& route, const Work& work) {
  const int64_t* keys = route.owned_keys();
  const auto mark_touched = [&](bool touched) {
    ForOwnedKeys(route, [&](int, int64_t t, int64_t begin, int64_t end) {
      for (int64_t j = begin; j < end; ++j) stores_[t].SetTouched(keys[j], touched);
    });
  };
  mark_touched(true);
  pool_->Run([&](int thread) {
    std::vector<T> scratch(kGrain * layout_->widest());
    for (int64_t t = 0; t < layout_->tables(); ++t) {
      stores_[t].ForEachBlock(RowSet::kUntouched, thread, pool_->threads(),
                              [&](std::span<const int64_t> block, T* const* rows) {
                                for (size_t k = 0; k < block.size(); k += kGrain) {
                                  const size_t count = std::min<size_t>(block.size() - k, kGrain);
                                  work(thread, t, block.subspan(k, count), rows + k,
                                       scratch.data());
                                }
                              });
    }
  });
  mark_touched(false);
}

// ---- Rows

template <typename T>
std::vector<RowTier::Page> OwnedTables<T>::PagesOf(const IdRoute& route) const {
  std::vector<RowTier::Page> pages;
  for (int64_t t = 0; t < layout_->tables(); ++t) {
    const Range owned = route.OwnedOfTable(t);
    stores_[t].AddPages({route.owned_keys() + owned.begin, route.owned_keys() + owned.end}, &pages);
  }
  return pages;
}

template <typename T>
void OwnedTables<T>::BringRows(const IdRoute& route, bool fetched) const {
  if (tier_ == nullptr) return;
  tier_->Use(fetched ? std::vector<RowTier::Page>() : PagesOf(route), fetched);
}

template <typename T>
void OwnedTables<T>::FetchAhead(const IdRoute& route) const {
  if (tier_ != nullptr) tier_->UseNext(PagesOf(route));
}

template <typename T>
void OwnedTables<T>::FindOrCreate(const IdRoute& route, T** rows) {
  const int64_t* keys = route.owned_keys();
  ForOwnedKeys(route, [&](int, int64_t t, int64_t begin, int64_t end) {
    const std::span<const int64_t> part(keys + begin, keys + end);
    keyed(t) ? stores_[t].Find(part, rows + begin) : stores_[t].FindOrCreate(part, rows + begin);
    CatchUp(t, {rows + begin, rows + end});
  });
  if (!has_keyed_) return;
  std::vector<int64_t> missing(layout_->tables(), 0);
  for (int64_t t = 0; t < layout_->tables(); ++t) {
    const Range owned = route.OwnedOfTable(t);
    for (int64_t j = owned.begin; keyed(t) && j < owned.end; ++j) {
      missing[t] += rows[j] == nullptr && HasPrimary(t, keys[j]) ? 1 : 0;
    }
  }
  // Threads share the partitions, each of which grows alone.
  pool_->Run([&](int thread) {
    for (int64_t t = 0; t < layout_->tables(); ++t) {
      if (!keyed(t)) continue;
      const Range owned = route.OwnedOfTable(t);
      const std::span<const int64_t> own(keys + owned.begin, keys + owned.end);
      if (admissions_[t] != nullptr) {
        admissions_[t]->Serve(own, route.owned_counts() + owned.begin, thread, pool_->threads(),
                              rows + owned.begin);
      } else {
        stores_[t].CreateMissing(own, rows + owned.begin, thread, pool_->threads());
      }
    }
  });
  for (int64_t t = 0; t < layout_->tables(); ++t) {
    if (keyed(t)) CountMet(route, t, missing[t]);
  }
}

template <typename T>
void OwnedTables<T>::CountMet(const IdRoute& route, int64_t table, int64_t missing) {
  const Range owned = route.OwnedOfTable(table);
  const bool whole = !plan_->replicated(static_cast<int>(table));
  Met& met = met_[table] = {.created = missing};
  for (int64_t j = owned.begin; j < owned.end; ++j) {
    if (!whole && !HasPrimary(table, route.owned_keys()[j])) continue;
    ++met.keys;
    if (admissions_[table] != nullptr) met.occurrences += route.owned_counts()[j];
  }
  if (admissions_[table] == nullptr) return;
  for (int part = 0; part < pool_->threads(); ++part) {
    for (const auto& waiting : admissions_[table]->waiting(part)) {
      if (!HasPrimaryOf(table, waiting.partition)) continue;
      --met.keys;
      --met.created;
      met.unadmitted += route.owned_counts()[owned.begin + waiting.at];
    }
  }
}

template <typename T>
void OwnedTables<T>::FindOrForget(const IdRoute& route, T** rows, GrowBuffer<T>* forgotten) const {
  const int64_t* keys = route.owned_keys();
  ForOwnedKeys(route, [&](int, int64_t t, int64_t begin, int64_t end) {
    stores_[t].Find(std::span(keys + begin, keys + end), rows + begin);
    CatchUp(t, {rows + begin, rows + end});
  });
  const auto for_missing = [&](const auto& work) {
    for (int64_t t = 0; t < layout_->tables(); ++t) {
      const Range owned = route.OwnedOfTable(t);
      for (int64_t j = owned.begin; j < owned.end; ++j) {
        if (rows[j] == nullptr) work(t, j, layout_->width(t) + Slots(t));
      }
    }
  };
  int64_t elements = 0;
  for_missing([&](int64_t, int64_t, int64_t length) { elements += length; });
  T* row = forgotten->Resize(elements);
  std::vector<const RowStore<T>*> shared;
  for (int64_t t = 0; t < layout_->tables(); ++t) {
    const int table = layout_->Beside(t, TableRole::kShared);
    shared.push_back(table < 0 ? nullptr : &stores_[table]);
  }
  for_missing([&](int64_t t, int64_t j, int64_t length) {
    MakeUnknown(layout_->table(t), length, stores_[t], shared[t], keys[j], row);
    rows[j] = row;
    row += length;
  });
}

template <typename T>
void OwnedTables<T>::FindMarked(const IdRoute& route, uint8_t* marks, T** rows,
                                GrowBuffer<T>* forgotten) const {
  std::vector<int64_t> marked, keys;
  std::vector<T*> found;
  struct Missing {
    int64_t table, owned;
  };
  std::vector<Missing> missing;
  int64_t elements = 0;
  for (int64_t t = 0; t < layout_->tables(); ++t) {
    const Range owned = route.OwnedOfTable(t);
    if (plan_->replicated(static_cast<int>(t)) || owned.size() == 0) continue;
    marked.clear();
    keys.clear();
    for (int64_t j = owned.begin; j < owned.end; ++j) {
      if (marks[j] == 0) continue;
      marked.push_back(j);
      keys.push_back(route.owned_keys()[j]);
    }
    found.resize(keys.size());
    stores_[t].Find(keys, found.data());
    for (size_t i = 0; i < keys.size(); ++i) {
      rows[marked[i]] = found[i];
      if (found[i] != nullptr) continue;
      if (admissions_[t] != nullptr) {
        marks[marked[i]] = 0;
        continue;
      }
      missing.push_back({t, marked[i]});
      elements += layout_->width(t) + Slots(t);
    }
  }
  T* row = forgotten->Resize(elements);
  for (const auto& [t, j] : missing) {
    stores_[t].MakeInitial(route.owned_keys()[j], row);
    rows[j] = row;
    row += layout_->width(t) + Slots(t);
  }
}

// ---- Gradients

template <typename T>
void OwnedTables<T>::FinishGradients(const IdRoute& route, T* const* rows, const SumKeys& sum_keys,
                                     T* gradients, double* squares, ExactSum* squared_norm,
                                     ExactSum* squared_weights) {
  std::vector<SquaredSums> sums(pool_->threads());
  // Without L2 the gradient of an untouched row is 0.
  const bool known = untouched_known_ && untouched_.gradients.ok() && untouched_.weights.ok();
  FoldTouched(route, rows, sum_keys, gradients, squares, known, &sums);
  SumShared(route, gradients, &sums);
  if (known) {
    sums.push_back(untouched_);
  } else if (every_row_has_gradient()) {
    ForUntouchedRows(route, [&](int thread, int64_t t, std::span<const int64_t> keys,
                                T* const* rows, T* scratch) {
      AddUntouched(t, keys, rows, Sign::kPlus, scratch, &sums[thread]);
    });
  }
  for (const SquaredSums& part : sums) {
    squared_norm->Merge(part.gradients);
    squared_weights->Merge(part.weights);
  }
}

template <typename T>
void OwnedTables<T>::AddSquares(int64_t table, std::span<const int64_t> keys,
                                const T* const* gradients, const T* const* weights, double* squares,
                                SquaredSums* sums) const {
  const auto count = static_cast<int64_t>(keys.size());
  std::array<double, kGrain> of_gradients, of_weights;
  if (squares == nullptr) squares = of_gradients.data();
  RowSums<T>().squares(gradients, count, layout_->width(table), squares);
  const bool adds_weights = optimizer_.l2 > 0 && weights != nullptr;
  if (adds_weights) RowSums<T>().squares(weights, count, layout_->width(table), of_weights.data());
  for (int64_t i = 0; i < count; ++i) {
    if (!HasPrimary(table, keys[i])) continue;
    sums->gradients.Add(squares[i]);
    if (adds_weights) sums->weights.Add(of_weights[i]);
  }
}

template <typename T>
void OwnedTables<T>::FoldTouched(const IdRoute& route, T* const* rows, const SumKeys& sum_keys,
                                 T* gradients, double* squares, bool known,
                                 std::vector<SquaredSums>* sums) const {
  const auto fold = [&](int thread, int64_t t, int64_t first, int64_t last) {
    for (; first < last; first += kGrain) {
      const Range keys = {first, std::min(first + kGrain, last)};
      if (sum_keys != nullptr) sum_keys(thread, t, keys);
      FoldKeys(route, rows, t, keys, gradients, squares, known, &(*sums)[thread]);
    }
  };
  if (sum_keys == nullptr) return ForOwnedKeys(route, fold);
  // Threads share the occurrences, not the keys: one id may occur in every row.
  const UniqueIds& ids = route.ids();
  pool_->ParallelFor(ids.occurrences(), kGrain, [&](int thread, int64_t begin, int64_t end) {
    ForTablesOf(route, {ids.IdAt(begin), ids.IdAt(end)},
                [&](int64_t t, int64_t first, int64_t last) { fold(thread, t, first, last); });
  });
}

template <typename T>
void OwnedTables<T>::FoldKeys(const IdRoute& route, T* const* rows, int64_t t, const Range& keys,
                              T* gradients, double* squares, bool known, SquaredSums* sums) const {
  const T l2 = static_cast<T>(optimizer_.l2);
  const int64_t width = layout_->width(t);
  CHECK_LE(keys.size(), kGrain);
  std::array<const T*, kGrain> folds;
  for (int64_t j = keys.begin; j < keys.end; ++j) {
    T* __restrict g = FoldInPlace(route.NodesOf(j), width, gradient_format_, gradients);
    folds[j - keys.begin] = g;
    if (admissions_[t] != nullptr && !stores_[t].Holds(rows[j])) continue;
    const T* __restrict w = rows[j];
    if (l2 != 0) {
      PrefetchRow(rows[std::min(j + kLookAhead, keys.end - 1)], width);
      for (int64_t i = 0; i < width; ++i) g[i] += CanonicalProduct(l2, w[i]);
    }
  }
  ForOwnRows(t, rows, keys, [&](int64_t first, int64_t last) {
    const std::span<const int64_t> own(route.owned_keys() + first, route.owned_keys() + last);
    AddSquares(t, own, &folds[first - keys.begin], known ? nullptr : rows + first,
               squares == nullptr ? nullptr : squares + first, sums);
    if (!known) return;
    std::vector<T> scratch(own.size() * width);
    AddUntouched(t, own, rows + first, Sign::kMinus, scratch.data(), sums);
  });
}

template <typename T>
void OwnedTables<T>::SumShared(const IdRoute& route, const T* gradients,
                               std::vector<SquaredSums>* sums) {
  const T l2 = static_cast<T>(optimizer_.l2);
  for (int64_t t = 0; t < layout_->tables(); ++t) {
    const int table = layout_->Beside(t, TableRole::kShared);
    if (table < 0) continue;
    const int64_t first = route.OwnedOfTable(t).begin;
    pool_->Run([&](int thread) {
      const auto gradient = [&](int64_t at) {
        return gradients + route.NodesOf(first + at)[0].offset;
      };
      for (auto& shared : admissions_[t]->SumShared(thread, gradient)) {
        T* const g = shared.gradient.data();
        for (int64_t i = 0; l2 != 0 && i < layout_->width(t); ++i) {
          g[i] += CanonicalProduct(l2, shared.row[i]);
        }
        const T* const fold = g;
        const T* const row = shared.row;
        AddSquares(table, {&shared.partition, 1}, &fold, &row, /*squares=*/nullptr,
                   &(*sums)[thread]);
      }
    });
  }
}

template <typename T>
void OwnedTables<T>::AddUntouched(int64_t table, std::span<const int64_t> keys,
                                  const T* const* rows, Sign sign, T* scratch,
                                  SquaredSums* sums) const {
  const T l2 = static_cast<T>(optimizer_.l2);
  const auto count = static_cast<int64_t>(keys.size());
  const int64_t width = layout_->width(table);
  std::array<const T*, kGrain> gradients;
  std::array<double, kGrain> of_gradients, of_weights;
  for (int64_t k = 0; k < count; ++k) {
    T* const g = scratch + k * width;
    for (int64_t i = 0; i < width; ++i) g[i] = CanonicalProduct(l2, rows[k][i]);
    gradients[k] = g;
  }
  RowSums<T>().squares(gradients.data(), count, width, of_gradients.data());
  if (sign == Sign::kPlus) RowSums<T>().squares(rows, count, width, of_weights.data());
  for (int64_t k = 0; k < count; ++k) {
    if (!HasPrimary(table, keys[k])) continue;
    sums->gradients.Add(sign == Sign::kPlus ? of_gradients[k] : -of_gradients[k]);
    if (sign == Sign::kPlus) sums->weights.Add(of_weights[k]);
  }
}

// ---- Update

template <typename T>
void OwnedTables<T>::Update(const IdRoute& route, T* const* rows, const T* gradients,
                            const double* squares, double scale, double learning_rate, int64_t step,
                            int64_t event_time) {
  CHECK_GE(step, 1);
  WithRule<T>(optimizer_.rule, learning_rate, step, [&](const auto& rule) {
    if constexpr (std::is_same_v<std::decay_t<decltype(rule)>, Adam<T>>) {
      if (waiting_) waiting_->AddStep(rule);
    }
    std::vector<SquaredSums> next(pool_->threads());
    UpdateTouched(rule, route, rows, gradients, squares, static_cast<T>(scale), step, event_time,
                  &next);
    UpdateShared(rule, static_cast<T>(scale), step);
    if (waiting_) return CatchUpNextPart();
    if (dense()) UpdateUntouched(rule, route, static_cast<T>(scale), &next);
    if (!every_row_has_gradient()) return;
    untouched_ = {};
    for (const SquaredSums& part : next) {
      untouched_.gradients.Merge(part.gradients);
      untouched_.weights.Merge(part.weights);
    }
    untouched_known_ = true;
  });
}

template <typename T>
template <typename Rule>
void OwnedTables<T>::UpdateTouched(const Rule& rule, const IdRoute& route, T* const* rows,
                                   const T* gradients, const double* squares, T scale, int64_t step,
                                   int64_t event_time, std::vector<SquaredSums>* next) {
  const auto update = [&](int thread, int64_t t, int64_t begin, int64_t end) {
    const std::span<const int64_t> keys(route.owned_keys() + begin, route.owned_keys() + end);
    if (keyed(t)) {
      const std::span<T* const> own(rows + begin, rows + end);
      const RowRules& rules = layout_->table(t).rules;
      if (track_touched_) stores_[t].TouchRows(own);
      if (track_unpublished_) stores_[t].MarkRowsUnpublished(own);
      if (layout_->table(t).keeps_use) {
        stores_[t].UseRows(rules, own, rules.counts() ? route.owned_counts() + begin : nullptr,
                           rules.Now(step, event_time));
      }
    } else {
      if (track_touched_) stores_[t].Touch(keys);
      if (track_unpublished_) stores_[t].MarkUnpublished(keys);
    }
    const int64_t width = layout_->width(t);
    const int64_t length = width + Slots(t);
    for (int64_t j = begin; j < end; ++j) {
      const int64_t ahead = std::min(j + kLookAhead, end - 1);
      PrefetchRow<RowUse::kWrite>(rows[ahead], length);
      PrefetchRow(gradients + route.NodesOf(ahead)[0].offset, width);
      const T* const g = gradients + route.NodesOf(j)[0].offset;
      if constexpr (std::is_same_v<Rule, RowWiseAdagrad<T>>) {
        rule.Row(width, scale, squares[j], g, rows[j], rows[j] + width);
      } else {
        rule(width, scale, g, rows[j], rows[j] + width);
      }
    }
    if (waiting_) waiting_->TookStep(t, {rows + begin, rows + end});
    if (!every_row_has_gradient()) return;
    std::vector<T> scratch(kGrain * width);
    for (int64_t j = begin; j < end; j += kGrain) {
      AddUntouched(t, keys.subspan(j - begin, std::min(kGrain, end - j)), rows + j, Sign::kPlus,
                   scratch.data(), &(*next)[thread]);
    }
  };
  ForOwnedKeys(route, [&](int thread, int64_t t, int64_t begin, int64_t end) {
    ForOwnRows(t, rows, {begin, end},
               [&](int64_t first, int64_t last) { update(thread, t, first, last); });
    if (track_unpublished_) {
      MarkSharedUnpublished(t, {route.owned_keys() + begin, route.owned_keys() + end});
    }
  });
}

template <typename T>
template <typename Rule>
void OwnedTables<T>::UpdateShared(const Rule& rule, T scale, int64_t step) {
  for (int64_t t = 0; t < layout_->tables(); ++t) {
    if (admissions_[t] == nullptr) continue;
    const int table = layout_->Beside(t, TableRole::kShared);
    const int64_t width = layout_->width(t);
    pool_->Run([&](int thread) {
      admissions_[t]->UseCounts(thread, step);
      if (table < 0) return;
      for (const auto& shared : admissions_[t]->shared(thread)) {
        if (track_touched_) stores_[table].Touch({&shared.partition, 1});
        rule(width, scale, shared.gradient.data(), shared.row, shared.row + width);
      }
    });
  }
}

template <typename T>
template <typename Rule>
void OwnedTables<T>::UpdateUntouched(const Rule& rule, const IdRoute& route, T scale,
                                     std::vector<SquaredSums>* next) {
  const T l2 = static_cast<T>(optimizer_.l2);
  ForUntouchedRows(route, [&](int thread, int64_t t, std::span<const int64_t> keys, T* const* rows,
                              T* __restrict g) {
    const int64_t width = layout_->width(t);
    for (size_t k = 0; k < keys.size(); ++k) {
      for (int64_t i = 0; i < width; ++i) g[i] = CanonicalProduct(l2, rows[k][i]);
      rule(width, scale, g, rows[k], rows[k] + width);
    }
    if (every_row_has_gradient()) {
      AddUntouched(t, keys, rows, Sign::kPlus, g, &(*next)[thread]);
    }
  });
}

template <typename T>
void OwnedTables<T>::CatchUpNextPart() {
  const int threads = pool_->threads();
  const auto part = static_cast<int>(waiting_->steps() % WaitingRows<T>::kMostOwed);
  pool_->Run([&](int thread) {
    for (int64_t t = 0; t < layout_->tables(); ++t) {
      VisitPart(RowSet::kAll, t, part * threads + thread, WaitingRows<T>::kMostOwed * threads,
                [](std::span<const int64_t>, T* const*) {});
    }
  });
}

// ---- State

template <typename T>
void OwnedTables<T>::VisitPart(
    RowSet set, int64_t table, int part, int parts,
    const std::function<void(std::span<const int64_t>, T* const*)>& fn) const {
  stores_[table].ForEachBlock(set, part, parts, [&](std::span<const int64_t> keys, T* const* rows) {
    CatchUp(table, {rows, keys.size()});
    fn(keys, rows);
  });
}

template <typename T>
template <typename Fn>
void OwnedTables<T>::SumOverThreads(const Fn& fn, Digest* digest) const {
  std::vector<Digest> parts(pool_->threads());
  pool_->Run([&](int thread) { fn(thread, &parts[thread]); });
  for (const Digest& part : parts) digest->Merge(part);
}

template <typename T>
template <typename Fn>
void OwnedTables<T>::ForEachRecord(RowSet set, const Fn& fn, Digest* digest) const {
  const auto add_part = [&](int thread, Digest* sum) {
    for (int t = 0; t < static_cast<int>(layout_->tables()); ++t) {
      const size_t bytes = stores_[t].visited_elements() * sizeof(T);
      VisitPart(set, t, thread, pool_->threads(),
                [&](std::span<const int64_t> keys, T* const* rows) {
                  for (size_t i = 0; i < keys.size(); ++i) {
                    if (!HasPrimary(t, keys[i])) continue;
                    const Digest record =
                        Digest::OfRecord(names_[t], static_cast<uint64_t>(keys[i]), rows[i], bytes);
                    fn(t, keys[i], record);
                    sum->Merge(record);
                  }
                });
    }
  };
  SumOverThreads(add_part, digest);
}

template <typename T>
void OwnedTables<T>::AddToDigest(Digest* digest) const {
  ForEachRecord(
      RowSet::kAll, [](int, int64_t, const Digest&) {}, digest);
}

template <typename T>
void OwnedTables<T>::ForEachRow(
    const std::function<void(int, int64_t, const T*, const T*)>& fn) const {
  for (int64_t t = 0; t < layout_->tables(); ++t) {
    VisitPart(RowSet::kAll, t, 0, 1, [&](std::span<const int64_t> keys, T* const* rows) {
      for (size_t i = 0; i < keys.size(); ++i) {
        if (!HasPrimary(t, keys[i])) continue;
        fn(static_cast<int>(t), keys[i], rows[i], rows[i] + layout_->width(t));
      }
    });
  }
}

template <typename T>
void OwnedTables<T>::SetRow(int table, int64_t key, const T* weights, const T* slots) {
  untouched_known_ = false;
  const TableSpec& spec = layout_->table(table);
  CHECK(spec.keys().Contains(key)) << spec.name << ": no row " << key;
  if (!Owns(table, spec.keys().PartitionOf(key))) return;
  bool created;
  T* const row = stores_[table].Claim(key, &created);
  CatchUp(table, {&row, 1});  // the slots that it may keep
  if (track_touched_) {
    spec.keyed ? stores_[table].TouchRows(std::span(&row, 1))
               : stores_[table].Touch(std::span(&key, 1));
  }
  const int64_t width = layout_->width(table);
  std::copy_n(weights, width, row);
  if (slots != nullptr) {
    std::copy_n(slots, Slots(table), row + width);
    if (spec.keeps_use) stores_[table].SetUse(row, slots + Slots(table));
  } else if (created) {
    std::fill_n(row + width, Slots(table), InitialSlot());
  }
  if (waiting_) waiting_->WasSet(table, row);
}

template <typename T>
void OwnedTables<T>::RemoveRow(int table, int64_t key) {
  if (!Owns(table, layout_->table(table).keys().PartitionOf(key))) return;
  stores_[table].Remove(key);
}

template <typename T>
void OwnedTables<T>::ForgetRows() {
  untouched_known_ = false;
  for (RowStore<T>& store : stores_) store.ForgetTouched();
  unpublished_.Forget();
  for (int64_t t = 0; t < layout_->tables(); ++t) {
    stores_[t].Clear();
    if (waiting_) waiting_->Forget(t);
    if (dense()) CreateAllRows(t);
  }
}

template <typename T>
std::vector<int64_t> OwnedTables<T>::Count(RowSet set, int table) const {
  std::vector<std::vector<int64_t>> parts(pool_->threads());
  pool_->Run([&](int thread) {
    parts[thread].assign(kPartitions, 0);
    stores_[table].CountRows(set, thread, pool_->threads(), parts[thread].data());
  });
  std::vector<int64_t> counts(kPartitions, 0);
  for (int64_t p = 0; p < kPartitions; ++p) {
    if (!HasPrimaryOf(table, p)) continue;
    for (const std::vector<int64_t>& part : parts) counts[p] += part[p];
  }
  return counts;
}

template <typename T>
std::vector<int64_t> OwnedTables<T>::CountRows(int table) const {
  return Count(RowSet::kAll, table);
}

template <typename T>
void OwnedTables<T>::Visit(
    RowSet set, int table, const Range& partitions,
    const std::function<void(std::span<const int64_t>, const T* const*)>& fn) const {
  std::vector<int64_t> own_keys;
  std::vector<const T*> own_rows;
  stores_[table].ForEachOfPartitions(set, partitions,
                                     [&](std::span<const int64_t> keys, T* const* rows) {
                                       CatchUp(table, {rows, keys.size()});
                                       if (!plan_->replicated(table)) return fn(keys, rows);
                                       own_keys.clear();
                                       own_rows.clear();
                                       for (size_t i = 0; i < keys.size(); ++i) {
                                         if (!HasPrimary(table, keys[i])) continue;
                                         own_keys.push_back(keys[i]);
                                         own_rows.push_back(rows[i]);
                                       }
                                       fn(own_keys, own_rows.data());
                                     });
}

template <typename T>
void OwnedTables<T>::ForEachRowOf(
    int table, const Range& partitions,
    const std::function<void(std::span<const int64_t>, const T* const*)>& fn) const {
  Visit(RowSet::kAll, table, partitions, fn);
}

// ---- Touched rows

template <typename T>
void OwnedTables<T>::Forget() {
  for (RowStore<T>& store : stores_) store.ForgetTouched();
  if (!has_keyed_) return;
  const auto keep = [this](int table, int64_t key, const Digest& record) {
    if (keyed(table)) stores_[table].SetRecord(key, record);
  };
  Digest unused;
  ForEachRecord(RowSet::kAll, keep, &unused);
}

template <typename T>
void OwnedTables<T>::KeepRecord(int table, int64_t key, const Digest& record) {
  if (!keyed(table)) stores_[table].SetRecord(key, record);
}

template <typename T>
void OwnedTables<T>::KeepRecords(Digest* digest) {
  const auto keep = [this](int table, int64_t key, const Digest& record) {
    KeepRecord(table, key, record);
  };
  ForEachRecord(RowSet::kAll, keep, digest);
}

template <typename T>
Digest OwnedTables<T>::KeptRecords(RowSet set) const {
  Digest kept;
  const auto add_part = [&](int thread, Digest* sum) {
    for (const RowStore<T>& store : stores_) {
      store.AddRecords(set, thread, pool_->threads(), sum);
    }
  };
  SumOverThreads(add_part, &kept);
  return kept;
}

template <typename T>
std::vector<int64_t> OwnedTables<T>::CountMarkedRows(int table) const {
  return Count(RowSet::kTouched, table);
}

template <typename T>
void OwnedTables<T>::ForEachMarkedRowOf(
    int table, const Range& partitions,
    const std::function<void(std::span<const int64_t>, const T* const*)>& fn) const {
  Visit(RowSet::kTouched, table, partitions, fn);
}

template <typename T>
void OwnedTables<T>::AddTouchedToDigest(Digest* digest) const {
  ForEachRecord(
      RowSet::kTouched, [](int, int64_t, const Digest&) {}, digest);
}

template <typename T>
std::vector<int64_t> OwnedTables<T>::CountGoneKeys(int table) const {
  std::vector<int64_t> counts(kPartitions, 0);
  if (!keyed(table)) return counts;
  const KeySpace keys = layout_->table(table).keys();
  stores_[table].ForEachGone({0, kPartitions},
                             [&](int64_t key) { ++counts[keys.PartitionOf(key)]; });
  return counts;
}

template <typename T>
void OwnedTables<T>::ForEachGoneKeyOf(int table, const Range& partitions,
                                      const std::function<void(int64_t)>& fn) const {
  stores_[table].ForEachGone(partitions, fn);
}

// ---- Rules of keyed tables

template <typename T>
void OwnedTables<T>::BeginClock(int64_t event_time) {
  pool_->Run([&](int thread) {
    for (int64_t t = 0; t < layout_->tables(); ++t) {
      if (!layout_->table(t).rules.by_time()) continue;
      stores_[t].BeginUses(static_cast<uint64_t>(event_time), thread, pool_->threads());
    }
  });
}

template <typename T>
int64_t OwnedTables<T>::LiveRows(int table) const {
  if (!plan_->replicated(table)) return stores_[table].live_rows();
  std::vector<int64_t> counts(kPartitions, 0);
  stores_[table].CountLive(counts.data());
  int64_t rows = 0;
  for (int64_t p = 0; p < kPartitions; ++p) rows += HasPrimaryOf(table, p) ? counts[p] : 0;
  return rows;
}

template <typename T>
void OwnedTables<T>::ForEachScore(
    int table, const std::function<void(int thread, int64_t key, uint64_t score)>& fn) const {
  const RowRules& rules = layout_->table(table).rules;
  pool_->Run([&](int thread) {
    stores_[table].ForEachScore(rules, thread, pool_->threads(), [&](int64_t key, uint64_t score) {
      if (HasPrimary(table, key)) fn(thread, key, score);
    });
  });
}

template <typename T>
int64_t OwnedTables<T>::RemoveRows(int table,
                                   const std::function<bool(int64_t key, uint64_t score)>& leaves) {
  const RowRules& rules = layout_->table(table).rules;
  std::vector<std::vector<int64_t>> keys(pool_->threads());
  pool_->Run([&](int thread) {
    stores_[table].ForEachScore(rules, thread, pool_->threads(), [&](int64_t key, uint64_t score) {
      if (leaves(key, score)) keys[thread].push_back(key);
    });
  });
  std::atomic<int64_t> primary = 0;
  pool_->Run([&](int thread) {
    int64_t own = 0;
    const std::vector<int64_t>& leaving = keys[thread];
    for (size_t i = 0; i < leaving.size(); ++i) {
      stores_[table].PrefetchKey(leaving[std::min(i + 2 * kLookAhead, leaving.size() - 1)]);
      stores_[table].Remove(leaving[i]);
      own += HasPrimary(table, leaving[i]) ? 1 : 0;
    }
    primary += own;
  });
  return primary;
}

template <typename T>
void OwnedTables<T>::MarkUnpublished(const IdRoute& route) {
  ForOwnedKeys(route, [&](int, int64_t t, int64_t begin, int64_t end) {
    const std::span<const int64_t> keys(route.owned_keys() + begin, route.owned_keys() + end);
    stores_[t].MarkExistingUnpublished(keys);
    MarkSharedUnpublished(t, keys);
  });
}

template <typename T>
void OwnedTables<T>::MarkSharedUnpublished(int64_t table, std::span<const int64_t> keys) {
  const int shared = layout_->Beside(table, TableRole::kShared);
  if (shared < 0) return;
  const KeySpace space = layout_->table(table).keys();
  std::vector<int64_t> partitions;
  for (const int64_t key : keys) partitions.push_back(space.PartitionOf(key));
  stores_[shared].MarkExistingUnpublished(partitions);
}

template <typename T>
void OwnedTables<T>::NotePublished(int table, std::span<const int64_t> keys, bool have_rows) {
  const KeySpace space = layout_->table(table).keys();
  for (const int64_t key : keys) {
    if (Owns(table, space.PartitionOf(key))) stores_[table].NotePublished(key, have_rows);
  }
}

template <typename T>
std::vector<int64_t> OwnedTables<T>::Unpublished::CountGoneKeys(int table) const {
  std::vector<int64_t> counts(kPartitions, 0);
  if (!tables_.notes_published(table)) return counts;
  const KeySpace keys = tables_.layout_->table(table).keys();
  ForEachGoneKeyOf(table, {0, kPartitions}, [&](int64_t key) { ++counts[keys.PartitionOf(key)]; });
  return counts;
}

template <typename T>
void OwnedTables<T>::Unpublished::ForEachGoneKeyOf(int table, const Range& partitions,
                                                   const std::function<void(int64_t)>& fn) const {
  tables_.stores_[table].ForEachRecalled(partitions, [&](int64_t key) {
    if (tables_.HasPrimary(table, key)) fn(key);
  });
}

template <typename T>
int64_t OwnedTables<T>::memory_bytes() const {
  int64_t bytes = 0;
  for (const RowStore<T>& store : stores_) bytes += store.memory_bytes();
  if (waiting_) bytes += waiting_->memory_bytes();
  return bytes;
}

template class OwnedTables<float>;
template class OwnedTables<double>;

}  // namespace elastor
