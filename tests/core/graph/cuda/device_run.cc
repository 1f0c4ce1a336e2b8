#include "tests/core/graph/cuda/device_run.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

#include "core/graph/cpu/cpu_executor.h"
#include "core/graph/per_sample.h"
#include "core/kernels/cuda/elementwise.h"
#include "tests/core/cuda/device_arrays.h"
#include "tests/core/graph/finite_difference.h"
#include "tests/core/kernels/panel_testing.h"

namespace elastor::cuda {
namespace {

std::vector<float> BFloat16Numbers(int64_t count, uint32_t seed) {
  std::vector<float> numbers = RandomNumbers<float>(count, seed);
  for (float& number : numbers) number = static_cast<float>(BFloat16(number));
  return numbers;
}

std::vector<double> Rows(Panels<const double> view) {
  std::vector<double> rows;
  for (int64_t r = 0; r < view.rows; ++r) {
    for (int64_t f = 0; f < view.features; ++f) rows.push_back(view.At(r, f));
  }
  return rows;
}

void Append(const std::vector<double>& from, std::vector<double>* to) {
  to->insert(to->end(), from.begin(), from.end());
}

std::vector<double> ToDouble(const auto& values) {
  std::vector<double> result;
  for (const auto& value : values) result.push_back(static_cast<float>(value));
  return result;
}

}  // namespace

int64_t LeafBatch::FirstRow(int64_t leaf) const {
  return std::accumulate(counts.begin(), counts.begin() + leaf, int64_t{0});
}

LeafBatch MakeLeafBatch(const elastor::Graph& graph, std::vector<int32_t> counts,
                        int64_t leaf_rows) {
  const FeatureShape& features = graph.features();
  LeafBatch batch;
  batch.counts = std::move(counts);
  batch.leaf_rows = leaf_rows;
  batch.first_row = (int64_t{1} << 33) + 5;
  batch.step = 7;
  batch.numeric = RandomNumbers<float>(batch.rows() * features.numeric_fields, /*seed=*/12);
  for (size_t i = 0; i < batch.numeric.size(); i += 5) {
    batch.numeric[i] = std::numeric_limits<float>::quiet_NaN();
  }
  batch.lengths = SequenceLengths(features, batch.rows());
  batch.embeddings = BFloat16Numbers(batch.rows() * features.embedding_features(), /*seed=*/13);
  batch.dlogits = BFloat16Numbers(batch.rows() * graph.outputs(), /*seed=*/14);
  return batch;
}

std::vector<float> MakeWeights(const ParameterLayout& layout) {
  std::vector<float> weights(layout.flat_size());
  layout.Initialize(/*seed=*/3, weights.data());
  const std::vector<float> changes = RandomNumbers<float>(layout.flat_size(), /*seed=*/4);
  for (const ParameterInfo& p : layout.parameters()) {
    for (int64_t i = p.offset; i < p.offset + p.size; ++i) weights[i] += 0.25f * changes[i];
  }
  return weights;
}

PassResult RunOnHost(const elastor::Graph& graph, const std::vector<float>& weights,
                     const LeafBatch& batch, uint64_t seed, bool training) {
  CpuExecutor<double> executor(graph);
  const std::vector<double> values(weights.begin(), weights.end());
  executor.Prepare(values.data());
  Workspace<double> workspace(executor.workspace_plan(), batch.leaf_rows);
  const int64_t inputs = graph.features().embedding_features();
  PassResult result;
  result.probes.resize(graph.probes().size());
  for (int64_t leaf = 0; leaf < batch.leaves(); ++leaf) {
    const int64_t rows = batch.counts[leaf];
    const int64_t first = batch.FirstRow(leaf);
    result.gradients.emplace_back();
    if (rows == 0) continue;
    result.gradients.back().resize(graph.parameters().flat_size());
    StoringSink<double> sink(&graph.parameters());
    sink.Begin(result.gradients.back().data());
    Pass<double> pass;
    pass.workspace = &workspace;
    pass.sink = &sink;
    pass.leaves = PassLeaves(rows);
    pass.training = training;
    pass.numeric = batch.numeric.data() + first * graph.features().numeric_fields;
    pass.lengths = batch.lengths.data() + first * graph.features().encoded_sequences();
    pass.seed = seed;
    pass.step = batch.step;
    pass.first_row = batch.first_row + first;
    pass.leaf_share = static_cast<double>(rows) / static_cast<double>(batch.rows());
    const Panels<double> e = executor.Embeddings(pass);
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t f = 0; f < inputs; ++f) {
        e.At(r, f) = batch.embeddings[(first + r) * inputs + f];
      }
    }
    executor.Forward(pass);
    for (size_t p = 0; p < result.probes.size(); ++p) {
      Append(Rows(executor.ProbeOutput(pass, static_cast<int>(p))), &result.probes[p]);
    }
    Append(Rows(executor.Logits(pass)), &result.logits);
    if (!training) continue;
    const Panels<double> dlogits = executor.LogitGradients(pass);
    for (int64_t r = 0; r < dlogits.panels() * kPanelRows; ++r) {
      for (int64_t i = 0; i < graph.outputs(); ++i) {
        dlogits.At(r, i) = r < rows ? batch.dlogits[(first + r) * graph.outputs() + i] : 0.0;
      }
    }
    executor.Backward(pass);
    Append(Rows(executor.EmbeddingGradients(pass)), &result.embedding_gradients);
  }
  if (!training) result.gradients.clear();
  return result;
}

template <typename A>
DeviceRun<A>::DeviceRun(const elastor::Graph& graph, const std::vector<float>& weights,
                        const LeafBatch& batch, int64_t begin, int64_t count,
                        const DeviceModelOptions& options, DeviceRewrites rewrites)
    : graph_(graph),
      executor_(graph, options, &stream_, rewrites),
      gradients_(&graph.parameters(), &stream_),
      weights_(Upload(stream_, weights)),
      embeddings_(&stream_),
      dlogits_(&stream_),
      numeric_(&stream_),
      lengths_(&stream_),
      local_row_(&stream_),
      counts_(&stream_, count),
      first_row_(Upload(stream_, std::vector<int64_t>{batch.first_row + batch.FirstRow(begin)})),
      step_(Upload(stream_, std::vector<uint32_t>{batch.step})),
      batch_rows_(Upload(stream_, std::vector<int64_t>{batch.rows()})),
      logits_(&stream_) {
  const int64_t inputs = graph.features().embedding_features();
  const int64_t first = batch.FirstRow(begin);
  const int64_t rows = batch.FirstRow(begin + count) - first;
  pass_.shape = {count, batch.leaf_rows};
  const int64_t device_rows = pass_.shape.rows();
  executor_.Reserve(pass_.shape);
  executor_.SetWeights(weights_.data());
  gradients_.Reserve(count);

  std::vector<A> e(device_rows * inputs, A(0.0f));
  std::vector<float> dlogits(device_rows * graph.outputs());
  host_local_row_.assign(device_rows, -1);
  for (int64_t leaf = begin; leaf < begin + count; ++leaf) {
    for (int64_t r = 0; r < batch.counts[leaf]; ++r) {
      const int64_t device_row = (leaf - begin) * batch.leaf_rows + r;
      const int64_t row = batch.FirstRow(leaf) + r;
      host_local_row_[device_row] = static_cast<int32_t>(row - first);
      for (int64_t f = graph.features().numeric_features(); f < inputs; ++f) {
        e[device_row * inputs + f] = A(batch.embeddings[row * inputs + f]);
      }
      std::copy_n(batch.dlogits.begin() + row * graph.outputs(), graph.outputs(),
                  dlogits.begin() + device_row * graph.outputs());
    }
  }
  const int64_t fields = graph.features().numeric_fields;
  Copy(stream_, numeric_.Resize(rows * fields), batch.numeric.data() + first * fields,
       rows * fields);
  const int64_t sequences = graph.features().encoded_sequences();
  Copy(stream_, lengths_.Resize(rows * sequences), batch.lengths.data() + first * sequences,
       rows * sequences);
  Copy(stream_, counts_.data(), batch.counts.data() + begin, count);
  cuda::Upload(stream_, host_local_row_, &local_row_);
  cuda::Upload(stream_, e, &embeddings_);
  cuda::Upload(stream_, dlogits, &dlogits_);
  logits_.Resize(device_rows * graph.outputs());
  for (const Probe& probe : graph.probes()) {
    probes_.emplace_back(&stream_, device_rows * probe.features());
  }
  pass_.inputs = {numeric_.data(), local_row_.data(),  counts_.data(), first_row_.data(),
                  step_.data(),    batch_rows_.data(), lengths_.data()};
}

template <typename A>
void DeviceRun<A>::Enqueue(bool training) {
  pass_.training = training;
  Copy(stream_, executor_.Embeddings(pass_.shape).data, embeddings_.data(), embeddings_.size());
  executor_.Forward(pass_);
  Copy(stream_, logits_.data(), executor_.Logits(), logits_.size());
  for (size_t p = 0; p < probes_.size(); ++p) {
    const Activations<const A> probe = executor_.ProbeOutput(pass_.shape, static_cast<int>(p));
    CHECK(probe.row_major());
    Copy<A>(stream_, probes_[p].data(), probe.data, probes_[p].size());
  }
  if (!training) return;
  Copy(stream_, executor_.LogitGradients(), dlogits_.data(), dlogits_.size());
  ready_.clear();
  gradients_.Begin([this](int bucket) { ready_.push_back(bucket); });
  executor_.Backward(pass_, &gradients_);
}

template <typename A>
std::vector<double> DeviceRun<A>::RealRows(const std::vector<double>& device_rows) const {
  const int64_t features = static_cast<int64_t>(device_rows.size()) / pass_.shape.rows();
  std::vector<double> rows;
  for (int64_t device_row = 0; device_row < pass_.shape.rows(); ++device_row) {
    if (host_local_row_[device_row] < 0) continue;
    rows.insert(rows.end(), device_rows.begin() + device_row * features,
                device_rows.begin() + (device_row + 1) * features);
  }
  return rows;
}

template <typename A>
std::vector<double> DeviceRun<A>::DeviceEmbeddingGradients() {
  const Activations<const A> de = executor_.EmbeddingGradients(pass_.shape);
  std::vector<A> values(de.rows * de.features);
  Copy2D(stream_, values.data(), de.features, const_cast<A*>(de.data), de.row_stride, de.features,
         de.rows);
  stream_.Synchronize();
  return ToDouble(values);
}

template <typename A>
PassResult DeviceRun<A>::Result(bool training) {
  const auto real_rows = [&](const auto& buffer) {
    return RealRows(ToDouble(Download(stream_, buffer)));
  };
  PassResult result;
  result.logits = real_rows(logits_);
  for (const Buffer<A>& probe : probes_) result.probes.push_back(real_rows(probe));
  if (!training) return result;
  result.embedding_gradients = RealRows(DeviceEmbeddingGradients());
  const ParameterLayout& layout = graph_.parameters();
  const int64_t leaves = pass_.shape.leaves;
  result.gradients.assign(leaves, std::vector<double>(layout.flat_size()));
  for (int b = 0; b < static_cast<int>(layout.buckets().size()); ++b) {
    std::vector<FoldRun> runs(gradients_.run_count(b));
    Copy(stream_, runs.data(), gradients_.runs(b), static_cast<int64_t>(runs.size()));
    stream_.Synchronize();
    for (const FoldRun& run : runs) {
      std::vector<float> values(run.size * leaves);
      Copy(stream_, values.data(), run.data, static_cast<int64_t>(values.size()));
      stream_.Synchronize();
      for (int64_t leaf = 0; leaf < leaves; ++leaf) {
        for (int64_t i = 0; i < run.size; ++i) {
          result.gradients[leaf][run.begin + i] =
              values[(i / run.inner * leaves + leaf) * run.inner + i % run.inner];
        }
      }
    }
  }
  return result;
}

template class DeviceRun<float>;
template class DeviceRun<BFloat16>;

}  // namespace elastor::cuda
