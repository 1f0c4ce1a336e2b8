#include "core/ntk/row_factors.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "core/base/log.h"
#include "core/graph/per_sample.h"

namespace elastor {
namespace {

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

}  // namespace

struct RowFactors::Piece {
  int layer = 0;
  Place place;
  int64_t row = 0;       // of a vector that is a part of a map's gradient: the first of its rows
  int64_t columns = 0;   // and their length; 0: the vector comes as terms
  bool by_pass = false;  // a vector that a pass of one row leaves in the parameter's gradient
  NtkFactor factor;
};

// Takes the sums that a pass delivers beside row gradients.
struct RowFactors::Thread {
  explicit Thread(const ParameterLayout& layout) : gradients(layout.flat_size()), sink(&layout) {
    sink.Begin(gradients.data());
  }
  std::vector<double> gradients;
  StoringSink<double> sink;
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
    : passes_(graph, weights, pool) {
  CHECK(CheckPerSampleGradients(graph).ok());
  for (int t = 0; t < passes_.threads(); ++t) {
    threads_.push_back(std::make_unique<Thread>(graph.parameters()));
  }
  MakeRounds(FindPieces(), row_elements);
}

RowFactors::~RowFactors() = default;

// What a pass over a row of zeros delivers, by layer.
std::vector<RowFactors::Piece> RowFactors::FindPieces() {
  const FeatureShape& features = passes_.graph().features();
  const std::vector<float> zeros(std::max(features.table_features(), features.numeric_fields));
  const std::vector<int32_t> lengths(features.encoded_sequences());
  CountingSink counts;
  passes_.Run({1, zeros.data(), zeros.data(), lengths.data()}, 0, 1,
              {.sink = &threads_[0]->sink, .row_sink = &counts}, /*thread=*/0);

  const ParameterLayout& layout = passes_.graph().parameters();
  const std::vector<bool> with_row_gradients = WithRowGradients(passes_.graph());
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

void RowFactors::Compute(const NtkRows& rows, int64_t output, int round, double* factors,
                         double* deltas) {
  const int64_t stride = rounds_[round].size;
  const std::vector<Piece>& pieces = pieces_[round];
  const bool by_pass = std::ranges::any_of(pieces, &Piece::by_pass);
  std::vector<Sink> sinks(passes_.threads(), Sink(pieces));
  passes_.ForEachPass(rows.rows, [&](int t, int64_t first, int64_t count) {
    Thread& thread = *threads_[t];
    double* const to = factors + first * stride;
    std::fill(to, to + count * stride, 0.0);
    sinks[t].Begin(to, stride);
    passes_.Run(rows, first, count,
                {.output = output, .sink = &thread.sink, .row_sink = &sinks[t], .deltas = deltas},
                t);
    for (int64_t row = first; by_pass && row < first + count; ++row) {
      passes_.Run(rows, row, 1, {.output = output, .sink = &thread.sink}, t);
      for (const Piece& piece : pieces) {
        if (!piece.by_pass) continue;
        const double* const from = thread.gradients.data() +
                                   passes_.graph().parameters()[piece.place.first].offset +
                                   piece.row;
        std::copy_n(from, piece.factor.out, factors + row * stride + piece.factor.offset);
      }
    }
  });
}

}  // namespace elastor
