#include "embedding/sharded_embedding.h"

#include <algorithm>
#include <array>
#include <span>
#include <string>
#include <utility>

#include "core/base/leaves.h"
#include "embedding/adagrad.h"
#include "embedding/adam.h"
#include "embedding/bag_pooling.h"
#include "embedding/dense_row_store.h"
#include "embedding/embedding_layout.h"
#include "embedding/grow_buffer.h"
#include "embedding/id_route.h"
#include "embedding/leaf_stack.h"
#include "embedding/occurrence_sum.h"
#include "embedding/row_math.h"
#include "embedding/row_store.h"
#include "embedding/row_wise_adagrad.h"
#include "embedding/sgd.h"
#include "glog/logging.h"

namespace elastor {
namespace {

constexpr int64_t kGrain = 64;     // rows a thread takes at least
constexpr int64_t kLookAhead = 8;  // rows fetched into the cache before their turn

// Calls fn with the optimizer's rule for one step.
template <typename T, typename Fn>
void WithOptimizer(const SparseOptimizerOptions& options, double learning_rate, int64_t step,
                   const Fn& fn) {
  switch (options.kind) {
    case SparseOptimizerKind::kSgd:
      return fn(Sgd<T>::ForStep(options, learning_rate, step));
    case SparseOptimizerKind::kAdagrad:
      return fn(Adagrad<T>::ForStep(options, learning_rate, step));
    case SparseOptimizerKind::kRowWiseAdagrad:
      return fn(RowWiseAdagrad<T>::ForStep(options, learning_rate, step));
    case SparseOptimizerKind::kLazyAdam:
    case SparseOptimizerKind::kDenseAdam:
      return fn(Adam<T>::ForStep(options, learning_rate, step));
  }
}

bool IsAdagrad(SparseOptimizerKind kind) {
  return kind == SparseOptimizerKind::kAdagrad || kind == SparseOptimizerKind::kRowWiseAdagrad;
}

std::vector<int64_t> ElementsInBytes(const std::vector<int64_t>& elements, int64_t element_bytes) {
  std::vector<int64_t> bytes(elements);
  for (int64_t& value : bytes) value *= element_bytes;
  return bytes;
}

template <typename T>
void Prefetch(const T* row, int64_t elements) {
  constexpr int64_t kLineBytes = 64;
  const char* byte = reinterpret_cast<const char*>(row);
  for (int64_t i = 0; i < elements * static_cast<int64_t>(sizeof(T)); i += kLineBytes) {
    __builtin_prefetch(byte + i, 1);
  }
}

// Sums of one thread.
struct SquaredSums {
  ExactSum gradients;
  ExactSum weights;
};

}  // namespace

template <typename T>
struct ShardedEmbedding<T>::Routing::State {
  enum class Stage { kNone, kRouted, kLookedUp, kGradients };

  State(const EmbeddingLayout* layout, const ShardPlan* plan, int rank, int64_t leaves)
      : route(layout, plan, rank, leaves) {}

  Stage stage = Stage::kNone;
  Purpose purpose = Purpose::kEvaluate;
  IdRoute route;
  GrowBuffer<T*> owned_rows;         // by owned key
  GrowBuffer<T> forgotten;           // rows made for an evaluation only
  GrowBuffer<T> exchanged_rows;      // IdRoute::rows()
  GrowBuffer<const T*> rows_of_ids;  // by unique id
  GrowBuffer<T> bag_gradients;       // [row][feature]
  GrowBuffer<T> gradients;           // IdRoute::gradients()

  // The folded gradient of owned key j.
  T* GradientOf(int64_t j) { return gradients.data() + route.NodesOf(j)[0].offset; }
};

template <typename T>
struct ShardedEmbedding<T>::Impl {
  using State = typename Routing::State;

  Impl(Options options, const ShardPlan* plan, Communicator* communicator, ThreadPool* pool);
  void MakeStores();
  void CreateAllRows(DenseRowStore<T>* store);

  bool dense() const { return optimizer.kind == SparseOptimizerKind::kDenseAdam; }
  // Whether this rank's copy of a row is the one that counts.
  bool Accounts(int64_t table, int64_t key) const {
    return plan->Accountant(static_cast<int>(table), key % kPartitions) == rank;
  }

  // work(thread, table, begin, end) over the owned keys, on all threads.
  template <typename Work>
  void ForOwnedKeys(const State& state, const Work& work);

  void FindOwnedRows(State* state);
  void MakeForgottenRows(State* state);
  void CopyRowsToSend(State* state);
  void PointAtRows(State* state);

  void SumOccurrences(State* state);
  void FoldOwned(State* state, std::vector<SquaredSums>* sums);
  void AddRow(int64_t table, int64_t key, const T* gradient, const T* weights,
              SquaredSums* sums) const;

  // work(thread, table, keys, rows) over the rows that owned keys do not name (dense Adam).
  template <typename Work>
  void ForUntouchedRows(const State& state, const Work& work);
  void AddUntouched(const State& state, std::vector<SquaredSums>* sums);
  template <typename Rule>
  void UpdateTouched(const Rule& rule, T scale, State* state);
  template <typename Rule>
  void UpdateUntouched(const Rule& rule, T scale, State* state);

  const EmbeddingLayout layout;
  const SparseOptimizerOptions optimizer;
  const uint64_t seed;
  const int64_t leaves;
  const ShardPlan* const plan;
  Communicator* const communicator;
  ThreadPool* const pool;
  const int rank;
  int64_t widest = 0;
  std::vector<std::unique_ptr<RowStore<T>>> stores;  // by table
};

// ---- Construction

template <typename T>
ShardedEmbedding<T>::Impl::Impl(Options options, const ShardPlan* plan, Communicator* communicator,
                                ThreadPool* pool)
    : layout(std::move(options.tables), std::move(options.fields)),
      optimizer(options.optimizer),
      seed(options.seed),
      leaves(options.leaves),
      plan(plan),
      communicator(communicator),
      pool(pool),
      rank(communicator->rank()) {
  CHECK_EQ(plan->ranks(), communicator->size());
  MakeStores();
}

template <typename T>
void ShardedEmbedding<T>::Impl::MakeStores() {
  const T slot = IsAdagrad(optimizer.kind) ? static_cast<T>(optimizer.initial_accumulator) : T{0};
  for (int64_t t = 0; t < layout.tables(); ++t) {
    widest = std::max(widest, layout.width(t));
    std::vector<int64_t> partitions;
    for (int64_t p = 0; p < kPartitions; ++p) {
      const int owner = plan->Owner(static_cast<int>(t), p);
      if (owner == rank || owner == kAllRanks) partitions.push_back(p);
    }
    auto store = std::make_unique<DenseRowStore<T>>(
        layout.table(t), SlotElements(optimizer.kind, layout.width(t)), std::move(partitions),
        typename DenseRowStore<T>::Initial{seed, slot});
    if (dense()) CreateAllRows(store.get());
    stores.push_back(std::move(store));
  }
}

template <typename T>
void ShardedEmbedding<T>::Impl::CreateAllRows(DenseRowStore<T>* store) {
  pool->ParallelFor(store->rows(), kGrain, [&](int, int64_t begin, int64_t end) {
    T* row;
    for (int64_t i = begin; i < end; ++i) {
      const int64_t key = store->KeyAt(i);
      store->FindOrCreate(std::span(&key, 1), &row);
    }
  });
}

// ---- Rows

template <typename T>
template <typename Work>
void ShardedEmbedding<T>::Impl::ForOwnedKeys(const State& state, const Work& work) {
  const IdRoute& route = state.route;
  pool->ParallelFor(route.owned_size(), kGrain, [&](int thread, int64_t begin, int64_t end) {
    for (int64_t t = 0; t < layout.tables(); ++t) {
      const Range owned = route.OwnedOfTable(t);
      const int64_t first = std::max(begin, owned.begin);
      const int64_t last = std::min(end, owned.end);
      if (first < last) work(thread, t, first, last);
    }
  });
}

template <typename T>
void ShardedEmbedding<T>::Impl::FindOwnedRows(State* state) {
  const int64_t* keys = state->route.owned_keys();
  T** rows = state->owned_rows.Resize(state->route.owned_size());
  ForOwnedKeys(*state, [&](int, int64_t t, int64_t begin, int64_t end) {
    const std::span<const int64_t> part(keys + begin, keys + end);
    if (state->purpose == Purpose::kTrain) {
      stores[t]->FindOrCreate(part, rows + begin);
    } else {
      stores[t]->Find(part, rows + begin);
    }
  });
  if (state->purpose == Purpose::kEvaluate) MakeForgottenRows(state);
}

template <typename T>
void ShardedEmbedding<T>::Impl::MakeForgottenRows(State* state) {
  const IdRoute& route = state->route;
  const int64_t* keys = route.owned_keys();
  T** rows = state->owned_rows.data();
  std::vector<int64_t> elements_before(layout.tables() + 1, 0);
  for (int64_t t = 0; t < layout.tables(); ++t) {
    const int64_t length = layout.width(t) + SlotElements(optimizer.kind, layout.width(t));
    const Range owned = route.OwnedOfTable(t);
    elements_before[t + 1] =
        elements_before[t] + length * std::count(rows + owned.begin, rows + owned.end, nullptr);
  }
  T* row = state->forgotten.Resize(elements_before.back());
  const T* const first = row;
  for (int64_t t = 0; t < layout.tables(); ++t) {
    const int64_t length = layout.width(t) + SlotElements(optimizer.kind, layout.width(t));
    const Range owned = route.OwnedOfTable(t);
    for (int64_t j = owned.begin; j < owned.end; ++j) {
      if (rows[j] != nullptr) continue;
      rows[j] = row;
      row += length;
    }
  }
  ForOwnedKeys(*state, [&](int, int64_t t, int64_t begin, int64_t end) {
    for (int64_t j = begin; j < end; ++j) {
      const bool forgotten = rows[j] >= first && rows[j] < row;
      if (forgotten) stores[t]->MakeInitial(keys[j], rows[j]);
    }
  });
}

template <typename T>
void ShardedEmbedding<T>::Impl::CopyRowsToSend(State* state) {
  const IdRoute& route = state->route;
  const int ranks = plan->ranks();
  std::vector<int64_t> send_at(ranks + 1, 0);
  for (int r = 0; r < ranks; ++r) send_at[r + 1] = send_at[r] + route.rows().send[r];
  pool->ParallelFor(ranks, 1, [&](int, int64_t begin, int64_t end) {
    for (int64_t home = begin; home < end; ++home) {
      T* to = state->exchanged_rows.data() + send_at[home];
      for (int64_t t = 0; t < layout.tables() && home != rank; ++t) {
        if (plan->replicated(t)) continue;
        const std::span<const uint32_t> owned = route.Received(home, t);
        for (size_t i = 0; i < owned.size(); ++i, to += layout.width(t)) {
          const size_t ahead = std::min(i + kLookAhead, owned.size() - 1);
          Prefetch(state->owned_rows[owned[ahead]], layout.width(t));
          std::copy_n(state->owned_rows[owned[i]], layout.width(t), to);
        }
      }
    }
  });
}

template <typename T>
void ShardedEmbedding<T>::Impl::PointAtRows(State* state) {
  const IdRoute& route = state->route;
  const T** rows_of_ids = state->rows_of_ids.Resize(route.ids().size());
  const T* received = state->exchanged_rows.data() + route.rows().sent;
  for (int owner = 0; owner < plan->ranks(); ++owner) {
    for (int64_t t = 0; t < layout.tables(); ++t) {
      const std::span<const uint32_t> sent = route.Sent(owner, t);
      if (owner == rank) {
        const std::span<const uint32_t> owned = route.Received(rank, t);
        for (size_t i = 0; i < sent.size(); ++i) {
          rows_of_ids[sent[i]] = state->owned_rows[owned[i]];
        }
      } else if (!plan->replicated(t)) {
        for (uint32_t u : sent) {
          rows_of_ids[u] = received;
          received += layout.width(t);
        }
      }
    }
  }
}

// ---- Gradients

template <typename T>
void ShardedEmbedding<T>::Impl::SumOccurrences(State* state) {
  const IdRoute& route = state->route;
  const UniqueIds& ids = route.ids();
  const std::span<const Range> nodes = route.nodes();
  T* gradients = state->gradients.Resize(route.gradients().total());
  const uint32_t* first = ids.occurrence_begin();
  // Threads share the occurrences, not the ids: an id may occur in every row.
  const auto id_at = [&](int64_t occurrence) {
    return std::lower_bound(first, first + ids.size(), occurrence) - first;
  };
  pool->ParallelFor(ids.occurrences(), kGrain, [&](int, int64_t begin, int64_t end) {
    OccurrenceSum<T> sum(state->bag_gradients.data(), widest);
    int64_t t = 0;
    for (int64_t u = id_at(begin); u < id_at(end); ++u) {
      while (u >= ids.OfTable(t).end) ++t;
      std::span<const Occurrence> rest = ids.OccurrencesOf(u);
      T* result = gradients + route.GradientOffset(u);
      for (uint64_t mask = route.NodeMask(u); mask != 0; mask &= mask - 1) {
        const int64_t node_end = nodes[std::countr_zero(mask)].end;
        size_t count = rest.size();
        if (nodes.size() > 1) {
          count = std::partition_point(rest.begin(), rest.end(),
                                       [&](const Occurrence& o) { return o.leaf < node_end; }) -
                  rest.begin();
        }
        sum.Sum(rest.first(count), layout.width(t), result);
        rest = rest.subspan(count);
        result += layout.width(t);
      }
    }
  });
  for (const IdRoute::Copy& copy : route.replica_copies()) {
    std::copy_n(gradients + copy.from, copy.elements, gradients + copy.to);
  }
}

template <typename T>
void ShardedEmbedding<T>::Impl::AddRow(int64_t table, int64_t key, const T* gradient,
                                       const T* weights, SquaredSums* sums) const {
  if (!Accounts(table, key)) return;
  sums->gradients.Add(SumOfSquares(gradient, layout.width(table)));
  if (optimizer.l2 > 0) sums->weights.Add(SumOfSquares(weights, layout.width(table)));
}

template <typename T>
void ShardedEmbedding<T>::Impl::FoldOwned(State* state, std::vector<SquaredSums>* sums) {
  const IdRoute& route = state->route;
  const T l2 = static_cast<T>(optimizer.l2);
  ForOwnedKeys(*state, [&](int thread, int64_t t, int64_t begin, int64_t end) {
    const int64_t width = layout.width(t);
    for (int64_t j = begin; j < end; ++j) {
      LeafStack<T> stack(width);
      for (const IdRoute::Node& node : route.NodesOf(j)) {
        stack.MakeRoom(node.leaf);
        stack.Push(node.leaf, state->gradients.data() + node.offset);
      }
      stack.Finish();
      T* __restrict g = state->GradientOf(j);
      const T* __restrict w = state->owned_rows[j];
      if (l2 != 0) {
        Prefetch(state->owned_rows[std::min(j + kLookAhead, end - 1)], width);
        for (int64_t i = 0; i < width; ++i) g[i] += l2 * w[i];
      }
      AddRow(t, route.owned_keys()[j], g, w, &(*sums)[thread]);
    }
  });
}

template <typename T>
template <typename Work>
void ShardedEmbedding<T>::Impl::ForUntouchedRows(const State& state, const Work& work) {
  const int64_t* keys = state.route.owned_keys();
  const auto mark_touched = [&](bool marked) {
    ForOwnedKeys(state, [&](int, int64_t t, int64_t begin, int64_t end) {
      for (int64_t j = begin; j < end; ++j) stores[t]->SetMark(keys[j], marked);
    });
  };
  mark_touched(true);
  pool->Run([&](int thread) {
    for (int64_t t = 0; t < layout.tables(); ++t) {
      stores[t]->ForEachBlock(
          RowStore<T>::Visit::kUnmarked, thread, pool->threads(),
          [&](std::span<const int64_t> block, T* const* rows) { work(thread, t, block, rows); });
    }
  });
  mark_touched(false);
}

template <typename T>
void ShardedEmbedding<T>::Impl::AddUntouched(const State& state, std::vector<SquaredSums>* sums) {
  const T l2 = static_cast<T>(optimizer.l2);
  std::vector<std::vector<T>> scratch(pool->threads(), std::vector<T>(widest));
  ForUntouchedRows(state,
                   [&](int thread, int64_t t, std::span<const int64_t> keys, T* const* rows) {
                     T* __restrict g = scratch[thread].data();
                     for (size_t k = 0; k < keys.size(); ++k) {
                       for (int64_t i = 0; i < layout.width(t); ++i) g[i] = l2 * rows[k][i];
                       AddRow(t, keys[k], g, rows[k], &(*sums)[thread]);
                     }
                   });
}

// ---- Update

template <typename T>
template <typename Rule>
void ShardedEmbedding<T>::Impl::UpdateTouched(const Rule& rule, T scale, State* state) {
  ForOwnedKeys(*state, [&](int, int64_t t, int64_t begin, int64_t end) {
    const int64_t width = layout.width(t);
    const int64_t length = width + SlotElements(optimizer.kind, width);
    for (int64_t j = begin; j < end; ++j) {
      Prefetch(state->owned_rows[std::min(j + kLookAhead, end - 1)], length);
      T* row = state->owned_rows[j];
      rule(width, scale, state->GradientOf(j), row, row + width);
    }
  });
}

template <typename T>
template <typename Rule>
void ShardedEmbedding<T>::Impl::UpdateUntouched(const Rule& rule, T scale, State* state) {
  const T l2 = static_cast<T>(optimizer.l2);
  std::vector<std::vector<T>> scratch(pool->threads(), std::vector<T>(widest));
  ForUntouchedRows(*state,
                   [&](int thread, int64_t t, std::span<const int64_t> keys, T* const* rows) {
                     const int64_t width = layout.width(t);
                     T* __restrict g = scratch[thread].data();
                     for (size_t k = 0; k < keys.size(); ++k) {
                       for (int64_t i = 0; i < width; ++i) g[i] = l2 * rows[k][i];
                       rule(width, scale, g, rows[k], rows[k] + width);
                     }
                   });
}

// ---- The public face

template <typename T>
ShardedEmbedding<T>::Routing::Routing(std::unique_ptr<State> state) : state_(std::move(state)) {}
template <typename T>
ShardedEmbedding<T>::Routing::~Routing() = default;

template <typename T>
ShardedEmbedding<T>::ShardedEmbedding(Options options, const ShardPlan* plan,
                                      Communicator* communicator, ThreadPool* pool)
    : impl_(std::make_unique<Impl>(std::move(options), plan, communicator, pool)) {}
template <typename T>
ShardedEmbedding<T>::~ShardedEmbedding() = default;

template <typename T>
std::unique_ptr<typename ShardedEmbedding<T>::Routing> ShardedEmbedding<T>::MakeRouting() const {
  return std::unique_ptr<Routing>(new Routing(std::make_unique<typename Routing::State>(
      &impl_->layout, impl_->plan, impl_->rank, impl_->leaves)));
}

template <typename T>
Status ShardedEmbedding<T>::RouteIds(const SparseBatch& batch, Routing* routing) {
  auto* state = routing->state_.get();
  state->stage = Routing::State::Stage::kNone;
  ELASTOR_RETURN_IF_ERROR(state->route.Route(batch, impl_->communicator));
  state->stage = Routing::State::Stage::kRouted;
  return OkStatus();
}

template <typename T>
Status ShardedEmbedding<T>::Lookup(Purpose purpose, Routing* routing) {
  auto* state = routing->state_.get();
  CHECK(state->stage == Routing::State::Stage::kRouted) << "Lookup without RouteIds";
  const IdRoute::Exchange& exchange = state->route.rows();
  state->purpose = purpose;
  impl_->FindOwnedRows(state);
  T* rows = state->exchanged_rows.Resize(exchange.total());
  impl_->CopyRowsToSend(state);
  ELASTOR_RETURN_IF_ERROR(impl_->communicator->AllToAllV(
      Phase::kRowExchange, rows, ElementsInBytes(exchange.send, sizeof(T)), rows + exchange.sent,
      ElementsInBytes(exchange.receive, sizeof(T))));
  impl_->PointAtRows(state);
  if (purpose == Purpose::kTrain) {
    state->bag_gradients.Resize(state->route.ids().rows() * impl_->layout.features());
  }
  state->stage = Routing::State::Stage::kLookedUp;
  return OkStatus();
}

template <typename T>
void ShardedEmbedding<T>::ReturnRows(const Routing& routing, int64_t row_begin, Panels<T> e) const {
  const auto& state = *routing.state_;
  CHECK(state.stage == Routing::State::Stage::kLookedUp) << "ReturnRows without Lookup";
  PoolBags(impl_->layout, state.route.ids(), state.rows_of_ids.data(), row_begin, e);
}

template <typename T>
void ShardedEmbedding<T>::TakeGradients(int64_t row_begin, Panels<const T> de,
                                        Routing* routing) const {
  auto* state = routing->state_.get();
  CHECK(state->stage == Routing::State::Stage::kLookedUp && state->purpose == Purpose::kTrain)
      << "TakeGradients without Lookup(kTrain)";
  UnpoolGradients(impl_->layout, state->route.ids(), row_begin, de, state->bag_gradients.data());
}

template <typename T>
Status ShardedEmbedding<T>::RouteGradients(int64_t global_rows, Routing* routing,
                                           ExactSum* squared_norm, ExactSum* squared_weights) {
  auto* state = routing->state_.get();
  const IdRoute& route = state->route;
  CHECK(state->stage == Routing::State::Stage::kLookedUp && state->purpose == Purpose::kTrain)
      << "RouteGradients without Lookup(kTrain)";
  const Range owned = LeavesOfRank(impl_->rank, impl_->plan->ranks(), impl_->leaves);
  CHECK_EQ(route.ids().rows(), RowsOfLeaf(owned.end - 1, impl_->leaves, global_rows).end -
                                   RowsOfLeaf(owned.begin, impl_->leaves, global_rows).begin);
  impl_->SumOccurrences(state);
  const IdRoute::Exchange& exchange = route.gradients();
  T* gradients = state->gradients.data();
  ELASTOR_RETURN_IF_ERROR(impl_->communicator->AllToAllV(
      Phase::kGradientExchange, gradients, ElementsInBytes(exchange.send, sizeof(T)),
      gradients + exchange.sent + exchange.kept, ElementsInBytes(exchange.receive, sizeof(T))));
  std::vector<SquaredSums> sums(impl_->pool->threads());
  impl_->FoldOwned(state, &sums);
  // Without L2, the gradient of an untouched row is 0.
  if (impl_->dense() && impl_->optimizer.l2 > 0) impl_->AddUntouched(*state, &sums);
  for (const SquaredSums& part : sums) {
    squared_norm->Merge(part.gradients);
    squared_weights->Merge(part.weights);
  }
  state->stage = Routing::State::Stage::kGradients;
  return OkStatus();
}

template <typename T>
void ShardedEmbedding<T>::Update(double scale, double learning_rate, int64_t step,
                                 Routing* routing) {
  auto* state = routing->state_.get();
  CHECK(state->stage == Routing::State::Stage::kGradients) << "Update without RouteGradients";
  CHECK_GE(step, 1);
  WithOptimizer<T>(impl_->optimizer, learning_rate, step, [&](const auto& rule) {
    impl_->UpdateTouched(rule, static_cast<T>(scale), state);
    if (impl_->dense()) impl_->UpdateUntouched(rule, static_cast<T>(scale), state);
  });
  state->stage = Routing::State::Stage::kNone;
}

template <typename T>
void ShardedEmbedding<T>::AddToDigest(Digest* digest) const {
  std::vector<Digest> parts(impl_->pool->threads());
  impl_->pool->Run([&](int thread) {
    for (int64_t t = 0; t < impl_->layout.tables(); ++t) {
      const uint64_t name = Digest::NameSeed("embedding/" + impl_->layout.table(t).name);
      const int64_t width = impl_->layout.width(t);
      const size_t bytes = (width + SlotElements(impl_->optimizer.kind, width)) * sizeof(T);
      impl_->stores[t]->ForEachBlock(RowStore<T>::Visit::kAll, thread, impl_->pool->threads(),
                                     [&](std::span<const int64_t> keys, T* const* rows) {
                                       for (size_t i = 0; i < keys.size(); ++i) {
                                         if (!impl_->Accounts(t, keys[i])) continue;
                                         parts[thread].AddHashed(
                                             name, static_cast<uint64_t>(keys[i]), rows[i], bytes);
                                       }
                                     });
    }
  });
  for (const Digest& part : parts) digest->Merge(part);
}

template <typename T>
void ShardedEmbedding<T>::ForEachRow(
    const std::function<void(int, int64_t, const T*, const T*)>& fn) const {
  for (int64_t t = 0; t < impl_->layout.tables(); ++t) {
    impl_->stores[t]->ForEachBlock(
        RowStore<T>::Visit::kAll, 0, 1, [&](std::span<const int64_t> keys, T* const* rows) {
          for (size_t i = 0; i < keys.size(); ++i) {
            if (!impl_->Accounts(t, keys[i])) continue;
            fn(static_cast<int>(t), keys[i], rows[i], rows[i] + impl_->layout.width(t));
          }
        });
  }
}

template <typename T>
void ShardedEmbedding<T>::SetRow(int table, int64_t key, const T* weights, const T* slots) {
  CHECK(key >= 0 && key < impl_->layout.table(table).rows)
      << impl_->layout.table(table).name << ": no row " << key;
  const int owner = impl_->plan->Owner(table, key % kPartitions);
  if (owner != impl_->rank && owner != kAllRanks) return;
  T* row;
  impl_->stores[table]->FindOrCreate(std::span<const int64_t>(&key, 1), &row);
  const int64_t width = impl_->layout.width(table);
  const int64_t slot_elements = SlotElements(impl_->optimizer.kind, width);
  std::copy_n(weights, width, row);
  if (slots != nullptr) {
    std::copy_n(slots, slot_elements, row + width);
  } else {
    std::fill_n(row + width, slot_elements, T{0});
  }
}

template <typename T>
int64_t ShardedEmbedding<T>::output_features() const {
  return impl_->layout.features();
}

template <typename T>
int64_t ShardedEmbedding<T>::memory_bytes() const {
  int64_t bytes = 0;
  for (const auto& store : impl_->stores) bytes += store->memory_bytes();
  return bytes;
}

template class ShardedEmbedding<float>;
template class ShardedEmbedding<double>;

}  // namespace elastor
