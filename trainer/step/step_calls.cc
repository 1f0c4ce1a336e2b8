#include "trainer/step/step_calls.h"

#include <algorithm>
#include <utility>

#include "collective/dense_reduce.h"
#include "core/base/log.h"

namespace elastor {
namespace {

// Collects the calls of one rank.
class Calls {
 public:
  Calls(const StepShape& shape, int rank) : shape_(shape), rank_(rank) {}

  void RouteIds(const BatchDemand& batch, StepPart part, bool beside) {
    const RouteCounts& routes = batch.routes;
    Lists(routes.of_rank[rank_], part, beside);
    if (!routes.between.empty()) Lists(routes.between[rank_], part, beside);
    if (!shape_.sample_weights) return;
    Add({part,
         beside,
         Phase::kScalars,
         CallKind::kAllReduceSum,
         -1,
         {kWeightWords * sizeof(int64_t)}});
  }

  // Which rows are early, a bit each, and these rows.
  void LookupEarly(const RouteCounts& routes) {
    if (routes.early.empty()) return;
    std::vector<int64_t> bits, bytes;
    for (int r = 0; r < shape_.ranks; ++r) {
      const int64_t words = (routes.of_rank[r].rows.receive_vectors[rank_] + 63) / 64;
      bits.push_back(words * static_cast<int64_t>(sizeof(int64_t)));
      bytes.push_back(RowBytes(routes.early[r]));
    }
    for (auto* const send : {&bits, &bytes}) {
      Add({StepPart::kCompute, true, Phase::kEarlyRows, CallKind::kAllToAllV, -1,
           std::move(*send)});
    }
  }

  // early: whether LookupEarly sent some of the rows.
  void Lookup(const RouteCounts& routes, bool early) {
    for (const auto* leg : {&routes.between, &routes.of_rank}) {
      if (leg->empty()) continue;
      std::vector<int64_t> bytes;
      for (const RouteDemand& requester : *leg) bytes.push_back(RowBytes(requester.rows));
      for (int r = 0; early && r < shape_.ranks; ++r) bytes[r] -= RowBytes(routes.early[r]);
      Add({StepPart::kLookup, false, Phase::kRowExchange, CallKind::kAllToAllV, -1,
           std::move(bytes)});
    }
  }

  void BatchLosses() {
    if (shape_.batch_losses == 0) return;
    const int64_t words = shape_.batch_losses * ExactSum::kWords;
    Add({StepPart::kCompute,
         false,
         Phase::kScalars,
         CallKind::kAllReduceSum,
         -1,
         {words * static_cast<int64_t>(sizeof(int64_t))}});
  }

  void ReduceBuckets(const BatchDemand& batch) {
    if (shape_.ranks == 1) return;
    const BatchNodes nodes(shape_.ranks, shape_.leaves, batch.rows);
    const HostNodes host_nodes = shape_.hosts == nullptr
                                     ? HostNodes()
                                     : HostNodes(*shape_.hosts, nodes, shape_.ranks, shape_.leaves);
    const StepPart part = shape_.overlap ? StepPart::kCompute : StepPart::kReduce;
    for (const int b : ReduceOrder(static_cast<int>(shape_.buckets.size()), shape_.overlap)) {
      const auto send = [&](SliceExchange* exchange) {
        Add({part, shape_.overlap, Phase::kDenseReduce, CallKind::kAllToAllV, b,
             std::move(exchange->send)});
      };
      if (shape_.hosts != nullptr) {
        HostExchange exchange;
        exchange.SizeReduce(shape_.buckets[b], *shape_.hosts, nodes, host_nodes, rank_,
                            shape_.element_bytes);
        send(&exchange.within);
        send(&exchange.between);
      } else {
        SliceExchange exchange;
        exchange.Size(shape_.buckets[b], nodes, rank_, shape_.element_bytes);
        send(&exchange);
      }
    }
  }

  void RouteGradients(const BatchDemand& batch) {
    if (shape_.ranks == 1) return;
    for (const auto* leg : {&batch.routes.of_rank, &batch.routes.between}) {
      if (leg->empty()) continue;
      const VectorExchange& sent = (*leg)[rank_].gradients;
      std::vector<int64_t> bytes;
      for (int r = 0; r < shape_.ranks; ++r) {
        bytes.push_back(WireBytes(shape_.wire.gradients, sent.send[r], sent.send_vectors[r],
                                  shape_.element_bytes));
      }
      Add({StepPart::kRouteGradients, false, Phase::kGradientExchange, CallKind::kAllToAllV, -1,
           std::move(bytes)});
    }
  }

  void Scalars() {
    Add({StepPart::kScalars,
         false,
         Phase::kScalars,
         CallKind::kAllReduceSum,
         -1,
         {shape_.scalar_words * static_cast<int64_t>(sizeof(int64_t))}});
  }

  void GatherBuckets(StepPart part, bool beside) {
    for (int b = 0; b < static_cast<int>(shape_.buckets.size()); ++b) {
      if (shape_.hosts != nullptr) {
        HostExchange exchange;
        exchange.SizeGather(shape_.buckets[b], *shape_.hosts, shape_.ranks, rank_,
                            shape_.element_bytes);
        for (SliceExchange* leg : {&exchange.between, &exchange.within}) {
          Add({part, beside, Phase::kDenseGather, CallKind::kAllToAllV, b, std::move(leg->send)});
        }
        continue;
      }
      std::vector<int64_t> bytes;
      SizeSlices(shape_.buckets[b], shape_.ranks, shape_.element_bytes, &bytes);
      Add({part, beside, Phase::kDenseGather, CallKind::kAllGatherV, b,
           std::vector<int64_t>(shape_.ranks, bytes[rank_])});
    }
  }

  std::vector<StepCall> Take() && { return std::move(calls_); }

 private:
  // Returns the bytes of the rows that this rank sends to a requester.
  int64_t RowBytes(const VectorExchange& requested) const {
    return WireBytes(shape_.wire.rows, requested.receive[rank_], requested.receive_vectors[rank_],
                     shape_.element_bytes);
  }
  // The lists of ids, and their sizes before them.
  void Lists(const RouteDemand& asked, StepPart part, bool beside) {
    std::vector<int64_t> sizes, lists;
    for (const int64_t words : asked.words) {
      sizes.push_back(words == 0 ? 0 : sizeof(int64_t));
      lists.push_back(words * static_cast<int64_t>(sizeof(int64_t)));
    }
    const CallKind kind = shape_.hosts != nullptr ? CallKind::kAllToAllV : CallKind::kAllToAll;
    Add({part, beside, Phase::kIdExchange, kind, -1, std::move(sizes)});
    Add({part, beside, Phase::kIdExchange, CallKind::kAllToAllV, -1, std::move(lists)});
  }

  // A block to the rank itself does not travel.
  void Add(StepCall call) {
    if (call.kind != CallKind::kAllReduceSum) call.send[rank_] = 0;
    calls_.push_back(std::move(call));
  }

  const StepShape& shape_;
  const int rank_;
  std::vector<StepCall> calls_;
};

}  // namespace

void StepClock::Enter(StepPart part) {
  CHECK_EQ(static_cast<int>(part), part_ ? static_cast<int>(*part_) + 1 : 0);
  if (part_) End();
  part_ = part;
  communicator_->Enter(ActivityOf(part));
}

void StepClock::End() {
  const auto now = std::chrono::steady_clock::now();
  (*times_)[*part_] += std::chrono::duration<double>(now - last_).count();
  last_ = now;
}

std::vector<int> ReduceOrder(int buckets, bool overlap) {
  std::vector<int> order;
  for (int b = 0; b < buckets; ++b) order.push_back(overlap ? buckets - 1 - b : b);
  return order;
}

std::vector<StepCall> CallsOfStep(const StepShape& shape, const BatchDemand& batch,
                                  const BatchDemand* next, bool routed, bool settled, int rank) {
  Calls calls(shape, rank);
  if (!routed) calls.RouteIds(batch, StepPart::kRouteIds, /*beside=*/false);
  calls.Lookup(batch.routes, /*early=*/routed && !batch.routes.early.empty());
  calls.BatchLosses();
  if (shape.late_weights && routed && !settled) {
    calls.GatherBuckets(StepPart::kCompute, /*beside=*/true);
  }
  if (shape.overlap && next != nullptr) {
    calls.RouteIds(*next, StepPart::kCompute, /*beside=*/true);
    calls.LookupEarly(next->routes);
  }
  calls.ReduceBuckets(batch);
  calls.RouteGradients(batch);
  calls.Scalars();
  if (!shape.late_weights || next == nullptr) {
    calls.GatherBuckets(StepPart::kUpdate, /*beside=*/false);
  }
  return std::move(calls).Take();
}

}  // namespace elastor
