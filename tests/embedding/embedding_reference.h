#ifndef ELASTOR_TESTS_EMBEDDING_EMBEDDING_REFERENCE_H_
#define ELASTOR_TESTS_EMBEDDING_EMBEDDING_REFERENCE_H_

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "core/base/digest.h"
#include "core/base/exact_sum.h"
#include "core/base/leaves.h"
#include "core/base/random.h"
#include "embedding/sparse_optimizer.h"
#include "embedding/table.h"
#include "embedding/wire_format.h"

namespace elastor {

// One global batch: bags[row][field] lists ids.
struct GlobalBatch {
  std::vector<std::vector<std::vector<int64_t>>> bags;
  int64_t rows() const { return static_cast<int64_t>(bags.size()); }
};

// A vector as it is after it has travelled, by the definition of embedding/wire_format.h.
template <typename T>
std::vector<T> Travelled(WireFormat format, std::vector<T> vector) {
  double largest = 0;
  for (const T x : vector) largest = std::max(largest, std::abs(static_cast<double>(x)));
  if (format == WireFormat::kFloat32 || largest == 0) return vector;
  const int last = std::ilogb(largest) - 10;
  largest = std::ldexp(std::nearbyint(std::ldexp(largest, -last)), last);
  for (T& x : vector) {
    // The exponent of the number's last place.
    const int place = format == WireFormat::kBFloat16
                          ? std::ilogb(x) - 7
                          : std::max(std::ilogb(x) - 10, std::ilogb(largest) - 24);
    const double rounded =
        x == 0 ? 0 : std::ldexp(std::nearbyint(std::ldexp(static_cast<double>(x), -place)), place);
    x = std::abs(rounded) < std::numeric_limits<float>::min() ? 0 : static_cast<T>(rounded);
  }
  return vector;
}

// Embedding tables in one map, one thread, by the definitions of docs/inside/design.md: what
// ShardedEmbedding must equal bit for bit.
template <typename T>
class EmbeddingReference {
 public:
  using Key = std::pair<int, int64_t>;  // table, key
  struct Row {
    std::vector<T> weights, slots;
  };

  EmbeddingReference(std::vector<TableSpec> tables, std::vector<FieldSpec> fields,
                     SparseOptimizerOptions options, uint64_t seed, int64_t leaves,
                     WireFormats wire = {})
      : tables_(tables),
        fields_(fields),
        options_(options),
        seed_(seed),
        leaves_(leaves),
        wire_(wire) {
    if (options.rule.kind != OptimizerKind::kDenseAdam) return;
    for (size_t t = 0; t < tables.size(); ++t) {
      for (int64_t key = 0; key < tables[t].rows; ++key) Create({static_cast<int>(t), key});
    }
  }

  // Pooled activations, [row][feature].
  std::vector<std::vector<T>> Pool(const GlobalBatch& batch, bool create) {
    std::vector<std::vector<T>> e(batch.rows());
    for (int64_t row = 0; row < batch.rows(); ++row) {
      for (size_t f = 0; f < fields_.size(); ++f) {
        const std::vector<int64_t>& bag = batch.bags[row][f];
        std::vector<T> pooled(tables_[fields_[f].table].width, T{0});
        for (size_t p = 0; p < bag.size(); ++p) {
          const Key key{fields_[f].table, bag[p]};
          if (create) Create(key);
          const std::vector<T> weights =
              Travelled(create ? wire_.rows : WireFormat::kFloat32,
                        rows_.count(key) ? rows_[key].weights : Initial(key));
          for (size_t i = 0; i < pooled.size(); ++i) {
            pooled[i] = p == 0 ? weights[i] : pooled[i] + weights[i];
          }
        }
        if (fields_[f].pooling == Pooling::kMean && bag.size() > 1) {
          for (T& value : pooled) value *= T{1} / static_cast<T>(bag.size());
        }
        e[row].insert(e[row].end(), pooled.begin(), pooled.end());
      }
    }
    return e;
  }

  // de: [row][feature]. Keeps g (with L2) of every row that Update will change.
  void TakeGradients(const GlobalBatch& batch, const std::vector<std::vector<T>>& de) {
    std::map<Key, std::vector<std::vector<std::vector<T>>>> occurrences;  // [leaf][occurrence]
    for (int64_t leaf = 0; leaf < leaves_; ++leaf) {
      const Range rows = RowsOfLeaf(leaf, leaves_, batch.rows());
      for (int64_t row = rows.begin; row < rows.end; ++row) {
        size_t feature = 0;
        for (size_t f = 0; f < fields_.size(); ++f) {
          const std::vector<int64_t>& bag = batch.bags[row][f];
          std::vector<T> d(de[row].begin() + feature,
                           de[row].begin() + feature + tables_[fields_[f].table].width);
          feature += d.size();
          if (fields_[f].pooling == Pooling::kMean && bag.size() > 1) {
            for (T& value : d) value *= T{1} / static_cast<T>(bag.size());
          }
          for (int64_t id : bag) {
            auto& lists = occurrences[{fields_[f].table, id}];
            lists.resize(leaves_);
            lists[leaf].push_back(d);
          }
        }
      }
    }
    gradients_.clear();
    for (const auto& [key, lists] : occurrences) gradients_[key] = *Node(lists, 0, leaves_);
    if (options_.rule.kind == OptimizerKind::kDenseAdam) {
      for (const auto& [key, row] : rows_) {
        gradients_.emplace(key, std::vector<T>(row.weights.size(), T{0}));
      }
    }
    AddL2();
  }

  const ExactSum& squared_norm() const { return squared_norm_; }
  const ExactSum& squared_weights() const { return squared_weights_; }

  void Update(double scale, double learning_rate, int64_t step) {
    double power1 = 1, power2 = 1;
    for (int64_t s = 0; s < step; ++s) power1 *= options_.rule.beta1;
    for (int64_t s = 0; s < step; ++s) power2 *= options_.rule.beta2;
    for (auto& [key, g] : gradients_) {
      for (T& value : g) value = static_cast<T>(scale) * value;
      UpdateRow(g, static_cast<T>(learning_rate), learning_rate / (1 - power1),
                1 / std::sqrt(1 - power2), &rows_[key]);
    }
  }

  const std::map<Key, Row>& rows() const { return rows_; }

  Digest StateDigest() const {
    Digest digest;
    for (const auto& [key, row] : rows_) {
      std::vector<T> record = row.weights;
      record.insert(record.end(), row.slots.begin(), row.slots.end());
      digest.Add("embedding/" + tables_[key.first].name, key.second, record.data(),
                 record.size() * sizeof(T));
    }
    return digest;
  }

 private:
  std::vector<T> Initial(const Key& key) const {
    const TableSpec& table = tables_[key.first];
    std::vector<T> weights(table.width);
    FillNormal(MakeRandomKey(seed_, RandomPurpose::kRowInit, HashName(table.name)), key.second,
               table.init_stddev, table.width, weights.data());
    return weights;
  }

  void Create(const Key& key) {
    if (rows_.count(key)) return;
    const bool adagrad = options_.rule.kind == OptimizerKind::kAdagrad ||
                         options_.rule.kind == OptimizerKind::kRowWiseAdagrad;
    const int64_t slots = SlotElements(options_.rule.kind, tables_[key.first].width);
    rows_[key] = {
        Initial(key),
        std::vector<T>(slots, adagrad ? static_cast<T>(options_.rule.initial_accumulator) : T{0})};
  }

  static std::vector<T> Plus(std::vector<T> a, const std::vector<T>& b) {
    for (size_t i = 0; i < a.size(); ++i) a[i] = a[i] + b[i];
    return a;
  }

  std::vector<T> Leaf(const std::vector<std::vector<T>>& list) {
    std::vector<T> total(list[0].size(), T{0});
    for (size_t begin = 0; begin < list.size(); begin += 32) {
      std::vector<T> chunk(total.size(), T{0});
      for (size_t i = begin; i < std::min(list.size(), begin + 32); ++i)
        chunk = Plus(chunk, list[i]);
      total = Plus(total, chunk);
    }
    return Travelled(wire_.gradients, total);
  }

  std::optional<std::vector<T>> Node(const std::vector<std::vector<std::vector<T>>>& lists,
                                     int64_t begin, int64_t end) {
    if (end - begin == 1) {
      if (lists[begin].empty()) return std::nullopt;
      return Leaf(lists[begin]);
    }
    const auto left = Node(lists, begin, (begin + end) / 2);
    const auto right = Node(lists, (begin + end) / 2, end);
    if (left && right) return Travelled(wire_.gradients, Plus(*left, *right));
    return left ? left : right;
  }

  static double Squares(const std::vector<T>& x) {
    double lane[4] = {0, 0, 0, 0};
    for (size_t i = 0; i < x.size(); ++i) {
      lane[i % 4] += static_cast<double>(x[i]) * static_cast<double>(x[i]);
    }
    return (lane[0] + lane[1]) + (lane[2] + lane[3]);
  }

  void AddL2() {
    squared_norm_ = squared_weights_ = ExactSum();
    for (auto& [key, g] : gradients_) {
      const std::vector<T>& w = rows_[key].weights;
      if (options_.l2 > 0) {
        for (size_t i = 0; i < g.size(); ++i) g[i] = g[i] + static_cast<T>(options_.l2) * w[i];
        squared_weights_.Add(Squares(w));
      }
      squared_norm_.Add(Squares(g));
    }
  }

  void UpdateRow(const std::vector<T>& g, T lr, double adam_rate, double adam_root, Row* row) {
    const T eps = static_cast<T>(options_.rule.epsilon);
    const size_t k = g.size();
    std::vector<T>& w = row->weights;
    std::vector<T>& s = row->slots;
    switch (options_.rule.kind) {
      case OptimizerKind::kSgd:
        for (size_t i = 0; i < k; ++i) w[i] = w[i] - lr * g[i];
        break;
      case OptimizerKind::kAdagrad:
        for (size_t i = 0; i < k; ++i) {
          s[i] = s[i] + g[i] * g[i];
          w[i] = w[i] - lr * g[i] / (std::sqrt(s[i]) + eps);
        }
        break;
      case OptimizerKind::kRowWiseAdagrad: {
        s[0] = s[0] + static_cast<T>(Squares(g) / static_cast<double>(k));
        for (size_t i = 0; i < k; ++i) w[i] = w[i] - lr / (std::sqrt(s[0]) + eps) * g[i];
        break;
      }
      case OptimizerKind::kLazyAdam:
      case OptimizerKind::kDenseAdam: {
        const T b1 = static_cast<T>(options_.rule.beta1),
                c1 = static_cast<T>(1 - options_.rule.beta1);
        const T b2 = static_cast<T>(options_.rule.beta2),
                c2 = static_cast<T>(1 - options_.rule.beta2);
        const T rate = static_cast<T>(adam_rate), root = static_cast<T>(adam_root);
        for (size_t i = 0; i < k; ++i) {
          s[i] = b1 * s[i] + c1 * g[i];
          s[k + i] = b2 * s[k + i] + c2 * (g[i] * g[i]);
          w[i] = w[i] - rate * s[i] / (std::sqrt(s[k + i]) * root + eps);
        }
        break;
      }
    }
  }

  std::vector<TableSpec> tables_;
  std::vector<FieldSpec> fields_;
  SparseOptimizerOptions options_;
  uint64_t seed_;
  int64_t leaves_;
  WireFormats wire_;
  std::map<Key, Row> rows_;
  std::map<Key, std::vector<T>> gradients_;
  ExactSum squared_norm_, squared_weights_;
};

}  // namespace elastor

#endif  // ELASTOR_TESTS_EMBEDDING_EMBEDDING_REFERENCE_H_
