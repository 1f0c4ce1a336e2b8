#include "tests/core/models/cuda/device_model_testing.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

#include "tests/core/cuda/device_arrays.h"
#include "tests/core/layers/finite_difference.h"
#include "tests/core/kernels/panel_testing.h"

namespace elastor::cuda {
namespace {

std::vector<float> BFloat16Numbers(int64_t count, uint32_t seed) {
  std::vector<float> numbers = RandomNumbers<float>(count, seed);
  for (float& number : numbers) number = static_cast<float>(BFloat16(number));
  return numbers;
}

template <typename T>
std::vector<double> Rows(Panels<const T> view) {
  std::vector<double> rows;
  for (int64_t r = 0; r < view.rows; ++r) {
    for (int64_t f = 0; f < view.features; ++f) rows.push_back(view.At(r, f));
  }
  return rows;
}

void Append(const std::vector<double>& from, std::vector<double>* to) {
  to->insert(to->end(), from.begin(), from.end());
}

}  // namespace

int64_t LeafBatch::FirstRow(int64_t leaf) const {
  return std::accumulate(counts.begin(), counts.begin() + leaf, int64_t{0});
}

LeafBatch MakeLeafBatch(const Model<float>& model, std::vector<int32_t> counts, int64_t leaf_rows) {
  LeafBatch batch;
  batch.counts = std::move(counts);
  batch.leaf_rows = leaf_rows;
  batch.first_row = (int64_t{1} << 33) + 5;
  batch.step = 7;
  batch.numeric = RandomNumbers<float>(batch.rows() * model.numeric_fields(), /*seed=*/12);
  for (size_t i = 0; i < batch.numeric.size(); i += 5) {
    batch.numeric[i] = std::numeric_limits<float>::quiet_NaN();
  }
  batch.embeddings = BFloat16Numbers(batch.rows() * model.inputs(), /*seed=*/13);
  batch.dlogits = BFloat16Numbers(batch.rows(), /*seed=*/14);
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

PassResult RunOnHost(const ModelSpec& spec, const std::vector<float>& weights,
                     const LeafBatch& batch, uint64_t seed, bool training) {
  const std::unique_ptr<Model<double>> model = MakeModel<double>(spec);
  const std::vector<double> values(weights.begin(), weights.end());
  model->Prepare(values.data());
  Workspace<double> workspace(model->workspace_plan(), batch.leaf_rows);
  PassResult result;
  result.stages.resize(model->stages().size());
  for (int64_t leaf = 0; leaf < batch.leaves(); ++leaf) {
    const int64_t rows = batch.counts[leaf];
    const int64_t first = batch.FirstRow(leaf);
    FlatSink<double> sink(&model->parameters());
    result.gradients.emplace_back();
    if (rows == 0) continue;
    Pass<double> pass;
    pass.workspace = &workspace;
    pass.sink = &sink;
    pass.rows = rows;
    pass.training = training;
    pass.seed = seed;
    pass.step = batch.step;
    pass.first_row = batch.first_row + first;
    pass.leaf_share = static_cast<double>(rows) / static_cast<double>(batch.rows());
    PanelBuffer<double> e(rows, model->inputs(), 1), de(rows, model->inputs(), 2);
    PanelBuffer<double> logits(rows, 1, 3), dlogits(rows, 1, 4);
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t f = 0; f < model->inputs(); ++f) {
        e.view().At(r, f) = batch.embeddings[(first + r) * model->inputs() + f];
      }
      dlogits.view().At(r, 0) = batch.dlogits[first + r];
    }
    const float* numeric = batch.numeric.data() + first * model->numeric_fields();
    model->Forward(pass, numeric, e.view(), logits.view());
    for (size_t s = 0; s < result.stages.size(); ++s) {
      Append(Rows(model->StageOutput(pass, e.read(), static_cast<int>(s))), &result.stages[s]);
    }
    Append(Rows(logits.read()), &result.logits);
    if (!training) continue;
    sink.Begin(Store::kOverwrite);
    model->Backward(pass, numeric, e.read(), dlogits.ZeroPadding().read(), de.view());
    result.gradients.back() = sink.gradients();
    Append(Rows(de.read()), &result.embedding_gradients);
  }
  return result;
}

template <typename A>
DeviceRun<A>::DeviceRun(const ModelSpec& spec, const std::vector<float>& weights,
                        const LeafBatch& batch, int64_t begin, int64_t count,
                        const DeviceModelOptions& options)
    : cpu_model_(MakeModel<float>(spec)),
      model_(MakeDeviceModel<A>(spec, *cpu_model_, options, &stream_)),
      gradients_(&cpu_model_->parameters(), &stream_),
      weights_(Upload(stream_, weights)),
      numeric_(&stream_),
      place_row_(&stream_),
      counts_(&stream_, count),
      first_row_(Upload(stream_, std::vector<int64_t>{batch.first_row + batch.FirstRow(begin)})),
      step_(Upload(stream_, std::vector<uint32_t>{batch.step})),
      batch_rows_(Upload(stream_, std::vector<int64_t>{batch.rows()})) {
  const int64_t inputs = cpu_model_->inputs();
  const int64_t first = batch.FirstRow(begin);
  const int64_t rows = batch.FirstRow(begin + count) - first;
  pass_.shape = {count, batch.leaf_rows};
  model_->Reserve(pass_.shape);
  model_->SetWeights(weights_.data());
  gradients_.Reserve(count);

  std::vector<A> e(pass_.shape.rows() * inputs, A(0.0f));
  std::vector<float> dlogits(pass_.shape.rows());
  place_row_host_.assign(pass_.shape.rows(), -1);
  for (int64_t leaf = begin; leaf < begin + count; ++leaf) {
    for (int64_t r = 0; r < batch.counts[leaf]; ++r) {
      const int64_t place = (leaf - begin) * batch.leaf_rows + r;
      const int64_t row = batch.FirstRow(leaf) + r;
      place_row_host_[place] = static_cast<int32_t>(row - first);
      for (int64_t f = cpu_model_->numeric_features(); f < inputs; ++f) {
        e[place * inputs + f] = A(batch.embeddings[row * inputs + f]);
      }
      dlogits[place] = batch.dlogits[row];
    }
  }
  const int64_t fields = cpu_model_->numeric_fields();
  Copy(stream_, numeric_.Resize(rows * fields), batch.numeric.data() + first * fields,
       rows * fields);
  Copy(stream_, place_row_.Resize(pass_.shape.rows()), place_row_host_.data(), pass_.shape.rows());
  Copy(stream_, counts_.data(), batch.counts.data() + begin, count);
  Copy(stream_, model_->Embeddings(pass_.shape).data, e.data(), static_cast<int64_t>(e.size()));
  Copy(stream_, model_->LogitGradients(), dlogits.data(), static_cast<int64_t>(dlogits.size()));
  pass_.inputs = {numeric_.data(),   place_row_.data(), counts_.data(),
                  first_row_.data(), step_.data(),      batch_rows_.data()};
}

template <typename A>
void DeviceRun<A>::Enqueue(bool training) {
  pass_.training = training;
  model_->Forward(pass_);
  if (!training) return;
  ready_.clear();
  gradients_.Begin([this](int bucket) { ready_.push_back(bucket); });
  model_->Backward(pass_, &gradients_);
}

template <typename A>
std::vector<double> DeviceRun<A>::Places(Activations<const A> view) {
  CHECK(view.row_major());
  std::vector<A> values(view.rows * view.tokens * view.features);
  Copy(stream_, values.data(), view.data, static_cast<int64_t>(values.size()));
  stream_.Synchronize();
  std::vector<double> result;
  for (const A& value : values) result.push_back(static_cast<float>(value));
  return result;
}

template <typename A>
std::vector<double> DeviceRun<A>::RealRows(Activations<const A> view) {
  const std::vector<double> places = Places(view);
  const int64_t features = view.tokens * view.features;
  std::vector<double> rows;
  for (int64_t place = 0; place < view.rows; ++place) {
    if (place_row_host_[place] < 0) continue;
    rows.insert(rows.end(), places.begin() + place * features,
                places.begin() + (place + 1) * features);
  }
  return rows;
}

template <typename A>
std::vector<double> DeviceRun<A>::EmbeddingGradientPlaces() {
  return Places(model_->EmbeddingGradients(pass_.shape));
}

template <typename A>
PassResult DeviceRun<A>::Result(bool training) {
  PassResult result;
  std::vector<float> logits(pass_.shape.rows());
  Copy(stream_, logits.data(), static_cast<const float*>(model_->Logits()),
       static_cast<int64_t>(logits.size()));
  stream_.Synchronize();
  for (int64_t place = 0; place < pass_.shape.rows(); ++place) {
    if (place_row_host_[place] >= 0) result.logits.push_back(logits[place]);
  }
  const ParameterLayout& layout = cpu_model_->parameters();
  if (training) {
    result.embedding_gradients = RealRows(model_->EmbeddingGradients(pass_.shape));
    result.gradients.assign(pass_.shape.leaves, std::vector<double>(layout.flat_size()));
    for (int b = 0; b < static_cast<int>(layout.buckets().size()); ++b) {
      std::vector<FoldRun> runs(gradients_.run_count(b));
      Copy(stream_, runs.data(), gradients_.runs(b), static_cast<int64_t>(runs.size()));
      stream_.Synchronize();
      for (const FoldRun& run : runs) {
        std::vector<float> values(run.size * pass_.shape.leaves);
        Copy(stream_, values.data(), run.data, static_cast<int64_t>(values.size()));
        stream_.Synchronize();
        for (int64_t leaf = 0; leaf < pass_.shape.leaves; ++leaf) {
          for (int64_t i = 0; i < run.size; ++i) {
            result.gradients[leaf][run.begin + i] =
                values[(i / run.inner * pass_.shape.leaves + leaf) * run.inner + i % run.inner];
          }
        }
      }
    }
  }
  for (size_t s = 0; s < cpu_model_->stages().size(); ++s) {
    result.stages.push_back(RealRows(model_->StageOutput(pass_.shape, static_cast<int>(s))));
  }
  return result;
}

template class DeviceRun<float>;
template class DeviceRun<BFloat16>;

}  // namespace elastor::cuda
