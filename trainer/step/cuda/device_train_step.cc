#include "trainer/step/cuda/device_train_step.h"

#include <algorithm>
#include <cmath>
#include <mutex>
#include <utility>

#include "core/base/exact_sum.h"
#include "core/base/log.h"
#include "core/kernels/cuda/elementwise.h"

namespace elastor::cuda {
namespace {

// Full batches that are launched call by call before one is captured: the first makes plans and
// sizes buffers.
constexpr int kBatchesBeforeCapture = 2;

int64_t LongestLeaf(int64_t rows, int64_t leaves) { return (rows + leaves - 1) / leaves; }

}  // namespace

template <typename A>
DeviceTrainStep<A>::Inputs::Inputs(Stream* stream, int64_t rows, const FeatureShape& features,
                                   int64_t label_count, bool weighted)
    : numeric(stream, rows * features.numeric_fields),
      labels(stream, rows * label_count),
      weights(stream, weighted ? rows : 0),
      lengths(stream, rows * features.encoded_sequences()),
      scalars(stream, 1),
      host_scalars(1) {}

template <typename A>
DeviceTrainStep<A>::DeviceTrainStep(const TrainStepOptions& options,
                                    const DeviceStepOptions& device, const elastor::Graph* graph,
                                    DeviceEmbedding* embedding, DeviceCommunicator* communicator,
                                    StepStreams* streams, ThreadPool* pool)
    : options_(options),
      device_(device),
      graph_(graph),
      embedding_(embedding),
      communicator_(communicator),
      streams_(streams),
      pool_(pool),
      executor_(*graph,
                {.precision = options.precision,
                 .seed = options.seed,
                 .canonical_rows = options.leaves * LongestLeaf(options.batch_rows, options.leaves),
                 .canonical_leaves = options.leaves,
                 .reproducible = device.reproducible,
                 .fused_network = device.fused_network},
                &streams->compute),
      loss_(MakeDeviceLoss(options.task)),
      gradients_(&graph->parameters(), &streams->compute),
      reducer_(&graph->parameters(), communicator, options.leaves, !device.reproducible,
               &streams->compute),
      optimizer_(options.dense, graph->parameters(), reducer_.slices(), &streams->compute),
      weights_(&streams->compute, graph->parameters().flat_size()),
      host_weights_(graph->parameters().flat_size()),
      inputs_(&streams->compute, options.batch_rows, graph->features(), options.task.labels(),
              options.sample_weights),
      evaluation_inputs_(&streams->compute, device.evaluation_rows, graph->features(),
                         options.task.labels(), false),
      routed_(std::make_unique<Routed>(&streams->route)),
      next_(std::make_unique<Routed>(&streams->route)),
      losses_(&streams->compute),
      batch_losses_(&streams->compute, options.task.batch_losses()),
      output_scales_(&streams->compute, options.task.batch_losses()),
      sums_(&streams->compute, 1),
      outcome_(&streams->compute, 1),
      gate_(&streams->compute, 1),
      host_outcome_(1),
      bucket_events_(graph->parameters().buckets().size()) {
  CHECK_EQ(graph->outputs(), options.task.graph_outputs());
  CHECK_EQ(graph->features().table_features(), embedding->output_features());
  routed_->ids = embedding->MakeRouting();
  next_->ids = embedding->MakeRouting();
  const Range own = LeavesOfRank(communicator->rank(), communicator->size(), options.leaves);
  const int64_t leaf_rows = LongestLeaf(options.batch_rows, options.leaves);
  const LeafShape largest = {
      own.size(), std::max(leaf_rows, LongestLeaf(device.evaluation_rows, options.leaves))};
  executor_.Reserve(largest);
  losses_.Resize(largest.rows() * std::max(options.task.losses(), options.task.batch_losses()));
  gradients_.Reserve(own.size());
  graph->parameters().Initialize(options.seed, host_weights_.data());
  WeightsChanged();
}

template <typename A>
DeviceTrainStep<A>::~DeviceTrainStep() {
  streams_->exchange.Synchronize();
  streams_->route.Synchronize();
  streams_->compute.Synchronize();
}

// One step, top to bottom.
template <typename A>
StatusOr<StepResult> DeviceTrainStep<A>::Run(const LocalBatch& batch, const LocalBatch* next,
                                             double learning_rate, int64_t requests) {
  CHECK_EQ(requests >> kRequestBits, 0);
  Stream& compute = streams_->compute;
  communicator_->host()->Enter(Activity::kRouteIds);
  if (!next_routed_) ELASTOR_RETURN_IF_ERROR(Route(batch, next_.get()));
  std::swap(routed_, next_);
  next_routed_ = false;
  const BatchGeometry& geometry = GeometryOf(batch);
  reducer_.SetBatch(batch.global_rows);

  communicator_->host()->Enter(Activity::kCompute);
  turn_ ^= 1;
  mark(kBegin).Record(compute);
  BeginSums(compute, requests, sums_.data());
  ELASTOR_RETURN_IF_ERROR(embedding_->Lookup(DeviceEmbedding::Purpose::kTrain, routed_->ids.get()));
  mark(kLookedUp).Record(compute);
  ELASTOR_RETURN_IF_ERROR(Compute(batch, geometry));
  mark(kComputed).Record(compute);

  if (options_.overlap && next != nullptr) {
    ELASTOR_RETURN_IF_ERROR(Route(*next, next_.get()));
    next_routed_ = true;
  }
  ELASTOR_RETURN_IF_ERROR(ExchangeBuckets());
  // Gradients, with the penalty's part, are complete before the norm, the norm before any update.
  compute.Wait(exchanged_);
  StepSums* const sums = sums_.data();
  optimizer_.AddL2(weights_.data(), &sums->squared_norm, &sums->penalty);
  mark(kReduced).Record(compute);
  const Activations<const A> de =
      executor_.EmbeddingGradients(geometry.shape())
          .Slice(graph_->features().numeric_features(), embedding_->output_features());
  ELASTOR_RETURN_IF_ERROR(embedding_->RouteGradients<A>(batch.global_rows, geometry.device_row(),
                                                        de, routed_->ids.get(), &sums->squared_norm,
                                                        &sums->squared_rows));
  mark(kRouted).Record(compute);
  ELASTOR_RETURN_IF_ERROR(Finish(learning_rate));
  return WaitForOutcome();
}

// The batch's ids, its dense part and its weight.
template <typename A>
Status DeviceTrainStep<A>::Route(const LocalBatch& batch, Routed* routed) {
  CHECK_EQ(static_cast<int64_t>(batch.weights.size()), options_.sample_weights ? batch.rows() : 0);
  routed->dense.Begin(batch);
  ELASTOR_RETURN_IF_ERROR(embedding_->RouteIds(batch.sparse, routed->ids.get()));
  routed->weight = static_cast<double>(batch.global_rows);
  if (!options_.sample_weights) return OkStatus();
  ExactSum sum;
  for (const float weight : batch.weights) sum.Add(weight);
  auto words = sum.ToWords();
  ELASTOR_RETURN_IF_ERROR(communicator_->host()->AllReduceSum(Phase::kScalars, words));
  routed->weight = ExactSum::FromWords(words).Value();
  return OkStatus();
}

template <typename A>
const BatchGeometry& DeviceTrainStep<A>::GeometryOf(const LocalBatch& batch) {
  const auto found = geometries_.find(batch.global_rows);
  if (found != geometries_.end()) return found->second;
  return geometries_
      .try_emplace(batch.global_rows, batch.global_rows, options_.leaves, batch.sparse,
                   &streams_->compute)
      .first->second;
}

// Brings the batch to where kernels read it.
template <typename A>
DevicePass DeviceTrainStep<A>::Place(const LocalBatch& batch, const BatchGeometry& geometry,
                                     Routed* routed, Inputs* inputs, bool training) {
  Stream& compute = streams_->compute;
  CHECK_LE(batch.rows() * options_.task.labels(), inputs->labels.size());
  const bool weighted = training && options_.sample_weights;
  routed->dense.Finish(compute, inputs->numeric.data(), inputs->labels.data(),
                       weighted ? inputs->weights.data() : nullptr, inputs->lengths.data());
  inputs->host_scalars[0] = {
      .first_row = batch.first_index,
      .batch_rows = batch.global_rows,
      .step = static_cast<uint32_t>(steps()),
      .inverse_weight = routed->weight == 0 ? 0.0f : 1.0f / static_cast<float>(routed->weight),
      .weight = routed->weight};
  Copy<StepScalars>(compute, inputs->scalars.data(), inputs->host_scalars.data(), 1);
  const StepScalars* const scalars = inputs->scalars.data();
  return {.shape = geometry.shape(),
          .inputs = {.numeric = inputs->numeric.data(),
                     .local_row = geometry.local_row(),
                     .leaf_counts = geometry.leaf_counts(),
                     .first_row = &scalars->first_row,
                     .step = &scalars->step,
                     .batch_rows = &scalars->batch_rows,
                     .lengths = inputs->lengths.data()},
          .training = training};
}

// Forward and backward over this rank's leaves.
template <typename A>
Status DeviceTrainStep<A>::Compute(const LocalBatch& batch, const BatchGeometry& geometry) {
  const DevicePass pass = Place(batch, geometry, routed_.get(), &inputs_, /*training=*/true);
  const int64_t numeric = graph_->features().numeric_features();
  embedding_->ReturnRows<A>(
      *routed_->ids, geometry.local_row(),
      executor_.Embeddings(pass.shape).Slice(numeric, embedding_->output_features()));
  if (batch.global_rows == options_.batch_rows && full_batches_++ >= kBatchesBeforeCapture) {
    if (segments_.empty()) return CaptureDense(pass);
    for (const auto& segment : segments_) {
      segment->graph.Launch(streams_->compute);
      ELASTOR_RETURN_IF_ERROR(Ready(segment->bucket));
    }
    return OkStatus();
  }
  return EnqueueDense(pass, [this](int bucket) { return Ready(bucket); });
}

// The dense work itself. ready(b): bucket b is folded, or the sums of kBatchLosses are.
template <typename A>
Status DeviceTrainStep<A>::EnqueueDense(const DevicePass& pass,
                                        const std::function<Status(int)>& ready) {
  Stream& compute = streams_->compute;
  executor_.Forward(pass);
  const StepScalars* const scalars = inputs_.scalars.data();
  DeviceLossRows rows = {.rows = pass.shape.rows(),
                         .outputs = executor_.Logits(),
                         .labels = inputs_.labels.data(),
                         .weights = options_.sample_weights ? inputs_.weights.data() : nullptr,
                         .inverse_weight = &scalars->inverse_weight,
                         .local_row = pass.inputs.local_row};
  if (const int64_t count = options_.task.batch_losses(); count > 0) {
    loss_->EnqueueBatchLosses(compute, rows, losses_.data(), executor_.LogitGradients());
    ClearExactSums(compute, batch_losses_.data(), count);
    for (int64_t i = 0; i < count; ++i) {
      AddToExactSum(compute, losses_.data() + i * rows.rows, rows.rows, batch_losses_.data() + i);
    }
    ELASTOR_RETURN_IF_ERROR(ready(kBatchLosses));
    FinishBatchLosses(compute, batch_losses_.data(), count, &scalars->weight,
                      &scalars->inverse_weight, output_scales_.data());
    rows.output_scales = output_scales_.data();
  }
  loss_->Enqueue(compute, rows, losses_.data(), executor_.LogitGradients());
  AddToExactSum(compute, losses_.data(), rows.rows * options_.task.losses(), &sums_.data()->loss);
  Status status;
  gradients_.Begin([&](int bucket) {
    reducer_.Fold(compute, bucket, &gradients_, optimizer_.gradient(bucket));
    if (Status done = ready(bucket); status.ok()) status = std::move(done);
  });
  executor_.Backward(pass, &gradients_);
  return status;
}

// Captures the dense work, cut where bytes travel, and launches it.
template <typename A>
Status DeviceTrainStep<A>::CaptureDense(const DevicePass& pass) {
  Stream& compute = streams_->compute;
  const auto begin = [&] {
    segments_.push_back(std::make_unique<Segment>());
    segments_.back()->graph.BeginCapture(compute);
  };
  const auto end = [&](int bucket) {
    Segment& segment = *segments_.back();
    segment.bucket = bucket;
    segment.graph.EndCapture(compute);
    segment.graph.Launch(compute);
    return Ready(bucket);
  };
  begin();
  ELASTOR_RETURN_IF_ERROR(EnqueueDense(pass, [&](int bucket) -> Status {
    if (communicator_->size() == 1) return OkStatus();
    ELASTOR_RETURN_IF_ERROR(end(bucket));
    begin();
    return OkStatus();
  }));
  return end(kEnd);
}

// This rank's part of the bucket's gradients, or of the losses that gradients need, is enqueued.
template <typename A>
Status DeviceTrainStep<A>::Ready(int bucket) {
  if (communicator_->size() == 1 || bucket == kEnd) return OkStatus();
  if (bucket == kBatchLosses) {
    return communicator_->AllReduceSum(Phase::kScalars, streams_->compute,
                                       reinterpret_cast<int64_t*>(batch_losses_.data()),
                                       batch_losses_.size() * kExactSumWords);
  }
  bucket_events_[bucket].Record(streams_->compute);
  complete_buckets_.push_back(bucket);
  return OkStatus();
}

// Every bucket goes to its owners once it is complete, while earlier layers run backward.
template <typename A>
Status DeviceTrainStep<A>::ExchangeBuckets() {
  if (complete_buckets_.empty()) return OkStatus();
  Stream& exchange = streams_->exchange;
  for (const int bucket : complete_buckets_) {
    exchange.Wait(bucket_events_[bucket]);
    ELASTOR_RETURN_IF_ERROR(reducer_.Exchange(exchange, bucket, optimizer_.gradient(bucket)));
  }
  complete_buckets_.clear();
  exchanged_.Record(exchange);
  return OkStatus();
}

// The sums of all ranks, what follows from them, and the updates, behind the gate.
template <typename A>
Status DeviceTrainStep<A>::Finish(double learning_rate) {
  Stream& compute = streams_->compute;
  if (communicator_->size() > 1) {
    ELASTOR_RETURN_IF_ERROR(communicator_->AllReduceSum(
        Phase::kScalars, compute, reinterpret_cast<int64_t*>(sums_.data()), kStepSumWords));
  }
  FinishSums(compute, sums_.data(), options_.clip_norm, outcome_.data(), gate_.data());
  Copy<StepOutcome>(compute, host_outcome_.data(), outcome_.data(), 1);
  mark(kSummed).Record(compute);
  summed_.Record(compute);  // after the mark, which is then done too

  const int64_t step = BeginUpdate();
  host_weights_current_ = false;
  optimizer_.Update(gate_.data(), learning_rate, step, weights_.data());
  ELASTOR_RETURN_IF_ERROR(reducer_.Gather(compute, weights_.data()));
  embedding_->Update(gate_.data(), learning_rate, step, routed_->ids.get());
  executor_.SetWeights(weights_.data());
  mark(kUpdated).Record(compute);
  return OkStatus();
}

template <typename A>
StatusOr<StepResult> DeviceTrainStep<A>::WaitForOutcome() {
  ELASTOR_RETURN_IF_ERROR(communicator_->Wait(summed_, "the loss"));
  AddTimes();
  const StepOutcome& outcome = host_outcome_[0];
  StepResult result;
  result.loss = routed_->weight == 0 ? 0 : outcome.loss / routed_->weight;
  result.l2 = outcome.penalty + 0.5 * options_.embedding_l2 * outcome.squared_rows;
  result.gradient_norm = std::sqrt(outcome.squared_norm);
  std::copy_n(outcome.requests, kRequestBits, result.requests.begin());
  if (!std::isfinite(result.loss) || !std::isfinite(result.gradient_norm)) {
    const int64_t step = steps();
    set_steps(step - 1);  // it was not done
    return DivergedAtStep(step);
  }
  return result;
}

// The device's time between the marks; the updates' is known a step later.
template <typename A>
void DeviceTrainStep<A>::AddTimes() {
  const auto seconds = [this](int turn, Mark from, Mark to) {
    return marks_[turn][to].MillisecondsSince(marks_[turn][from]) * 1e-3;
  };
  const auto between = [&](Mark from, Mark to) { return seconds(turn_, from, to); };
  times_[StepPart::kLookup] += between(kBegin, kLookedUp);
  times_[StepPart::kCompute] += between(kLookedUp, kComputed);
  times_[StepPart::kReduce] += between(kComputed, kReduced);
  times_[StepPart::kRouteGradients] += between(kReduced, kRouted);
  times_[StepPart::kScalars] += between(kRouted, kSummed);
  if (update_marked_) times_[StepPart::kUpdate] += seconds(turn_ ^ 1, kSummed, kUpdated);
  update_marked_ = true;
}

template <typename A>
Status DeviceTrainStep<A>::Evaluate(const LocalBatch& batch,
                                    const std::function<void(const EvaluatedRows<float>&)>& visit) {
  Stream& compute = streams_->compute;
  // next_ may hold the next training batch.
  routed_->dense.Begin(batch);
  ELASTOR_RETURN_IF_ERROR(embedding_->RouteIds(batch.sparse, routed_->ids.get()));
  ELASTOR_RETURN_IF_ERROR(
      embedding_->Lookup(DeviceEmbedding::Purpose::kEvaluate, routed_->ids.get()));
  const BatchGeometry& geometry = GeometryOf(batch);
  routed_->weight = static_cast<double>(batch.global_rows);
  const DevicePass pass = Place(batch, geometry, routed_.get(), &evaluation_inputs_, false);
  embedding_->ReturnRows<A>(
      *routed_->ids, geometry.local_row(),
      executor_.Embeddings(pass.shape)
          .Slice(graph_->features().numeric_features(), embedding_->output_features()));
  executor_.Forward(pass);
  loss_->Enqueue(compute,
                 {.rows = pass.shape.rows(),
                  .outputs = executor_.Logits(),
                  .labels = evaluation_inputs_.labels.data(),
                  .local_row = pass.inputs.local_row},
                 losses_.data(), /*doutputs=*/nullptr);

  const int64_t device_rows = pass.shape.rows();
  const int64_t outputs = options_.task.outputs();
  const int64_t row_losses = options_.task.losses();
  const int64_t graph_outputs = options_.task.graph_outputs();
  std::vector<float> device_logits(device_rows * graph_outputs);
  std::vector<double> device_losses(device_rows * row_losses);
  Copy<float>(compute, device_logits.data(), executor_.Logits(), device_rows * graph_outputs);
  Copy<double>(compute, device_losses.data(), losses_.data(), device_rows * row_losses);
  compute.Synchronize();
  const int64_t rows = batch.rows();
  std::vector<float> logits(PanelElements(rows, outputs));
  std::vector<double> losses(rows * row_losses);
  const Panels<float> logit_panels = {logits.data(), rows, outputs, PanelStride(outputs)};
  for (int64_t row = 0; row < rows; ++row) {
    const int64_t device_row = geometry.DeviceRowOf(row);
    for (int64_t o = 0; o < outputs; ++o) {
      logit_panels.At(row, o) = device_logits[device_row * graph_outputs + o];
    }
    std::copy_n(&device_losses[device_row * row_losses], row_losses, &losses[row * row_losses]);
  }
  std::mutex mutex;
  std::vector<std::vector<float>> probes(graph_->probes().size());
  pool_->ParallelFor(rows, kPanelRows, [&](int, int64_t begin, int64_t end) {
    if (begin == end) return;
    const auto probe_panels = [&](int probe) -> Panels<const float> {
      const std::lock_guard lock(mutex);
      if (probes[probe].empty()) TakeProbe(geometry, probe, &probes[probe]);
      const int64_t features = graph_->probes()[probe].features();
      return Panels<const float>{probes[probe].data(), rows, features, PanelStride(features)}.Rows(
          begin, end - begin);
    };
    visit({.begin = begin,
           .rows = end - begin,
           .logits = logit_panels.Rows(begin, end - begin),
           .losses = losses.data() + begin * row_losses,
           .probe = probe_panels});
  });
  return OkStatus();
}

// A probe of the last forward pass, from rows on the device to panels on the host.
template <typename A>
void DeviceTrainStep<A>::TakeProbe(const BatchGeometry& geometry, int probe,
                                   std::vector<float>* panels) {
  const Activations<const A> x = executor_.ProbeOutput(geometry.shape(), probe);
  CHECK(x.row_major());
  const int64_t features = x.tokens * x.features;
  std::vector<A> values(x.rows * features);
  Copy<A>(streams_->compute, values.data(), x.data, x.rows * features);
  streams_->compute.Synchronize();
  const int64_t rows = geometry.local_rows();
  panels->assign(PanelElements(rows, features), 0.0f);
  const Panels<float> to = {panels->data(), rows, features, PanelStride(features)};
  for (int64_t row = 0; row < rows; ++row) {
    const A* const from = values.data() + geometry.DeviceRowOf(row) * features;
    for (int64_t f = 0; f < features; ++f) to.At(row, f) = static_cast<float>(from[f]);
  }
}

template <typename A>
float* DeviceTrainStep<A>::weights() {
  if (!host_weights_current_) {
    Copy<float>(streams_->compute, host_weights_.data(), weights_.data(), weights_.size());
    streams_->compute.Synchronize();
    host_weights_current_ = true;
  }
  return host_weights_.data();
}

template <typename A>
void DeviceTrainStep<A>::WeightsChanged() {
  host_weights_current_ = true;
  Copy<float>(streams_->compute, weights_.data(), host_weights_.data(), weights_.size());
  executor_.SetWeights(weights_.data());
}

template class DeviceTrainStep<float>;
template class DeviceTrainStep<BFloat16>;

}  // namespace elastor::cuda
