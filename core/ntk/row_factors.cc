#include "core/ntk/row_factors.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "core/graph/per_sample.h"
#include "glog/logging.h"

namespace elastor {
namespace {

constexpr int64_t kRows = 64;  // of a pass

Graph WithoutDropout(const Graph& graph) {
  std::vector<Node> nodes(graph.nodes().begin(), graph.nodes().end());
  for (Node& node : nodes) {
    if (auto* const dropout = std::get_if<DropoutOp>(&node.op)) dropout->rate = 0;
    if (auto* const attention = std::get_if<AttentionOp>(&node.op)) attention->dropout = 0;
  }
  return {graph.features(),
          graph.parameters(),
          std::move(nodes),
          {graph.probes().begin(), graph.probes().end()}};
}

std::string LayerName(const std::string& parameter) {
  const size_t last = parameter.rfind('.');
  if (last == parameter.npos) return parameter;
  const std::string module = parameter.substr(0, last);
  const size_t first = module.find('.');
  return first == module.npos ? module : module.substr(0, module.find('.', first + 1));
}

// A parameter's place of what a sink is given: what belongs to one map.
using Place = std::pair<int, int64_t>;  // parameter and first element

// Counts what comes for every place.
class CountingSink final : public RowGradientSink<double> {
 public:
  struct Found {
    int64_t out = 0;
    int64_t in = 0;
    int64_t positions = 0;
  };
  void AddProduct(int parameter, int64_t first, Panels<const double> dy,
                  Panels<const double> x) override {
    Count({parameter, first}, dy.features, x.features);
  }
  void AddTerm(int parameter, int64_t first, Panels<const double> a,
               Panels<const double>) override {
    Count({parameter, first}, a.features, 0);
  }
  const std::map<Place, Found>& found() const { return found_; }

 private:
  void Count(const Place& place, int64_t out, int64_t in) {
    Found& found = found_[place];
    CHECK(found.positions == 0 || (found.out == out && found.in == in));
    found = {out, in, found.positions + 1};
  }
  std::map<Place, Found> found_;
};

// Parameters whose every use delivers row gradients.
std::vector<bool> WithRowGradients(const Graph& graph) {
  std::vector<bool> all(graph.parameters().parameters().size(), true);
  for (const Node& node : graph.nodes()) {
    if (std::visit([](const auto& op) { return op.row_gradients(); }, node.op)) continue;
    for (const int parameter : node.parameters) all[parameter] = false;
  }
  return all;
}

}  // namespace

struct RowFactors::Piece {
  int layer = 0;
  Place place;
  int64_t row = 0;       // of a vector that is a part of a map's gradient: the first of its rows
  int64_t columns = 0;   // and their length; 0: the vector comes as terms
  bool by_pass = false;  // a vector that a pass of one row leaves in the parameter's gradient
  NtkFactor factor;
};

struct RowFactors::Thread {
  Thread(const WorkspacePlan& plan, const ParameterLayout& layout)
      : workspace(plan, kRows), gradients(layout.flat_size()), sink(&layout) {
    sink.Begin(gradients.data());
  }
  Workspace<double> workspace;
  std::vector<double> gradients;
  StoringSink<double> sink;  // for parameters without row gradients
};

// Writes a round's factors of a pass's rows.
class RowFactors::Sink final : public RowGradientSink<double> {
 public:
  explicit Sink(const std::vector<Piece>& pieces) {
    for (const Piece& piece : pieces) {
      if (!piece.by_pass) entries_[piece.place].push_back({&piece, 0});
    }
  }
  // The next pass writes to factors [rows][stride], of which vectors are 0.
  void Begin(double* factors, int64_t stride) {
    factors_ = factors;
    stride_ = stride;
    for (auto& [place, entries] : entries_) {
      for (Entry& entry : entries) entry.position = 0;
    }
  }

  void AddProduct(int parameter, int64_t first, Panels<const double> dy,
                  Panels<const double> x) override {
    for (Entry& entry : Find(parameter, first)) {
      const Piece& piece = *entry.piece;
      const NtkFactor& factor = piece.factor;
      for (int64_t row = 0; row < dy.rows; ++row) {
        double* const to = factors_ + row * stride_ + factor.offset;
        if (factor.in > 0) {
          double* const at = to + entry.position * (factor.in + factor.out);
          for (int64_t k = 0; k < factor.in; ++k) at[k] = x.At(row, k);
          for (int64_t j = 0; j < factor.out; ++j) at[factor.in + j] = dy.At(row, j);
          continue;
        }
        for (int64_t j = 0; j < factor.out / piece.columns; ++j) {
          double* const sum = to + j * piece.columns;
          const double dy_j = dy.At(row, piece.row + j);
          for (int64_t k = 0; k < piece.columns; ++k) sum[k] = std::fma(dy_j, x.At(row, k), sum[k]);
        }
      }
      ++entry.position;
    }
  }
  void AddTerm(int parameter, int64_t first, Panels<const double> a,
               Panels<const double> b) override {
    for (Entry& entry : Find(parameter, first)) {
      for (int64_t row = 0; row < a.rows; ++row) {
        double* const to = factors_ + row * stride_ + entry.piece->factor.offset;
        for (int64_t i = 0; i < entry.piece->factor.out; ++i) {
          const int64_t f = entry.piece->row + i;
          to[i] = std::fma(a.At(row, f), b.data == nullptr ? 1.0 : b.At(row, f), to[i]);
        }
      }
    }
  }

 private:
  struct Entry {
    const Piece* piece;
    int64_t position;
  };
  std::span<Entry> Find(int parameter, int64_t first) {
    const auto found = entries_.find({parameter, first});
    if (found == entries_.end()) return {};
    return found->second;
  }

  std::map<Place, std::vector<Entry>> entries_;
  double* factors_ = nullptr;
  int64_t stride_ = 0;
};

RowFactors::RowFactors(const Graph& graph, const float* weights, ThreadPool* pool,
                       int64_t row_elements)
    : graph_(WithoutDropout(graph)),
      pool_(pool),
      executor_(graph_),
      weights_(weights, weights + graph.parameters().flat_size()) {
  CHECK(CheckPerSampleGradients(graph_).ok());
  executor_.Prepare(weights_.data(), pool_);
  for (int t = 0; t < pool_->threads(); ++t) {
    threads_.push_back(std::make_unique<Thread>(executor_.workspace_plan(), graph_.parameters()));
  }
  MakeRounds(FindPieces(), row_elements);
}

RowFactors::~RowFactors() = default;

// What a pass over a row of zeros delivers, by layer.
std::vector<RowFactors::Piece> RowFactors::FindPieces() {
  const FeatureShape& features = graph_.features();
  const std::vector<float> zeros(std::max(features.table_features(), features.numeric_fields));
  const std::vector<int32_t> lengths(features.encoded_sequences());
  CountingSink counts;
  RunPass({1, zeros.data(), zeros.data(), lengths.data()}, 0, 1, 0, &counts, threads_[0].get());

  const ParameterLayout& layout = graph_.parameters();
  const std::vector<bool> with_row_gradients = WithRowGradients(graph_);
  std::vector<Piece> pieces;
  std::map<std::string, int> layer_of;
  int64_t covered = 0;
  for (int p = 0; p < static_cast<int>(layout.parameters().size()); ++p) {
    const std::string name = LayerName(layout[p].name);
    const auto [layer, is_new] = layer_of.emplace(name, static_cast<int>(layers_.size()));
    if (is_new) layers_.push_back({name, 0});
    layers_[layer->second].parameters += layout[p].size;
    const Piece whole = {
        .layer = layer->second, .place = {p, 0}, .factor = {.out = layout[p].size}};
    if (!with_row_gradients[p]) {
      pieces.push_back(whole);
      pieces.back().by_pass = true;
      covered += layout[p].size;
      continue;
    }
    const auto end = counts.found().lower_bound({p + 1, 0});
    for (auto it = counts.found().lower_bound({p, 0}); it != end; ++it) {
      const auto& [out, in, positions] = it->second;
      Piece& piece = pieces.emplace_back(whole);
      piece.place = it->first;
      covered += out * std::max<int64_t>(in, 1);
      // A pair of rows takes so many multiply-adds by the factors and by the gradients.
      if (in > 0 && positions * positions * (in + out) < in * out) {
        piece.factor = {.out = out, .in = in, .positions = positions};
      } else {
        piece.factor.out = out * std::max<int64_t>(in, 1);
        piece.columns = in;
      }
    }
  }
  CHECK_EQ(covered, layout.element_count()) << "gradients that overlap, or are missing";
  return pieces;
}

// Vectors lie before products, so that those of a layer are one vector; long ones are cut.
void RowFactors::MakeRounds(std::vector<Piece> pieces, int64_t row_elements) {
  std::ranges::stable_sort(
      pieces, {}, [](const Piece& piece) { return std::pair(piece.layer, piece.factor.in > 0); });
  const auto add = [&](Piece piece) {
    if (rounds_.empty() || rounds_.back().layer != piece.layer ||
        rounds_.back().size + piece.factor.size() > row_elements) {
      rounds_.push_back({.layer = piece.layer});
      pieces_.emplace_back();
    }
    Round& round = rounds_.back();
    piece.factor.offset = round.size;
    round.size += piece.factor.size();
    const bool continues =
        piece.factor.in == 0 && !round.factors.empty() && round.factors.back().in == 0;
    if (continues) {
      round.factors.back().out += piece.factor.out;
    } else {
      round.factors.push_back(piece.factor);
    }
    pieces_.back().push_back(piece);
  };
  for (const Piece& piece : pieces) {
    if (piece.factor.in > 0) {
      add(piece);
      continue;
    }
    const int64_t columns = std::max<int64_t>(piece.columns, 1);
    const int64_t rows = piece.factor.out / columns;
    const int64_t step = std::max<int64_t>(row_elements / columns, 1);
    for (int64_t row = 0; row < rows; row += step) {
      Piece part = piece;
      part.row = row;
      part.factor.out = std::min(step, rows - row) * columns;
      add(part);
    }
  }
}

void RowFactors::RunPass(const NtkRows& rows, int64_t first, int64_t count, int64_t output,
                         RowGradientSink<double>* sink, Thread* thread) {
  const FeatureShape& features = graph_.features();
  Pass<double> pass;
  pass.workspace = &thread->workspace;
  pass.sink = &thread->sink;
  pass.row_sink = sink;
  pass.leaves = PassLeaves(count);
  pass.training = true;
  pass.numeric = rows.numeric + first * features.numeric_fields;
  pass.lengths = rows.lengths + first * features.encoded_sequences();
  const Panels<double> e = executor_.Embeddings(pass);
  const int64_t table_features = features.table_features();
  for (int64_t row = 0; row < count; ++row) {
    const float* const from = rows.table_features + (first + row) * table_features;
    for (int64_t f = 0; f < table_features; ++f) {
      e.At(row, features.numeric_features() + f) = from[f];
    }
  }
  executor_.Forward(pass);
  const Panels<double> dlogits = executor_.LogitGradients(pass);
  for (int64_t row = 0; row < dlogits.panels() * kPanelRows; ++row) {
    for (int64_t o = 0; o < dlogits.features; ++o) {
      dlogits.At(row, o) = row < count && o == output ? 1 : 0;
    }
  }
  executor_.Backward(pass);
}

void RowFactors::Compute(const NtkRows& rows, int64_t output, int round, double* factors,
                         double* deltas) {
  const FeatureShape& features = graph_.features();
  const int64_t stride = rounds_[round].size;
  const std::vector<Piece>& pieces = pieces_[round];
  const bool by_pass = std::ranges::any_of(pieces, &Piece::by_pass);
  pool_->ParallelFor(rows.rows, kRows, [&](int t, int64_t begin, int64_t end) {
    Thread& thread = *threads_[t];
    Sink sink(pieces);
    for (int64_t first = begin; first < end; first += kRows) {
      const int64_t count = std::min(kRows, end - first);
      double* const to = factors + first * stride;
      std::fill(to, to + count * stride, 0.0);
      sink.Begin(to, stride);
      RunPass(rows, first, count, output, &sink, &thread);
      if (deltas == nullptr) continue;
      Pass<double> pass;
      pass.workspace = &thread.workspace;
      pass.leaves = PassLeaves(count);
      const Panels<const double> de = executor_.EmbeddingGradients(pass);
      for (int64_t row = 0; row < count; ++row) {
        for (int64_t f = 0; f < features.table_features(); ++f) {
          deltas[(first + row) * features.table_features() + f] =
              de.At(row, features.numeric_features() + f);
        }
      }
    }
    for (int64_t row = begin; by_pass && row < end; ++row) {
      RunPass(rows, row, 1, output, /*sink=*/nullptr, &thread);
      for (const Piece& piece : pieces) {
        if (!piece.by_pass) continue;
        const double* const from =
            thread.gradients.data() + graph_.parameters()[piece.place.first].offset + piece.row;
        std::copy_n(from, piece.factor.out, factors + row * stride + piece.factor.offset);
      }
    }
  });
}

}  // namespace elastor
