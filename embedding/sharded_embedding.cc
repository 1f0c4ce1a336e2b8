#include "embedding/sharded_embedding.h"

#include <algorithm>
#include <bit>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "core/base/leaves.h"
#include "core/base/log.h"
#include "embedding/bag_pooling.h"
#include "embedding/early_rows.h"
#include "embedding/embedding_layout.h"
#include "embedding/exchange_places.h"
#include "embedding/grow_buffer.h"
#include "embedding/id_route.h"
#include "embedding/node_fold.h"
#include "embedding/occurrence_sum.h"
#include "embedding/owned_tables.h"
#include "embedding/row_math.h"
#include "embedding/row_pass.h"
#include "embedding/wire_format.h"

namespace elastor {
namespace {

constexpr int64_t kGrain = 64;    // occurrences a thread takes at least
constexpr size_t kLookAhead = 8;  // rows fetched into the cache before their turn
constexpr int64_t kNotEarly = -1;

enum class Stage { kNone, kRouted, kLookedUp, kGradients };

std::optional<RankHosts> HostsOf(const EmbeddingOptions& options, int ranks) {
  const bool by_host = options.hosts && GoesByHost(*options.hosts, ranks, options.leaves);
  return by_host ? options.hosts : std::nullopt;
}

}  // namespace

template <typename T>
struct ShardedEmbedding<T>::Routing::State {
  State(const EmbeddingLayout* layout, const ShardPlan* plan, int rank, int64_t leaves,
        bool changes_gradients, const RankHosts* hosts)
      : route(layout, plan, rank, leaves, changes_gradients, hosts), early(layout, plan, rank) {
    if (hosts != nullptr) between = std::make_unique<IdRoute>(&route);
  }

  Stage stage = Stage::kNone;
  bool summed = false;  // behind kLookedUp: gradients of unique ids
  Purpose purpose = Purpose::kEvaluate;
  bool fetched = false;  // by FetchAhead
  IdRoute route;
  std::unique_ptr<IdRoute> between;    // by host, the leg between hosts behind `route`
  EarlyRows early;                     // of `route`; not by host
  int64_t early_removals = kNotEarly;  // Impl::removals when early rows were sent
  GrowBuffer<T*> owned_rows;           // by owned key of owner_route
  GrowBuffer<T> forgotten;             // rows made for an evaluation, or for early rows, only
  GrowBuffer<T> rounded_rows;          // copies of own rows, with a wire format
  GrowBuffer<uint16_t> wire;           // vectors on their way in a wire format: sent, received
  GrowBuffer<T> exchanged_rows;        // RowPlaces::exchange
  GrowBuffer<T> early_rows;            // likewise, of the early part
  GrowBuffer<const T*> rows_of_ids;    // by unique id
  GrowBuffer<T> gradients;  // GradientPlaces::exchange, then those of bags: [row][feature]
  // The same of the leg between hosts.
  GrowBuffer<T> exchanged_between;
  GrowBuffer<const T*> gathered_rows;
  GrowBuffer<T> gathered_gradients;

  // The route whose owners have the rows.
  const IdRoute& owner_route() const { return between == nullptr ? route : *between; }
  T* owner_gradients() { return between == nullptr ? gradients.data() : gathered_gradients.data(); }

  GrowBuffer<double> squares;  // of gradients, by owned key; with row-wise Adagrad

  T* bag_gradients() { return gradients.data() + route.bag_gradients(); }

  void CheckReadyForGradients() const {
    CHECK(stage == Stage::kLookedUp && purpose == Purpose::kTrain)
        << "gradients without Lookup(kTrain)";
  }
};

template <typename T>
struct ShardedEmbedding<T>::Impl {
  using State = typename Routing::State;

  Impl(Options options, const ShardPlan* plan, Communicator* communicator, ThreadPool* pool);

  // Rows of an evaluation are not rounded, so that it has the scores of whoever scores with the
  // tables.
  WireFormat RowFormatOf(const State& state) const {
    return state.purpose == Purpose::kTrain ? wire.rows : WireFormat::kFloat32;
  }
  // Sends rows along a route, to the ranks that asked for them. part: those that travel; null: all.
  // rows: by owned key. workers: null: the calling thread works alone. exchanged: room for them.
  Status SendRows(Phase phase, const IdRoute& route, const RowPart* part, const T* const* rows,
                  ThreadPool* workers, State* state, GrowBuffer<T>* exchanged);
  // Sets rows_of_ids to the rows of the route's unique ids: own ones of `rows`, which are rounded
  // to `format`, and those that SendRows has brought to `exchanged`. late: what it has brought, if
  // the other rows came early; null: no row did.
  void PointAtRows(const IdRoute& route, const RowPart* late, const T* const* rows,
                   WireFormat format, const GrowBuffer<T>& exchanged, State* state,
                   GrowBuffer<const T*>* rows_of_ids);
  // Sums gradients of unique ids over their occurrences, with the sums of each thread.
  SumKeys SumKeysOf(State* state, std::vector<OccurrenceSum<T>>* sums) const;
  Status SendGradients(State* state);
  // Adds the gathered gradients along the tree inside this host's nodes, and sends the sums.
  Status SendGathered(State* state);
  Status SendVectors(const IdRoute& route, T* gradients, GrowBuffer<uint16_t>* memory) const;
  // Sends the first part of `vectors`, which lie as `places` says, and receives the last. workers:
  // as of SendRows. memory: room for them in another format.
  template <typename Places>
  Status Exchange(Phase phase, WireFormat format, const Places& places, ThreadPool* workers,
                  T* vectors, GrowBuffer<uint16_t>* memory) const;
  // Calls work(begin, end) for ranges that cover the ranks.
  template <typename Work>
  void ForRanks(ThreadPool* workers, const Work& work) const {
    if (workers == nullptr) return work(0, plan->ranks());
    workers->ParallelFor(plan->ranks(), 1,
                         [&](int, int64_t begin, int64_t end) { work(begin, end); });
  }
  void SumOccurrencesOf(int64_t u, const IdRoute& route, int64_t width, OccurrenceSum<T>* sum,
                        T* result) const;

  const EmbeddingLayout layout;
  const int64_t leaves;
  const WireFormats wire;
  const std::optional<RankHosts> hosts;  // if vectors go by host
  const ShardPlan* const plan;
  Communicator* const communicator;
  ThreadPool* const pool;
  const int rank;
  OwnedTables<T> tables;
  std::vector<typename EmbeddingState<T>::KeyedTable> keyed;
  int64_t event_time = 0;
  const bool has_early_rows;
  int64_t removals = 0;  // how often rows may have left; alike on all ranks
  SentRows sent_rows;
};

template <typename T>
ShardedEmbedding<T>::Impl::Impl(Options options, const ShardPlan* plan, Communicator* communicator,
                                ThreadPool* pool)
    : layout(options.tables, options.fields),
      leaves(options.leaves),
      wire(options.wire),
      hosts(HostsOf(options, plan->ranks())),
      plan(plan),
      communicator(communicator),
      pool(pool),
      rank(communicator->rank()),
      tables(&layout, options, plan, rank, pool),
      has_early_rows(HasEarlyRows(*plan, static_cast<int>(layout.tables()),
                                  options.optimizer.rule.kind, hosts ? &*hosts : nullptr)) {
  CHECK_EQ(plan->ranks(), communicator->size());
  for (int t = 0; t < static_cast<int>(layout.tables()); ++t) {
    if (layout.table(t).keyed && layout.table(t).looked_up()) keyed.push_back({.table = t});
  }
}

// ---- Rows

template <typename T>
Status ShardedEmbedding<T>::Impl::SendRows(Phase phase, const IdRoute& route, const RowPart* part,
                                           const T* const* rows, ThreadPool* workers, State* state,
                                           GrowBuffer<T>* exchanged) {
  const RowPlaces& places = part == nullptr ? route.rows() : part->places();
  T* const vectors = exchanged->Resize(places.exchange.total());
  ForRanks(workers, [&](int64_t begin, int64_t end) {
    for (int64_t requester = begin; requester < end; ++requester) {
      for (int64_t t = 0; t < layout.tables(); ++t) {
        const int64_t cell = requester * layout.tables() + t;
        if (places.sent[cell] < 0) continue;
        T* to = vectors + places.sent[cell];
        const std::span<const uint32_t> owned =
            part == nullptr ? route.Received(static_cast<int>(requester), t) : part->Sent(cell);
        for (size_t i = 0; i < owned.size(); ++i, to += layout.width(t)) {
          const size_t ahead = std::min(i + kLookAhead, owned.size() - 1);
          PrefetchRow(rows[owned[ahead]], layout.width(t));
          std::copy_n(rows[owned[i]], layout.width(t), to);
        }
      }
    }
  });
  return Exchange(phase, RowFormatOf(*state), places, workers, vectors, &state->wire);
}

template <typename T>
void ShardedEmbedding<T>::Impl::PointAtRows(const IdRoute& route, const RowPart* late,
                                            const T* const* rows, WireFormat format,
                                            const GrowBuffer<T>& exchanged, State* state,
                                            GrowBuffer<const T*>* rows_of_ids) {
  const T** const to = rows_of_ids->Resize(route.listed_size());
  // The rows of a cell that one exchange has brought.
  const auto point_at = [&](const RowPlaces& places, const GrowBuffer<T>& memory, int64_t cell,
                            std::span<const uint32_t> ids) {
    if (places.received[cell] < 0) return;
    const T* row = memory.data() + places.exchange.sent + places.received[cell];
    for (const uint32_t u : ids) {
      to[u] = row;
      row += layout.width(cell % layout.tables());
    }
  };
  const int64_t cells = plan->ranks() * layout.tables();
  std::vector<int64_t> rounded_begin{0};  // by table
  for (int64_t t = 0; format != WireFormat::kFloat32 && t < layout.tables(); ++t) {
    rounded_begin.push_back(rounded_begin.back() +
                            static_cast<int64_t>(route.Sent(rank, t).size()) * layout.width(t));
  }
  T* const rounded =
      format == WireFormat::kFloat32 ? nullptr : state->rounded_rows.Resize(rounded_begin.back());
  pool->ParallelFor(cells, 1, [&](int, int64_t begin, int64_t end) {
    for (int64_t cell = begin; cell < end; ++cell) {
      const auto owner = static_cast<int>(cell / layout.tables());
      const int64_t t = cell % layout.tables();
      const std::span<const uint32_t> sent = route.Sent(owner, t);
      if (owner == rank) {
        const std::span<const uint32_t> owned = route.Received(rank, t);
        for (size_t i = 0; i < sent.size(); ++i) {
          to[sent[i]] = rows[owned[i]];
        }
        if (format == WireFormat::kFloat32) continue;
        T* copy = rounded + rounded_begin[t];
        for (const uint32_t u : sent) {
          std::copy_n(to[u], layout.width(t), copy);
          RoundToWire(format, layout.width(t), copy);
          to[u] = copy;
          copy += layout.width(t);
        }
        continue;
      }
      if (late == nullptr) {
        point_at(route.rows(), exchanged, cell, sent);
        continue;
      }
      point_at(late->places(), exchanged, cell, late->Received(cell));
      const RowPart& early = state->early.early();
      point_at(early.places(), state->early_rows, cell, early.Received(cell));
    }
  });
}

// ---- Gradients

// Sends the sums to the owners.
template <typename T>
Status ShardedEmbedding<T>::Impl::SendGradients(State* state) {
  ELASTOR_RETURN_IF_ERROR(SendVectors(state->route, state->gradients.data(), &state->wire));
  return state->between == nullptr ? OkStatus() : SendGathered(state);
}

template <typename T>
Status ShardedEmbedding<T>::Impl::SendVectors(const IdRoute& route, T* gradients,
                                              GrowBuffer<uint16_t>* memory) const {
  for (const GradientPlaces::Copy& copy : route.gradients().copies) {
    std::copy_n(gradients + copy.from, copy.elements, gradients + copy.to);
  }
  return Exchange(Phase::kGradientExchange, wire.gradients, route.gradients(), pool, gradients,
                  memory);
}

template <typename T>
Status ShardedEmbedding<T>::Impl::SendGathered(State* state) {
  const IdRoute& route = state->route;
  const IdRoute& between = *state->between;
  const std::vector<Range>& nodes = between.nodes();
  T* const gradients = state->gradients.data();
  T* const sums = state->gathered_gradients.data();
  pool->ParallelFor(route.owned_size(), kGrain, [&](int, int64_t begin, int64_t end) {
    for (int64_t t = 0; t < layout.tables(); ++t) {
      const Range keys = route.OwnedOfTable(t);
      const int64_t width = layout.width(t);
      for (int64_t j = std::max(begin, keys.begin); j < std::min(end, keys.end); ++j) {
        std::span<const IdRoute::Node> rest = route.NodesOf(j);
        for (T* to = sums + between.GradientOffset(j); !rest.empty(); to += width) {
          const int64_t node_end = nodes[NumberOfNode(nodes, rest[0].leaf)].end;
          size_t count = 1;
          while (count < rest.size() && rest[count].leaf < node_end) ++count;
          const T* const sum = FoldInPlace(rest.first(count), width, wire.gradients, gradients);
          std::copy_n(sum, width, to);
          rest = rest.subspan(count);
        }
      }
    }
  });
  return SendVectors(between, sums, &state->wire);
}

template <typename T>
template <typename Places>
Status ShardedEmbedding<T>::Impl::Exchange(Phase phase, WireFormat format, const Places& places,
                                           ThreadPool* workers, T* vectors,
                                           GrowBuffer<uint16_t>* memory) const {
  const VectorExchange& exchange = places.exchange;
  T* const received = vectors + exchange.sent + exchange.kept;
  const auto bytes = [&](const std::vector<int64_t>& elements, const std::vector<int64_t>& counts) {
    std::vector<int64_t> bytes;
    for (size_t r = 0; r < elements.size(); ++r) {
      bytes.push_back(WireBytes(format, elements[r], counts[r], sizeof(T)));
    }
    return bytes;
  };
  const std::vector<int64_t> send = bytes(exchange.send, exchange.send_vectors);
  const std::vector<int64_t> receive = bytes(exchange.receive, exchange.receive_vectors);
  if (format == WireFormat::kFloat32) {
    return communicator->AllToAllV(phase, vectors, send, received, receive);
  }
  const int64_t send_bytes = std::accumulate(send.begin(), send.end(), int64_t{0});
  const int64_t receive_bytes = std::accumulate(receive.begin(), receive.end(), int64_t{0});
  uint16_t* const words = memory->Resize((send_bytes + receive_bytes) / 2);
  // Calls fn(width, vector, its words) for the vectors of a part, rank by rank.
  const auto for_each = [&](const std::vector<int64_t>& elements,
                            const std::vector<int64_t>& bytes_of,
                            const std::vector<int64_t>& counts, T* first, uint16_t* first_word,
                            const auto& fn) {
    ForRanks(workers, [&](int64_t begin, int64_t end) {
      T* vector = first + std::accumulate(elements.begin(), elements.begin() + begin, int64_t{0});
      uint16_t* word =
          first_word + std::accumulate(bytes_of.begin(), bytes_of.begin() + begin, int64_t{0}) / 2;
      for (int64_t r = begin; r < end; ++r) {
        if (r == rank) continue;
        for (int64_t t = 0; t < layout.tables(); ++t) {
          const int64_t width = layout.width(t);
          for (int64_t i = 0; i < counts[r * layout.tables() + t]; ++i) {
            fn(width, vector, word);
            vector += width;
            word += WireWords(format, width, 1);
          }
        }
      }
    });
  };
  for_each(
      exchange.send, send, places.sent_vectors, vectors, words,
      [&](int64_t width, const T* vector, uint16_t* to) { WriteWire(format, vector, width, to); });
  uint16_t* const received_words = words + send_bytes / 2;
  ELASTOR_RETURN_IF_ERROR(communicator->AllToAllV(phase, words, send, received_words, receive));
  for_each(exchange.receive, receive, places.received_vectors, received, received_words,
           [&](int64_t width, T* vector, const uint16_t* from) {
             ReadWire(format, from, width, vector);
           });
  return OkStatus();
}

template <typename T>
void ShardedEmbedding<T>::Impl::SumOccurrencesOf(int64_t u, const IdRoute& route, int64_t width,
                                                 OccurrenceSum<T>* sum, T* result) const {
  const std::vector<Range>& nodes = route.nodes();
  std::span<const Occurrence> rest = route.ids().OccurrencesOf(u);
  if (nodes.size() == 1) return sum->Sum(rest, width, result);
  for (uint64_t mask = route.NodeMask(u); mask != 0; mask &= mask - 1) {
    const int64_t node_end = nodes[std::countr_zero(mask)].end;
    const auto next = std::partition_point(rest.begin(), rest.end(),
                                           [&](const Occurrence& o) { return o.leaf < node_end; });
    const size_t count = next - rest.begin();
    sum->Sum(rest.first(count), width, result);
    rest = rest.subspan(count);
    result += width;
  }
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
      &impl_->layout, impl_->plan, impl_->rank, impl_->leaves, impl_->tables.changes_gradients(),
      hosts())));
}

template <typename T>
Status ShardedEmbedding<T>::RouteIds(const SparseBatch& batch, Routing* routing,
                                     RouteThreads threads) {
  auto* state = routing->state_.get();
  state->stage = Stage::kNone;
  ELASTOR_RETURN_IF_ERROR(state->route.Route(
      batch, impl_->communicator, threads == RouteThreads::kAll ? impl_->pool : nullptr));
  if (state->between != nullptr) {
    ELASTOR_RETURN_IF_ERROR(state->between->RouteGathered(impl_->communicator));
  }
  state->stage = Stage::kRouted;
  state->fetched = false;
  state->early_removals = kNotEarly;
  return OkStatus();
}

template <typename T>
void ShardedEmbedding<T>::FetchAhead(Routing* routing) const {
  auto* state = routing->state_.get();
  CHECK(state->stage == Stage::kRouted) << "FetchAhead without RouteIds";
  impl_->tables.FetchAhead(state->owner_route());
  state->fetched = true;
}

template <typename T>
bool ShardedEmbedding<T>::has_tier() const {
  return impl_->tables.has_tier();
}

template <typename T>
Status ShardedEmbedding<T>::Lookup(Purpose purpose, Routing* routing) {
  auto* state = routing->state_.get();
  const IdRoute& route = state->route;
  CHECK(state->stage == Stage::kRouted) << "Lookup without RouteIds";
  state->purpose = purpose;
  const IdRoute& owner_route = state->owner_route();
  impl_->tables.BringRows(owner_route, state->fetched);
  T** owned_rows = state->owned_rows.Resize(owner_route.owned_size());
  if (purpose == Purpose::kTrain) {
    impl_->tables.FindOrCreate(owner_route, owned_rows);
    state->gradients.Resize(route.bag_gradients() + route.ids().rows() * impl_->layout.features());
  } else {
    impl_->tables.FindOrForget(owner_route, owned_rows, &state->forgotten);
  }
  const T* const* rows = owned_rows;
  WireFormat rounding = impl_->RowFormatOf(*state);
  if (state->between != nullptr) {
    if (purpose == Purpose::kTrain) {
      state->gathered_gradients.Resize(owner_route.gradients().exchange.total());
    }
    ELASTOR_RETURN_IF_ERROR(impl_->SendRows(Phase::kRowExchange, owner_route, /*part=*/nullptr,
                                            rows, impl_->pool, state, &state->exchanged_between));
    impl_->PointAtRows(owner_route, /*late=*/nullptr, rows, rounding, state->exchanged_between,
                       state, &state->gathered_rows);
    rows = state->gathered_rows.data();
    rounding = WireFormat::kFloat32;  // they are rounded already
  }
  // Early rows that may have left since are sent again.
  const RowPart* const late =
      state->early_removals == impl_->removals ? &state->early.late() : nullptr;
  ELASTOR_RETURN_IF_ERROR(impl_->SendRows(Phase::kRowExchange, route, late, rows, impl_->pool,
                                          state, &state->exchanged_rows));
  impl_->PointAtRows(route, late, rows, rounding, state->exchanged_rows, state,
                     &state->rows_of_ids);
  if (purpose == Purpose::kTrain) {
    const auto vectors = [](const RowPlaces& places) {
      const std::vector<int64_t>& sent = places.exchange.send_vectors;
      return std::accumulate(sent.begin(), sent.end(), int64_t{0});
    };
    impl_->sent_rows.all += vectors(route.rows());
    if (late != nullptr) impl_->sent_rows.early += vectors(state->early.early().places());
  }
  state->stage = Stage::kLookedUp;
  state->summed = false;
  return OkStatus();
}

template <typename T>
bool ShardedEmbedding<T>::MayLookupEarly(int64_t step) const {
  const auto removes = [&](const auto& keyed) {
    const int64_t every = impl_->layout.table(keyed.table).rules.evict_every_steps;
    return every > 0 && step % every == 0;
  };
  return impl_->has_early_rows && std::ranges::none_of(impl_->keyed, removes);
}

template <typename T>
Status ShardedEmbedding<T>::LookupEarly(const Routing& present, Routing* next) {
  auto* state = next->state_.get();
  CHECK(state->stage == Stage::kRouted) << "LookupEarly without RouteIds";
  CHECK(present.state_->stage == Stage::kLookedUp) << "LookupEarly without the present Lookup";
  state->purpose = Purpose::kTrain;
  uint8_t* const marks = state->early.Choose(present.state_->route, state->route);
  impl_->tables.AwaitRows();
  T** const owned_rows = state->owned_rows.Resize(state->route.owned_size());
  impl_->tables.FindMarked(state->route, marks, owned_rows, &state->forgotten);
  ELASTOR_RETURN_IF_ERROR(state->early.Tell(state->route, impl_->communicator));
  ELASTOR_RETURN_IF_ERROR(impl_->SendRows(Phase::kEarlyRows, state->route, &state->early.early(),
                                          owned_rows, /*workers=*/nullptr, state,
                                          &state->early_rows));
  state->early_removals = impl_->removals;
  return OkStatus();
}

template <typename T>
typename ShardedEmbedding<T>::SentRows ShardedEmbedding<T>::sent_rows() const {
  return impl_->sent_rows;
}

template <typename T>
void ShardedEmbedding<T>::ReturnRows(const Routing& routing, int64_t row_begin, Panels<T> e) const {
  const auto& state = *routing.state_;
  CHECK(state.stage == Stage::kLookedUp) << "ReturnRows without Lookup";
  PoolBags(impl_->layout, state.route.ids(), state.rows_of_ids.data(), row_begin, e);
}

template <typename T>
void ShardedEmbedding<T>::TakeGradients(int64_t row_begin, Panels<const T> de,
                                        Routing* routing) const {
  auto* state = routing->state_.get();
  state->CheckReadyForGradients();
  UnpoolGradients(impl_->layout, state->route.ids(), row_begin, de, state->bag_gradients());
}

template <typename T>
SumKeys ShardedEmbedding<T>::Impl::SumKeysOf(State* state,
                                             std::vector<OccurrenceSum<T>>* sums) const {
  sums->assign(pool->threads(),
               OccurrenceSum<T>(state->bag_gradients(), layout.widest(), wire.gradients));
  return [this, state, sums](int thread, int64_t t, const Range& ids) {
    const IdRoute& route = state->route;
    T* const gradients = state->gradients.data();
    const int64_t width = layout.width(t);
    for (int64_t u = ids.begin; u < ids.end; ++u) {
      if (route.HasBagGradient(u)) {
        (*sums)[thread].PrefetchAhead(route.ids().OccurrencesOf(u)[0], width);
        RoundToWire(wire.gradients, width, gradients + route.GradientOffset(u));
      } else {
        SumOccurrencesOf(u, route, width, &(*sums)[thread], gradients + route.GradientOffset(u));
      }
    }
  };
}

template <typename T>
void ShardedEmbedding<T>::SumGradients(Routing* routing) {
  auto* state = routing->state_.get();
  const IdRoute& route = state->route;
  state->CheckReadyForGradients();
  if (route.alone() || std::exchange(state->summed, true)) return;
  std::vector<OccurrenceSum<T>> sums;
  const SumKeys sum_keys = impl_->SumKeysOf(state, &sums);
  // Threads share the occurrences, not the ids: one id may occur in every row.
  const auto sum = [&](int thread, int64_t begin, int64_t end) {
    const Range ids = {route.ids().IdAt(begin), route.ids().IdAt(end)};
    for (int64_t t = 0; t < impl_->layout.tables(); ++t) {
      const Range table = route.ids().OfTable(t);
      sum_keys(thread, t, {std::max(ids.begin, table.begin), std::min(ids.end, table.end)});
    }
  };
  impl_->pool->ParallelFor(route.ids().occurrences(), kGrain, sum);
}

template <typename T>
Status ShardedEmbedding<T>::RouteGradients(int64_t global_rows, Routing* routing,
                                           ExactSum* squared_norm, ExactSum* squared_weights) {
  auto* state = routing->state_.get();
  const IdRoute& route = state->route;
  SumGradients(routing);
  const Range owned = LeavesOfRank(impl_->rank, impl_->plan->ranks(), impl_->leaves);
  CHECK_EQ(route.ids().rows(), RowsOfLeaf(owned.end - 1, impl_->leaves, global_rows).end -
                                   RowsOfLeaf(owned.begin, impl_->leaves, global_rows).begin);
  const bool keep_squares = impl_->tables.kind() == OptimizerKind::kRowWiseAdagrad;
  const IdRoute& owner_route = state->owner_route();
  double* const squares = keep_squares ? state->squares.Resize(owner_route.owned_size()) : nullptr;
  std::vector<OccurrenceSum<T>> sums;
  SumKeys sum_keys;  // with one rank, where the sums are used while they are in the cache
  if (route.alone()) {
    sum_keys = impl_->SumKeysOf(state, &sums);
  } else {
    ELASTOR_RETURN_IF_ERROR(impl_->SendGradients(state));
  }
  impl_->tables.FinishGradients(owner_route, state->owned_rows.data(), sum_keys,
                                state->owner_gradients(), squares, squared_norm, squared_weights);
  state->stage = Stage::kGradients;
  return OkStatus();
}

template <typename T>
void ShardedEmbedding<T>::Update(double scale, double learning_rate, int64_t step,
                                 Routing* routing) {
  auto* state = routing->state_.get();
  CHECK(state->stage == Stage::kGradients) << "Update without RouteGradients";
  const int64_t latest = state->owner_route().latest();
  if (impl_->event_time == 0 && latest > 0) impl_->tables.BeginClock(latest);
  impl_->event_time = std::max(impl_->event_time, latest);
  impl_->tables.Update(state->owner_route(), state->owned_rows.data(), state->owner_gradients(),
                       state->squares.data(), scale, learning_rate, step, impl_->event_time);
  state->stage = Stage::kNone;
}

// ---- Rules of keyed tables

template <typename T>
std::vector<int64_t> ShardedEmbedding<T>::CountKeyedRows() const {
  std::vector<int64_t> counts;
  for (const auto& keyed : impl_->keyed) {
    const auto& met = impl_->tables.met(keyed.table);
    counts.insert(counts.end(), {impl_->tables.LiveRows(keyed.table), met.keys, met.created,
                                 met.occurrences, met.unadmitted});
  }
  if (impl_->tables.has_tier()) {
    const int64_t excess = impl_->tables.TakeExcess();
    counts.insert(counts.end(), {excess > 0 ? 1 : 0, excess});
  }
  return counts;
}

template <typename T>
Status ShardedEmbedding<T>::ApplyRules(int64_t step, std::span<const int64_t> sums) {
  for (auto& keyed : impl_->keyed) {
    const TableSpec& table = impl_->layout.table(keyed.table);
    const RowRules& rules = table.rules;
    const int64_t needed = sums[1];
    keyed = {.table = keyed.table,
             .rows = sums[0],
             .admitted = sums[2],
             .occurrences = sums[3],
             .unadmitted = sums[4]};
    sums = sums.subspan(kKeyedTableCounts);
    const auto refuse = [&](const std::string& found) {
      return UserError("embedding.tables: table '" + table.name + "' has the capacity of " +
                       std::to_string(rules.capacity) + " rows; " + found);
    };
    if (rules.capacity > 0 && needed > rules.capacity) {
      return refuse("the batch of step " + std::to_string(step) + " has " + std::to_string(needed) +
                    " keys; raise capacity or lower training.batch_size");
    }
    const bool full = rules.capacity > 0 && keyed.rows > rules.capacity;
    const bool makes_room = full && rules.evicts_when_full;
    const bool due = rules.evict_every_steps > 0 && step % rules.evict_every_steps == 0;
    if (makes_room || due) {
      ++impl_->removals;
      ELASTOR_ASSIGN_OR_RETURN(
          keyed.evicted, EvictRows(keyed.table, rules, rules.Now(step, impl_->event_time),
                                   keyed.rows, makes_room, &impl_->tables, impl_->communicator));
      keyed.rows -= keyed.evicted;
    }
    if (rules.capacity > 0 && keyed.rows > rules.capacity) {
      return refuse("step " + std::to_string(step) + " needs " + std::to_string(keyed.rows) +
                    "; raise capacity, or set an eviction and on_full: EVICT");
    }
  }
  if (impl_->tables.has_tier() && sums[0] > 0) {
    return UserError("embedding.tier.memory_bytes: too few at step " + std::to_string(step) +
                     "; the rows of a batch lie in pages of " + std::to_string(sums[1] / sums[0]) +
                     " bytes on a rank; expected twice that or more");
  }
  // Counts of keys that were never admitted.
  for (int t = 0; t < static_cast<int>(impl_->layout.tables()); ++t) {
    const TableSpec& table = impl_->layout.table(t);
    if (table.role != TableRole::kCounts || !table.rules.evicts()) continue;
    if (step % table.rules.evict_every_steps != 0) continue;
    ELASTOR_RETURN_IF_ERROR(EvictRows(t, table.rules, step, /*live=*/0, /*full=*/false,
                                      &impl_->tables, impl_->communicator)
                                .status());
  }
  return OkStatus();
}

template <typename T>
std::vector<typename EmbeddingState<T>::KeyedTable> ShardedEmbedding<T>::keyed_tables() const {
  return impl_->keyed;
}

template <typename T>
void ShardedEmbedding<T>::AddToDigest(Digest* digest) const {
  impl_->tables.AddToDigest(digest);
}

template <typename T>
void ShardedEmbedding<T>::ForEachRow(
    const std::function<void(int, int64_t, const T*, const T*)>& fn) const {
  impl_->tables.ForEachRow(fn);
}

template <typename T>
void ShardedEmbedding<T>::SetRow(int table, int64_t key, const T* weights, const T* slots) {
  impl_->tables.SetRow(table, key, weights, slots);
}

template <typename T>
void ShardedEmbedding<T>::RemoveRow(int table, int64_t key) {
  impl_->tables.RemoveRow(table, key);
}

template <typename T>
void ShardedEmbedding<T>::ForgetRows() {
  ++impl_->removals;
  impl_->tables.ForgetRows();
}

template <typename T>
bool ShardedEmbedding<T>::Owns(int table, int64_t partition) const {
  return impl_->tables.Owns(table, partition);
}

template <typename T>
std::vector<int64_t> ShardedEmbedding<T>::CountRows(int table) const {
  return impl_->tables.CountRows(table);
}

template <typename T>
void ShardedEmbedding<T>::ForEachRowOf(
    int table, const Range& partitions,
    const std::function<void(std::span<const int64_t>, const T* const*)>& fn) const {
  impl_->tables.ForEachRowOf(table, partitions, fn);
}

template <typename T>
TouchedRows<T>* ShardedEmbedding<T>::touched() {
  return impl_->tables.tracks_touched() ? &impl_->tables : nullptr;
}

template <typename T>
MarkedRows<T>* ShardedEmbedding<T>::unpublished() {
  return impl_->tables.unpublished();
}

template <typename T>
void ShardedEmbedding<T>::MarkUnpublished(const Routing& routing) {
  impl_->tables.MarkUnpublished(routing.state_->owner_route());
}
template <typename T>
void ShardedEmbedding<T>::NotePublished(int table, std::span<const int64_t> keys, bool have_rows) {
  impl_->tables.NotePublished(table, keys, have_rows);
}

template <typename T>
OptimizerKind ShardedEmbedding<T>::optimizer_kind() const {
  return impl_->tables.kind();
}

template <typename T>
ThreadPool* ShardedEmbedding<T>::pool() const {
  return impl_->pool;
}

template <typename T>
int64_t ShardedEmbedding<T>::event_time() const {
  return impl_->event_time;
}

template <typename T>
void ShardedEmbedding<T>::set_event_time(int64_t seconds) {
  impl_->event_time = seconds;
}

template <typename T>
int64_t ShardedEmbedding<T>::output_features() const {
  return impl_->layout.features();
}

template <typename T>
const RankHosts* ShardedEmbedding<T>::hosts() const {
  return impl_->hosts ? &*impl_->hosts : nullptr;
}

template <typename T>
int64_t ShardedEmbedding<T>::memory_bytes() const {
  return impl_->tables.memory_bytes();
}

template class ShardedEmbedding<float>;
template class ShardedEmbedding<double>;

}  // namespace elastor
