#include "trainer/evaluate/ntk.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <numeric>
#include <optional>
#include <random>
#include <set>
#include <utility>

#include "core/base/digest.h"
#include "core/base/log.h"
#include "core/graph/per_sample.h"
#include "core/ntk/kernel_product.h"
#include "core/ntk/kernel_tile.h"
#include "core/ntk/row_factors.h"
#include "core/spectrum/symmetric_matrix.h"
#include "trainer/data/batch.h"

namespace elastor {
namespace {

constexpr int64_t kReadRows = 4096;
constexpr int64_t kTileElements = kNtkTile * kNtkTile;

// Row `row` of `from`, behind those of `to`.
void AppendRow(const Rows& from, int64_t row, int64_t numeric_fields, int64_t fields, Rows* to) {
  const bool bags = !from.offsets.empty();
  if (bags && to->offsets.empty()) to->offsets.push_back(0);
  ++to->rows;
  const float* const numeric = from.numeric.data() + row * numeric_fields;
  to->numeric.insert(to->numeric.end(), numeric, numeric + numeric_fields);
  for (int64_t bag = row * fields; bag < (row + 1) * fields; ++bag) {
    const int64_t begin = bags ? from.offsets[bag] : bag;
    const int64_t end = bags ? from.offsets[bag + 1] : bag + 1;
    to->ids.insert(to->ids.end(), from.ids.begin() + begin, from.ids.begin() + end);
    if (bags) to->offsets.push_back(static_cast<int64_t>(to->ids.size()));
  }
}

// All bytes of a row's features.
std::string Key(const Rows& rows) {
  std::string key;
  const auto append = [&](const auto& values) {
    key.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(values[0]));
  };
  append(rows.numeric);
  append(rows.ids);
  append(rows.offsets);
  return key;
}

struct DistinctRows {
  std::vector<Rows> rows;  // of one row each
  int64_t duplicates = 0;
};

StatusOr<DistinctRows> ReadDistinctRows(const Dataset& dataset, Split split, const RowOrder& order,
                                        int64_t count) {
  const int64_t numeric_fields = dataset.info().numeric_count();
  const auto fields = static_cast<int64_t>(dataset.info().categorical.size());
  DistinctRows found;
  std::set<std::string> seen;
  Rows read;
  const int64_t rows = dataset.rows(split, order);
  for (int64_t at = 0; at < rows; at += kReadRows) {
    const int64_t end = std::min(at + kReadRows, rows);
    ELASTOR_RETURN_IF_ERROR(dataset.Read(split, order, 0, {at, end}, &read));
    for (int64_t row = 0; row < end - at; ++row) {
      if (static_cast<int64_t>(found.rows.size()) == count) return found;
      Rows one;
      AppendRow(read, row, numeric_fields, fields, &one);
      if (seen.insert(Key(one)).second) {
        found.rows.push_back(std::move(one));
      } else {
        ++found.duplicates;
      }
    }
  }
  return found;
}

// Own part of the rows, and the tables' features of them.
struct OwnRows {
  LocalBatch batch;
  std::vector<float> table_features;
};

StatusOr<OwnRows> LookUp(const NtkModel& model, const Dataset& dataset,
                         const std::vector<Rows>& rows, Communicator* communicator) {
  const auto count = static_cast<int64_t>(rows.size());
  const auto fields = static_cast<int64_t>(dataset.info().categorical.size());
  const FeatureShape& features = model.graph->features();
  const int rank = communicator->rank();
  const int ranks = communicator->size();
  const Range positions = LocalPositions(count, rank, ranks, model.leaves);
  Rows own;
  for (int64_t row = positions.begin; row < positions.end; ++row) {
    AppendRow(rows[row], 0, features.numeric_fields, fields, &own);
  }
  OwnRows found;
  FillLocalBatch(0, count, rank, ranks, model.leaves, fields, &own, &found.batch);
  ELASTOR_RETURN_IF_ERROR(
      AgreeOnStatus(*communicator, LayOutSequences(features.sequences, &found.batch)));

  const auto routing = model.embedding->MakeRouting();
  using Purpose = ShardedEmbedding<float>::Purpose;
  ELASTOR_RETURN_IF_ERROR(model.embedding->RouteIds(found.batch.sparse, routing.get()));
  ELASTOR_RETURN_IF_ERROR(model.embedding->Lookup(Purpose::kEvaluate, routing.get()));
  const int64_t width = features.table_features();
  found.table_features.resize(positions.size() * width);
  std::vector<float> memory(PanelElements(kPanelRows, width));
  for (int64_t row = 0; row < positions.size(); row += kPanelRows) {
    const int64_t part = std::min(kPanelRows, positions.size() - row);
    const Panels<float> e = {memory.data(), part, width, PanelStride(width)};
    model.embedding->ReturnRows(*routing, row, e);
    for (int64_t r = 0; r < part; ++r) {
      for (int64_t f = 0; f < width; ++f) found.table_features[(row + r) * width + f] = e.At(r, f);
    }
  }
  return found;
}

class Measurement {
 public:
  Measurement(const NtkModel& model, int64_t rows, Communicator* communicator, ThreadPool* pool)
      : model_(model),
        rows_(rows),
        blocks_((rows + kNtkTile - 1) / kNtkTile),
        communicator_(communicator),
        pool_(pool),
        outputs_(NtkOutputs(model.graph->outputs())),
        threads_(pool->threads()) {
    int64_t number = 0;
    for (int64_t j = 0; j < blocks_; ++j) {
      for (int64_t i = 0; i <= j; ++i, ++number) {
        if (number % communicator->size() == communicator->rank()) own_.push_back({j, i});
      }
    }
    whole_.resize(own_.size() * kTileElements);
  }

  Status Run(const OwnRows& own, const NtkKernelVisit& kernel, std::vector<NtkRecord>* records) {
    RowFactors factors(*model_.graph, model_.weights, pool_, kNtkRowElements);
    const NtkRows rows = {own.batch.rows(), own.table_features.data(), own.batch.numeric.data(),
                          own.batch.lengths.data()};
    std::vector<std::vector<double>> deltas(outputs_.size(),
                                            std::vector<double>(own.table_features.size()));
    const auto count = static_cast<int>(factors.rounds().size());
    std::vector<double> all;
    int64_t parameters = 0;
    for (int r = 0; r < count; ++r) {
      const RowFactors::Round& round = factors.rounds()[r];
      if (r == 0 || factors.rounds()[r - 1].layer != round.layer) BeginLayer();
      all.resize(rows_ * round.size);
      for (size_t o = 0; o < outputs_.size(); ++o) {
        const int64_t first = RowsOf(communicator_->rank()).begin;
        factors.Compute(rows, outputs_[o], r, all.data() + first * round.size,
                        r == 0 ? deltas[o].data() : nullptr);
        ELASTOR_RETURN_IF_ERROR(Gather(round.size, &all));
        AddTiles([&](KernelTile* tile) { tile->Add(round.factors, all.data(), round.size); });
      }
      if (r + 1 == count || factors.rounds()[r + 1].layer != round.layer) {
        const RowFactors::Layer& layer = factors.layers()[round.layer];
        parameters += layer.parameters;
        ELASTOR_RETURN_IF_ERROR(EndLayer(layer.name, layer.parameters, kernel, records));
      }
    }
    if (!model_.fields.empty()) {
      BeginLayer();
      const int64_t width = model_.graph->features().row_width();
      int64_t ids = 0;
      for (size_t o = 0; o < outputs_.size(); ++o) {
        NtkTableGradients gradients =
            TableGradients(own.batch.sparse, model_.fields, width, deltas[o]);
        ELASTOR_RETURN_IF_ERROR(Gather(&gradients));
        ids = static_cast<int64_t>(
            std::set<NtkTableRow>(gradients.keys.begin(), gradients.keys.end()).size());
        AddTiles([&](KernelTile* tile) { tile->Add(gradients); });
      }
      const int64_t used = ids * width;
      parameters += used;
      ELASTOR_RETURN_IF_ERROR(EndLayer("embedding", used, kernel, records));
    }
    layer_ = whole_;
    return Report("whole", parameters, kernel, records);
  }

 private:
  struct Tile {
    int64_t j = 0;
    int64_t i = 0;
  };
  Range Block(int64_t b) const { return {b * kNtkTile, std::min((b + 1) * kNtkTile, rows_)}; }
  Range RowsOf(int rank) const {
    return LocalPositions(rows_, rank, communicator_->size(), model_.leaves);
  }

  void BeginLayer() { layer_.assign(own_.size() * kTileElements, 0.0); }

  // Adds what work adds to each own tile.
  template <typename Work>
  void AddTiles(const Work& work) {
    pool_->ParallelFor(static_cast<int64_t>(own_.size()), 1,
                       [&](int t, int64_t begin, int64_t end) {
                         for (int64_t at = begin; at < end; ++at) {
                           KernelTile& tile = threads_[t];
                           tile.Begin(Block(own_[at].j), Block(own_[at].i));
                           work(&tile);
                           const Panels<const double> values = tile.values();
                           double* const to = layer_.data() + at * kTileElements;
                           for (int64_t j = 0; j < values.rows; ++j) {
                             for (int64_t i = 0; i < values.features; ++i) {
                               to[j * kNtkTile + i] += values.At(j, i);
                             }
                           }
                         }
                       });
  }

  // The mean over the outputs, which joins the whole.
  Status EndLayer(const std::string& name, int64_t parameters, const NtkKernelVisit& kernel,
                  std::vector<NtkRecord>* records) {
    const double share = 1.0 / static_cast<double>(outputs_.size());
    for (size_t i = 0; i < layer_.size(); ++i) {
      layer_[i] *= share;
      whole_[i] += layer_[i];
    }
    return Report(name, parameters, kernel, records);
  }

  // Every row's factors, of which this rank has its own.
  Status Gather(int64_t size, std::vector<double>* all) {
    std::vector<int64_t> bytes;
    for (int r = 0; r < communicator_->size(); ++r) {
      bytes.push_back(RowsOf(r).size() * size * static_cast<int64_t>(sizeof(double)));
    }
    return communicator_->AllGatherV(Phase::kMetrics,
                                     all->data() + RowsOf(communicator_->rank()).begin * size,
                                     all->data(), bytes);
  }
  Status Gather(NtkTableGradients* gradients) {
    const int ranks = communicator_->size();
    std::vector<int64_t> counts(ranks);
    counts[communicator_->rank()] = static_cast<int64_t>(gradients->keys.size());
    ELASTOR_RETURN_IF_ERROR(communicator_->AllReduceSum(Phase::kMetrics, counts));
    const auto gather = [&](const auto& own, const auto& bytes_of, auto* all) {
      std::vector<int64_t> bytes;
      int64_t total = 0;
      for (int r = 0; r < ranks; ++r) total += bytes.emplace_back(bytes_of(r));
      all->resize(total / static_cast<int64_t>(sizeof(own[0])));
      return communicator_->AllGatherV(Phase::kMetrics, own.data(), all->data(), bytes);
    };
    NtkTableGradients all;
    all.width = gradients->width;
    ELASTOR_RETURN_IF_ERROR(gather(
        gradients->keys,
        [&](int r) { return counts[r] * static_cast<int64_t>(sizeof(NtkTableRow)); }, &all.keys));
    ELASTOR_RETURN_IF_ERROR(gather(
        gradients->values,
        [&](int r) { return counts[r] * all.width * static_cast<int64_t>(sizeof(double)); },
        &all.values));
    std::vector<int64_t> lengths(rows_), own;
    for (size_t row = 0; row + 1 < gradients->begin.size(); ++row) {
      own.push_back(gradients->begin[row + 1] - gradients->begin[row]);
    }
    ELASTOR_RETURN_IF_ERROR(gather(
        own, [&](int r) { return RowsOf(r).size() * static_cast<int64_t>(sizeof(int64_t)); },
        &lengths));
    for (const int64_t length : lengths) all.begin.push_back(all.begin.back() + length);
    *gradients = std::move(all);
    return OkStatus();
  }

  // layer_, whole on rank 0, symmetric.
  StatusOr<std::vector<double>> GatherKernel() {
    const int ranks = communicator_->size();
    constexpr auto kTileBytes = static_cast<int64_t>(kTileElements * sizeof(double));
    const int64_t tiles = blocks_ * (blocks_ + 1) / 2;
    const bool root = communicator_->rank() == 0;
    std::vector<int64_t> send_bytes(ranks), receive_bytes(ranks);
    send_bytes[0] = static_cast<int64_t>(own_.size()) * kTileBytes;
    for (int r = 0; root && r < ranks; ++r) {
      receive_bytes[r] = ((tiles - r + ranks - 1) / ranks) * kTileBytes;
    }
    std::vector<double> received(root ? tiles * kTileElements : 0);
    ELASTOR_RETURN_IF_ERROR(communicator_->AllToAllV(Phase::kMetrics, layer_.data(), send_bytes,
                                                     received.data(), receive_bytes));
    std::vector<double> kernel(root ? rows_ * rows_ : 0);
    const double* from = received.data();
    for (int r = 0; root && r < ranks; ++r) {
      for (int64_t number = r; number < tiles; number += ranks, from += kTileElements) {
        int64_t j = 0;
        while ((j + 1) * (j + 2) / 2 <= number) ++j;
        const Range rows = Block(j);
        const Range columns = Block(number - j * (j + 1) / 2);
        for (int64_t a = rows.begin; a < rows.end; ++a) {
          for (int64_t b = columns.begin; b < std::min(columns.end, a + 1); ++b) {
            kernel[a * rows_ + b] = kernel[b * rows_ + a] =
                from[(a - rows.begin) * kNtkTile + b - columns.begin];
          }
        }
      }
    }
    return kernel;
  }

  // What layer_ is.
  Status Report(const std::string& name, int64_t parameters, const NtkKernelVisit& visit,
                std::vector<NtkRecord>* records) {
    ELASTOR_ASSIGN_OR_RETURN(const std::vector<double> kernel, GatherKernel());
    if (communicator_->rank() == 0) {
      records->push_back(RecordOf(name, parameters, kernel));
    }
    if (!visit) return OkStatus();
    return AgreeOnStatus(*communicator_,
                         communicator_->rank() == 0 ? visit(name, rows_, kernel) : OkStatus());
  }

  NtkRecord RecordOf(const std::string& name, int64_t parameters,
                     const std::vector<double>& kernel) const {
    Digest digest;
    for (int64_t row = 0; row < rows_; ++row) {
      digest.Add(name, row, kernel.data() + row * rows_, (row + 1) * sizeof(double));
    }
    std::vector<double> eigenvalues = EigenvaluesOf(kernel, rows_);
    const Conditioning conditioning = ConditioningOf(eigenvalues);
    std::ranges::reverse(eigenvalues);
    NtkRecord record = {.layer = name,
                        .rows = rows_,
                        .outputs = static_cast<int64_t>(outputs_.size()),
                        .parameters = parameters,
                        .lambda_max = conditioning.lambda_max,
                        .lambda_min = conditioning.lambda_min,
                        .rank = conditioning.rank,
                        .digest = digest.Hex()};
    const bool singular =
        parameters * static_cast<int64_t>(outputs_.size()) < rows_ && conditioning.rank > 0;
    if (conditioning.resolved()) {
      record.condition_number = conditioning.condition_number();
    } else if (singular) {
      record.condition_number = conditioning.lambda_max / eigenvalues[conditioning.rank - 1];
    }
    record.eigenvalues = std::move(eigenvalues);
    return record;
  }

  const NtkModel& model_;
  const int64_t rows_;
  const int64_t blocks_;
  Communicator* const communicator_;
  ThreadPool* const pool_;
  const std::vector<int64_t> outputs_;
  std::vector<KernelTile> threads_;
  std::vector<Tile> own_;  // of the lower triangle, numbered by rows, dealt to the ranks in turn
  std::vector<double> layer_;  // own tiles, each [kNtkTile][kNtkTile]
  std::vector<double> whole_;
};

// Stochastic Lanczos quadrature.
class Lanczos {
 public:
  Lanczos(const NtkModel& model, int64_t rows, const OwnRows& own, Communicator* communicator,
          ThreadPool* pool)
      : model_(model),
        rows_(rows),
        own_(own),
        communicator_(communicator),
        pool_(pool),
        outputs_(NtkOutputs(model.graph->outputs())),
        product_(*model.graph, model.weights, pool) {}

  StatusOr<NtkRecord> Run() {
    ELASTOR_RETURN_IF_ERROR(FindKeys());
    const int64_t width = model_.graph->features().row_width();
    NtkRecord record = {.layer = "whole",
                        .rows = rows_,
                        .outputs = static_cast<int64_t>(outputs_.size()),
                        .parameters = model_.graph->parameters().element_count() +
                                      static_cast<int64_t>(keys_.size()) * width};
    ELASTOR_ASSIGN_OR_RETURN(record.trace, Trace());
    std::mt19937_64 random(/*seed=*/1);
    for (int start = 1; start <= kNtkStarts; ++start) {
      std::vector<double> v(rows_);
      for (double& x : v) x = (random() & 1) != 0 ? 1 : -1;
      ELASTOR_RETURN_IF_ERROR(RunFrom(std::move(v), start, &record));
    }
    std::ranges::sort(record.density, std::ranges::greater(), &NtkRecord::Node::eigenvalue);
    FindTraceOfDensity(&record);
    return record;
  }

 private:
  // The sum of the squared norms of all rows' gradients, some rows at a time.
  StatusOr<double> Trace() {
    const FeatureShape& features = model_.graph->features();
    const int64_t width = features.table_features();
    RowFactors factors(*model_.graph, model_.weights, pool_, kNtkRowElements);
    KernelTile tile;
    std::vector<double> of_rows, deltas(kNtkTile * width);
    double trace = 0;
    for (int64_t begin = 0; begin < own_.batch.rows(); begin += kNtkTile) {
      const int64_t count = std::min(kNtkTile, own_.batch.rows() - begin);
      const NtkRows rows = {count, own_.table_features.data() + begin * width,
                            own_.batch.numeric.data() + begin * features.numeric_fields,
                            own_.batch.lengths.data() + begin * features.encoded_sequences()};
      const SparseBatch sparse = IdsOf(begin, count);
      for (const int64_t output : outputs_) {
        for (int r = 0; r < static_cast<int>(factors.rounds().size()); ++r) {
          const RowFactors::Round& round = factors.rounds()[r];
          of_rows.resize(count * round.size);
          factors.Compute(rows, output, r, of_rows.data(), r == 0 ? deltas.data() : nullptr);
          tile.Begin({0, count}, {0, count});
          tile.Add(round.factors, of_rows.data(), round.size);
          for (int64_t i = 0; i < count; ++i) trace += tile.values().At(i, i);
        }
        if (model_.fields.empty()) continue;
        const NtkTableGradients gradients = TableGradients(
            sparse, model_.fields, features.row_width(), std::span(deltas).first(count * width));
        for (const double g : gradients.values) trace += g * g;
      }
    }
    std::vector<double> of_ranks(communicator_->size());
    of_ranks[communicator_->rank()] = trace;
    const std::vector<int64_t> bytes(of_ranks.size(), sizeof(double));
    ELASTOR_RETURN_IF_ERROR(communicator_->AllGatherV(
        Phase::kMetrics, &of_ranks[communicator_->rank()], of_ranks.data(), bytes));
    return std::reduce(of_ranks.begin(), of_ranks.end()) / static_cast<double>(outputs_.size());
  }

  // The ids of some own rows.
  SparseBatch IdsOf(int64_t begin, int64_t count) const {
    const SparseBatch& all = own_.batch.sparse;
    const int64_t first = begin * all.fields, last = first + count * all.fields;
    const auto place = [&](int64_t bag) { return all.offsets.empty() ? bag : all.offsets[bag]; };
    SparseBatch ids;
    ids.rows = count;
    ids.fields = all.fields;
    ids.ids.assign(all.ids.begin() + place(first), all.ids.begin() + place(last));
    for (int64_t bag = first; !all.offsets.empty() && bag <= last; ++bag) {
      ids.offsets.push_back(place(bag) - place(first));
    }
    return ids;
  }

  // The trace that each starting vector's density gives: the spread is the density's error.
  static void FindTraceOfDensity(NtkRecord* record) {
    std::vector<double> traces(kNtkStarts);
    for (const auto& [eigenvalue, share, start] : record->density) {
      traces[start - 1] += kNtkStarts * share * eigenvalue * static_cast<double>(record->rows);
    }
    double sum = 0, squares = 0;
    for (const double trace : traces) sum += trace;
    const double mean = sum / kNtkStarts;
    for (const double trace : traces) squares += (trace - mean) * (trace - mean);
    record->trace_of_density = mean;
    record->trace_standard_error = std::sqrt(squares / (kNtkStarts - 1) / kNtkStarts);
  }

  // Steps from one random vector, orthogonal to all before them.
  Status RunFrom(std::vector<double> v, int start, NtkRecord* record) {
    const auto dot = [](const std::vector<double>& a, const std::vector<double>& b) {
      return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
    };
    const auto scale = [](double factor, std::vector<double>* x) {
      for (double& value : *x) value *= factor;
    };
    std::vector<std::vector<double>> basis;
    std::vector<double> diagonal, beside;
    scale(1 / std::sqrt(dot(v, v)), &v);
    for (int step = 0; step < kNtkLanczosSteps; ++step) {
      basis.push_back(v);
      ELASTOR_ASSIGN_OR_RETURN(std::vector<double> next, Product(v));
      diagonal.push_back(dot(next, v));
      for (int twice = 0; twice < 2; ++twice) {
        for (const std::vector<double>& other : basis) {
          const double share = dot(next, other);
          for (int64_t i = 0; i < rows_; ++i) next[i] -= share * other[i];
        }
      }
      beside.push_back(std::sqrt(dot(next, next)));
      if (beside.back() <= 1e-14 * std::abs(diagonal[0])) break;
      scale(1 / beside.back(), &next);
      v = std::move(next);
    }
    const auto size = static_cast<int64_t>(diagonal.size());
    std::vector<double> matrix(size * size);
    for (int64_t i = 0; i < size; ++i) {
      matrix[i * size + i] = diagonal[i];
      if (i > 0) matrix[i * size + i - 1] = matrix[(i - 1) * size + i] = beside[i - 1];
    }
    const Eigendecomposition ritz = Decompose(matrix, size);
    for (int64_t i = 0; i < size; ++i) {
      const double first = ritz.vectors[i * size];
      record->density.push_back({ritz.values[i], first * first / kNtkStarts, start});
    }
    if (ritz.values.back() > record->lambda_max) {
      record->lambda_max = ritz.values.back();
      record->residual = beside.back() * std::abs(ritz.vectors[size * size - 1]);
    }
    return OkStatus();
  }

  // All rows of the tables that occur, and where those of the own bags are among them.
  Status FindKeys() {
    const SparseBatch& sparse = own_.batch.sparse;
    std::vector<NtkTableRow> own;
    ForEachId([&](int64_t bag, int64_t at, double) {
      own.push_back({model_.fields[bag % sparse.fields].table, sparse.ids[at]});
    });
    std::vector<NtkTableRow> unique = own;
    const auto make_unique = [](std::vector<NtkTableRow>* keys) {
      std::ranges::sort(*keys);
      keys->erase(std::unique(keys->begin(), keys->end()), keys->end());
    };
    make_unique(&unique);
    std::vector<int64_t> bytes(communicator_->size());
    bytes[communicator_->rank()] = static_cast<int64_t>(unique.size() * sizeof(NtkTableRow));
    ELASTOR_RETURN_IF_ERROR(communicator_->AllReduceSum(Phase::kMetrics, bytes));
    keys_.resize(std::reduce(bytes.begin(), bytes.end()) /
                 static_cast<int64_t>(sizeof(NtkTableRow)));
    ELASTOR_RETURN_IF_ERROR(
        communicator_->AllGatherV(Phase::kMetrics, unique.data(), keys_.data(), bytes));
    make_unique(&keys_);
    for (const NtkTableRow& key : own) {
      places_.push_back(std::ranges::lower_bound(keys_, key) - keys_.begin());
    }
    return OkStatus();
  }

  // work(bag, place in ids, share of the id in its bag).
  template <typename Work>
  void ForEachId(const Work& work) const {
    const SparseBatch& sparse = own_.batch.sparse;
    for (int64_t bag = 0; bag < sparse.rows * sparse.fields; ++bag) {
      const int64_t begin = sparse.offsets.empty() ? bag : sparse.offsets[bag];
      const int64_t end = sparse.offsets.empty() ? bag + 1 : sparse.offsets[bag + 1];
      const bool mean = model_.fields[bag % sparse.fields].pooling == Pooling::kMean;
      const double share = mean ? 1.0 / static_cast<double>(end - begin) : 1.0;
      for (int64_t at = begin; at < end; ++at) work(bag, at, share);
    }
  }

  // K v; every rank has all of both.
  StatusOr<std::vector<double>> Product(const std::vector<double>& v) {
    const int ranks = communicator_->size();
    const Range own = LocalPositions(rows_, communicator_->rank(), ranks, model_.leaves);
    const NtkRows rows = {own.size(), own_.table_features.data(), own_.batch.numeric.data(),
                          own_.batch.lengths.data()};
    const int64_t dense = model_.graph->parameters().flat_size();
    const int64_t width = model_.graph->features().row_width();
    const int64_t size = dense + static_cast<int64_t>(keys_.size()) * width;
    std::vector<double> result(rows_);
    std::vector<double> deltas(own_.table_features.size());
    std::vector<double> all(size * ranks);
    for (const int64_t o : outputs_) {
      std::ranges::fill(all, 0.0);
      const std::span<double> mine(all.data() + communicator_->rank() * size, size);
      product_.AddTransposed(rows, o, v.data() + own.begin, mine.first(dense), deltas.data());
      ForEachId([&](int64_t bag, int64_t at, double share) {
        double* const to = mine.data() + dense + places_[at] * width;
        for (int64_t c = 0; c < width; ++c) to[c] += share * deltas[bag * width + c];
      });
      const std::vector<int64_t> bytes(ranks, size * static_cast<int64_t>(sizeof(double)));
      ELASTOR_RETURN_IF_ERROR(
          communicator_->AllGatherV(Phase::kMetrics, mine.data(), all.data(), bytes));
      for (int64_t i = size; i < size * ranks; ++i) all[i % size] += all[i];
      const std::span<const double> gradient(all.data(), size);
      product_.AddProduct(rows, o, gradient.first(dense), result.data() + own.begin, deltas.data());
      ForEachId([&](int64_t bag, int64_t at, double share) {
        const double* const from = gradient.data() + dense + places_[at] * width;
        double& sum = result[own.begin + bag / own_.batch.sparse.fields];
        for (int64_t c = 0; c < width; ++c) sum += share * deltas[bag * width + c] * from[c];
      });
    }
    for (double& x : result) x /= static_cast<double>(outputs_.size());
    std::vector<int64_t> bytes;
    for (int r = 0; r < ranks; ++r) {
      bytes.push_back(LocalPositions(rows_, r, ranks, model_.leaves).size() *
                      static_cast<int64_t>(sizeof(double)));
    }
    ELASTOR_RETURN_IF_ERROR(communicator_->AllGatherV(Phase::kMetrics, result.data() + own.begin,
                                                      result.data(), bytes));
    return result;
  }

  const NtkModel& model_;
  const int64_t rows_;
  const OwnRows& own_;
  Communicator* const communicator_;
  ThreadPool* const pool_;
  const std::vector<int64_t> outputs_;
  KernelProduct product_;
  std::vector<NtkTableRow> keys_;
  std::vector<int64_t> places_;  // in keys_, of every own id
};

}  // namespace

NtkTableGradients TableGradients(const SparseBatch& sparse, std::span<const FieldSpec> fields,
                                 int64_t width, std::span<const double> deltas) {
  CHECK_EQ(static_cast<int64_t>(fields.size()), sparse.fields);
  NtkTableGradients gradients;
  gradients.width = width;
  std::map<NtkTableRow, std::vector<double>> of_row;
  for (int64_t row = 0; row < sparse.rows; ++row) {
    of_row.clear();
    for (int64_t f = 0; f < sparse.fields; ++f) {
      const int64_t bag = row * sparse.fields + f;
      const int64_t begin = sparse.offsets.empty() ? bag : sparse.offsets[bag];
      const int64_t end = sparse.offsets.empty() ? bag + 1 : sparse.offsets[bag + 1];
      const FieldSpec& field = fields[f];
      const double share =
          field.pooling == Pooling::kMean ? 1.0 / static_cast<double>(end - begin) : 1.0;
      for (int64_t i = begin; i < end; ++i) {
        std::vector<double>& gradient = of_row[{field.table, sparse.ids[i]}];
        gradient.resize(width);
        for (int64_t c = 0; c < width; ++c) gradient[c] += share * deltas[bag * width + c];
      }
    }
    for (const auto& [key, gradient] : of_row) {
      gradients.keys.push_back(key);
      gradients.values.insert(gradients.values.end(), gradient.begin(), gradient.end());
    }
    gradients.begin.push_back(static_cast<int64_t>(gradients.keys.size()));
  }
  return gradients;
}

StatusOr<NtkMeasurement> MeasureNtk(const NtkModel& model, const Dataset& dataset, Split split,
                                    const RowOrder& order, int64_t rows,
                                    const NtkKernelVisit& kernel, Communicator* communicator,
                                    ThreadPool* pool) {
  ELASTOR_RETURN_IF_ERROR(CheckPerSampleGradients(*model.graph));
  StatusOr<DistinctRows> distinct = ReadDistinctRows(dataset, split, order, rows);
  ELASTOR_RETURN_IF_ERROR(AgreeOnStatus(*communicator, distinct.status()));
  NtkMeasurement measured;
  measured.rows = static_cast<int64_t>(distinct->rows.size());
  measured.duplicates = distinct->duplicates;
  ELASTOR_ASSIGN_OR_RETURN(const OwnRows own, LookUp(model, dataset, distinct->rows, communicator));
  if (measured.rows > model.most_eigenvalues) {
    Lanczos lanczos(model, measured.rows, own, communicator, pool);
    ELASTOR_ASSIGN_OR_RETURN(NtkRecord record, lanczos.Run());
    measured.records.push_back(std::move(record));
  } else {
    Measurement measurement(model, measured.rows, communicator, pool);
    ELASTOR_RETURN_IF_ERROR(measurement.Run(own, kernel, &measured.records));
  }
  for (NtkRecord& record : measured.records) record.split = SplitName(split);
  return measured;
}

}  // namespace elastor
