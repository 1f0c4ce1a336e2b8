#include "embedding/cuda/device_embedding.h"

#include <algorithm>
#include <type_traits>
#include <utility>
#include <variant>

#include "core/base/leaves.h"
#include "core/base/log.h"
#include "core/cuda/bfloat16.h"
#include "core/optimizer/with_rule.h"
#include "embedding/cuda/gradient_kernels.h"
#include "embedding/cuda/id_route.h"
#include "embedding/cuda/id_router.h"
#include "embedding/cuda/pooling_kernels.h"
#include "embedding/cuda/row_tables.h"
#include "embedding/cuda/table_state.h"
#include "embedding/cuda/update_kernels.h"
#include "embedding/embedding_layout.h"

namespace elastor::cuda {
namespace {

enum class Stage { kNone, kRouted, kLookedUp, kGradients };

std::vector<int64_t> InBytes(const std::vector<int64_t>& elements) {
  std::vector<int64_t> bytes(elements);
  for (int64_t& value : bytes) value *= sizeof(float);
  return bytes;
}

VectorShape ShapeOf(const EmbeddingLayout& layout) {
  VectorShape shape = {layout.widest(), true};
  for (int64_t t = 0; t < layout.tables(); ++t) shape.aligned &= layout.width(t) % 4 == 0;
  return shape;
}

// Whether activations can be read and written by four elements.
template <typename A>
bool Aligned(const A* data, int64_t row_stride) {
  return reinterpret_cast<uintptr_t>(data) % (4 * sizeof(A)) == 0 && row_stride % 4 == 0;
}

}  // namespace

struct DeviceEmbedding::Routing::State {
  State(Stream* compute, Stream* route)
      : ids_stream(route),
        route(route),
        owned_rows(compute),
        rows_of_ids(compute),
        forgotten(compute),
        exchanged_rows(compute),
        partial(compute),
        gradients(compute),
        row_squares(compute) {}
  // The computing stream reads what the other one frees, and copies may still read host memory.
  ~State() {
    ids_stream->Wait(used);
    ids_stream->Synchronize();
  }

  Stream* const ids_stream;
  Stage stage = Stage::kNone;
  Purpose purpose = Purpose::kEvaluate;
  IdRoute route;
  Event routed;  // on the stream of ids
  Event used;    // on the computing stream, by the last call so far
  PinnedBuffer<int32_t> missing{1};

  Buffer<float*> owned_rows;         // by owned key
  Buffer<const float*> rows_of_ids;  // by unique id; several ranks
  Buffer<float> forgotten;           // rows made for an evaluation only
  Buffer<float> exchanged_rows;      // IdRoute::row_exchange
  Buffer<float> partial;             // sums of long vectors
  Buffer<float> gradients;           // one rank: listed vectors; else IdRoute::gradient_exchange
  Buffer<double> row_squares;        // by owned key

  // For Update.
  std::variant<BagGradients<float>, BagGradients<BFloat16>> bags;
  GradientArray array;
};

struct DeviceEmbedding::Impl {
  using State = Routing::State;

  Impl(Options options, const ShardPlan* plan, DeviceCommunicator* communicator, Stream* compute,
       Stream* route, ThreadPool* pool)
      : layout(std::move(options.tables), std::move(options.fields)),
        optimizer(options.optimizer),
        leaves(options.leaves),
        plan(plan),
        communicator(communicator),
        compute(compute),
        route(route),
        pool(pool),
        job{communicator->rank(), communicator->size()},
        shape(ShapeOf(layout)),
        tables(&layout, plan,
               {options.optimizer.rule, options.seed, communicator->rank(), options.device_bytes},
               compute),
        router(&layout, plan, options.leaves, tables.device_views(), communicator, route),
        state(&layout, plan, communicator->rank(), &tables, compute, pool) {
    CHECK_EQ(plan->ranks(), communicator->size());
    compute->Synchronize();  // the tables are read on both streams
  }
  // Each reads what is freed on the other, and rows in the host's memory.
  ~Impl() {
    compute->Synchronize();
    route->Synchronize();
  }

  bool one_rank() const { return job.ranks == 1; }
  float l2() const { return static_cast<float>(optimizer.l2); }
  int64_t vector_stride() const { return (layout.widest() + 3) / 4 * 4; }
  const float* const* RowsOfIds(const State& routing) const {
    return one_rank() ? routing.owned_rows.data() : routing.rows_of_ids.data();
  }

  Status FetchRows(State* routing);
  template <typename A>
  Status SumGradients(const BagGradients<A>& bags, State* routing);
  template <typename A>
  void AddAllSquares(const BagGradients<A>& bags, DeviceExactSum* squared_norm,
                     DeviceExactSum* squared_weights, State* routing);

  const EmbeddingLayout layout;
  const SparseOptimizerOptions optimizer;
  const int64_t leaves;
  const ShardPlan* const plan;
  DeviceCommunicator* const communicator;
  Stream* const compute;
  Stream* const route;
  ThreadPool* const pool;
  const RankInJob job;
  const VectorShape shape;
  RowTables tables;
  IdRouter router;
  TableState state;
};

// ---- Rows

Status DeviceEmbedding::Impl::FetchRows(State* routing) {
  const IdRoute& ids = routing->route;
  const VectorExchange& exchange = ids.row_exchange;
  float* const rows = routing->exchanged_rows.Resize(exchange.total());
  CopyRowsToSend(*compute, ids.cells, tables.device_views(), ids.items, shape, ids.owner,
                 routing->owned_rows.data(), rows);
  ELASTOR_RETURN_IF_ERROR(communicator->AllToAllV(Phase::kRowExchange, *compute, rows,
                                                  InBytes(exchange.send), rows + exchange.sent,
                                                  InBytes(exchange.receive)));
  PointAtRows(*compute, ids.cells, ids.requester, ids.owned.format, tables.device_views(),
              ids.uniques, ids.owner, routing->owned_rows.data(), rows + exchange.sent,
              routing->rows_of_ids.Resize(ids.uniques));
  return OkStatus();
}

// ---- Gradients

template <typename A>
Status DeviceEmbedding::Impl::SumGradients(const BagGradients<A>& bags, State* routing) {
  const IdRoute& ids = routing->route;
  const int64_t stride = vector_stride();
  const VectorExchange& exchange = ids.gradient_exchange;
  float* const partial = routing->partial.Resize(ids.chunks * stride);
  float* const vectors =
      routing->gradients.Resize(one_rank() ? ids.listed * stride : exchange.total());
  SumChunks(*compute, bags, ids.requester.chunks, ids.chunks, shape, partial, stride);
  SumSegments(*compute, bags, ids.requester, shape, ids.listed, partial, stride,
              one_rank() ? nullptr : ids.vector_offsets.data(), vectors);
  if (one_rank()) {
    routing->array = {vectors, ids.requester.direct, stride, nullptr, nullptr};
    return OkStatus();
  }
  CopyPieces(*compute, ids.replica_copies, vectors);
  ELASTOR_RETURN_IF_ERROR(
      communicator->AllToAllV(Phase::kGradientExchange, *compute, vectors, InBytes(exchange.send),
                              vectors + exchange.sent + exchange.kept, InBytes(exchange.receive)));
  FoldNodes(*compute, ids.owned, tables.device_views(), ids.owner, shape, vectors);
  routing->array = {vectors, nullptr, 0, ids.owner.node_begin, ids.owner.node_gradients};
  return OkStatus();
}

template <typename A>
void DeviceEmbedding::Impl::AddAllSquares(const BagGradients<A>& bags, DeviceExactSum* squared_norm,
                                          DeviceExactSum* squared_weights, State* routing) {
  const IdRoute& ids = routing->route;
  const bool row_wise = optimizer.rule.kind == OptimizerKind::kRowWiseAdagrad;
  const SquaredSums sums = {squared_norm, squared_weights,
                            row_wise ? routing->row_squares.Resize(ids.owned.bound) : nullptr};
  AddSquares(*compute, ids.owned, tables.device_views(), bags, routing->array,
             routing->owned_rows.data(), l2(), shape, job, sums);
  // Without L2 the gradient of an untouched row is 0.
  if (!tables.dense() || l2() <= 0) return;
  tables.MarkTouched(ids.owned);
  for (int64_t t = 0; t < layout.tables(); ++t) {
    AddUntouchedSquares(*compute, tables.view(t), tables.marks(t), l2(), shape, job, sums);
  }
}

// ---- The public face

DeviceEmbedding::Routing::Routing(std::unique_ptr<State> state) : state_(std::move(state)) {}
DeviceEmbedding::Routing::~Routing() = default;

DeviceEmbedding::DeviceEmbedding(Options options, const ShardPlan* plan,
                                 DeviceCommunicator* communicator, Stream* compute, Stream* route,
                                 ThreadPool* pool)
    : impl_(std::make_unique<Impl>(std::move(options), plan, communicator, compute, route, pool)) {}
DeviceEmbedding::~DeviceEmbedding() = default;

std::unique_ptr<DeviceEmbedding::Routing> DeviceEmbedding::MakeRouting() const {
  return std::unique_ptr<Routing>(
      new Routing(std::make_unique<Routing::State>(impl_->compute, impl_->route)));
}

std::unique_ptr<StagedIds> DeviceEmbedding::StageIds(const SparseBatch& batch,
                                                     std::unique_ptr<StagedIds> memory) const {
  if (memory == nullptr) memory = std::make_unique<PinnedIds>();
  impl_->router.Stage(batch, static_cast<PinnedIds*>(memory.get()));
  return memory;
}

Status DeviceEmbedding::RouteIds(const SparseBatch& batch, Routing* routing) {
  auto* state = routing->state_.get();
  state->stage = Stage::kNone;
  impl_->route->Wait(state->used);  // the last batch of this routing
  ELASTOR_RETURN_IF_ERROR(impl_->router.Route(batch, &state->route));
  state->routed.Record(*impl_->route);
  state->stage = Stage::kRouted;
  return OkStatus();
}

Status DeviceEmbedding::Lookup(Purpose purpose, Routing* routing) {
  auto* state = routing->state_.get();
  const IdRoute& ids = state->route;
  CHECK(state->stage == Stage::kRouted) << "Lookup without RouteIds";
  Stream& compute = *impl_->compute;
  impl_->state.SendRows();
  state->purpose = purpose;
  compute.Wait(state->routed);
  float** const rows = state->owned_rows.Resize(ids.owned.bound);
  if (purpose == Purpose::kTrain) {
    impl_->state.RowsChanged();
    impl_->tables.FindOrCreate(ids.owned, rows);
  } else {
    impl_->tables.Find(ids.owned, rows, state->missing.data());
    state->used.Record(compute);
    ELASTOR_RETURN_IF_ERROR(impl_->communicator->Wait(state->used, "the rows of an evaluation"));
    impl_->tables.MakeForgotten(ids.owned, state->missing[0], &state->forgotten, rows);
  }
  if (!impl_->one_rank()) ELASTOR_RETURN_IF_ERROR(impl_->FetchRows(state));
  state->used.Record(compute);
  state->stage = Stage::kLookedUp;
  return OkStatus();
}

template <typename A>
void DeviceEmbedding::ReturnRows(const Routing& routing, const int32_t* local_row,
                                 Activations<A> e) const {
  auto& state = *routing.state_;
  const IdRoute& ids = state.route;
  CHECK(state.stage == Stage::kLookedUp) << "ReturnRows without Lookup";
  CHECK_EQ(e.tokens, 1);
  CHECK_EQ(e.features, impl_->layout.features());
  const BagRows bags = {ids.batch.fields, impl_->router.fields(), ids.batch.offsets,
                        ids.requester.unique_of, impl_->RowsOfIds(state)};
  VectorShape shape = impl_->shape;
  shape.aligned &= Aligned(e.data, e.row_stride);
  PoolBags(*impl_->compute, bags, local_row, e.rows, shape, e.data, e.row_stride);
  state.used.Record(*impl_->compute);
}

template <typename A>
Status DeviceEmbedding::RouteGradients(int64_t global_rows, const int32_t* device_row,
                                       Activations<const A> de, Routing* routing,
                                       DeviceExactSum* squared_norm,
                                       DeviceExactSum* squared_weights) {
  auto* state = routing->state_.get();
  const IdRoute& ids = state->route;
  CHECK(state->stage == Stage::kLookedUp && state->purpose == Purpose::kTrain)
      << "gradients without Lookup(kTrain)";
  CHECK_EQ(de.tokens, 1);
  CHECK_EQ(de.features, impl_->layout.features());
  const Range owned = LeavesOfRank(impl_->job.rank, impl_->job.ranks, impl_->leaves);
  CHECK_EQ(ids.rows, RowsOfLeaf(owned.end - 1, impl_->leaves, global_rows).end -
                         RowsOfLeaf(owned.begin, impl_->leaves, global_rows).begin);
  const BagGradients<A> bags = {de.data,
                                de.row_stride,
                                device_row,
                                ids.requester.sources,
                                ids.requester.scales,
                                Aligned(de.data, de.row_stride)};
  state->bags = bags;
  ELASTOR_RETURN_IF_ERROR(impl_->SumGradients(bags, state));
  impl_->AddAllSquares(bags, squared_norm, squared_weights, state);
  state->used.Record(*impl_->compute);
  state->stage = Stage::kGradients;
  return OkStatus();
}

void DeviceEmbedding::Update(const UpdateGate* gate, double learning_rate, int64_t step,
                             Routing* routing) {
  auto* state = routing->state_.get();
  CHECK(state->stage == Stage::kGradients) << "Update without RouteGradients";
  CHECK_GE(step, 1);
  const Impl& impl = *impl_;
  RowTables& tables = impl_->tables;
  const OwnedKeys& owned = state->route.owned;
  impl_->state.RowsChanged();
  if (tables.dense()) tables.MarkTouched(owned);
  WithRule<float>(impl.optimizer.rule, learning_rate, step, [&](const auto& rule) {
    std::visit(
        [&](const auto& bags) {
          UpdateRows(*impl.compute, rule, owned, tables.device_views(), bags, state->array,
                     state->owned_rows.data(), impl.l2(), state->row_squares.data(), impl.shape,
                     gate);
        },
        state->bags);
    if constexpr (std::is_same_v<std::decay_t<decltype(rule)>, Adam<float>>) {
      for (int64_t t = 0; tables.dense() && t < tables.tables(); ++t) {
        UpdateUntouchedRows(*impl.compute, rule, tables.view(t), tables.marks(t), impl.l2(),
                            impl.shape, gate);
      }
    }
  });
  state->used.Record(*impl.compute);
  state->stage = Stage::kNone;
}

int64_t DeviceEmbedding::output_features() const { return impl_->layout.features(); }

void DeviceEmbedding::AddToDigest(Digest* digest) const { impl_->state.AddToDigest(digest); }

void DeviceEmbedding::ForEachRow(
    const std::function<void(int, int64_t, const float*, const float*)>& fn) const {
  impl_->state.ForEachRow(fn);
}

void DeviceEmbedding::SetRow(int table, int64_t key, const float* weights, const float* slots) {
  impl_->state.SetRow(table, key, weights, slots);
}

void DeviceEmbedding::ForgetRows() { impl_->state.ForgetRows(); }

bool DeviceEmbedding::Owns(int table, int64_t partition) const {
  return impl_->plan->Stores(table, partition, impl_->job.rank);
}

std::vector<int64_t> DeviceEmbedding::CountRows(int table) const {
  return impl_->state.CountRows(table);
}

void DeviceEmbedding::ForEachRowOf(
    int table, const Range& partitions,
    const std::function<void(std::span<const int64_t>, const float* const*)>& fn) const {
  impl_->state.ForEachRowOf(table, partitions, fn);
}

OptimizerKind DeviceEmbedding::optimizer_kind() const { return impl_->optimizer.rule.kind; }

ThreadPool* DeviceEmbedding::pool() const { return impl_->pool; }

int64_t DeviceEmbedding::memory_bytes() const { return impl_->tables.memory_bytes(); }

template void DeviceEmbedding::ReturnRows(const Routing&, const int32_t*, Activations<float>) const;
template void DeviceEmbedding::ReturnRows(const Routing&, const int32_t*,
                                          Activations<BFloat16>) const;
template Status DeviceEmbedding::RouteGradients(int64_t, const int32_t*, Activations<const float>,
                                                Routing*, DeviceExactSum*, DeviceExactSum*);
template Status DeviceEmbedding::RouteGradients(int64_t, const int32_t*,
                                                Activations<const BFloat16>, Routing*,
                                                DeviceExactSum*, DeviceExactSum*);

}  // namespace elastor::cuda
