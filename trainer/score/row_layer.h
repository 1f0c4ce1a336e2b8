#ifndef ELASTOR_TRAINER_SCORE_ROW_LAYER_H_
#define ELASTOR_TRAINER_SCORE_ROW_LAYER_H_

#include <cstdint>
#include <span>
#include <vector>

namespace elastor {

// Rows of one table that stand in the place of a store's. Thread-safe once it is filled.
class RowLayer {
 public:
  // rows: so many Adds will come.
  RowLayer(int64_t rows, int64_t width);

  // Adds a row, whose values the caller fills in; null if the key has one.
  float* Add(int64_t key);
  // Sets rows[i] to the row of keys[i] where there is one, and leaves the others.
  void Replace(std::span<const int64_t> keys, float** rows) const;
  // Returns the row of a key, or null.
  float* Find(int64_t key) const;

  std::span<const int64_t> keys() const { return keys_; }

 private:
  // The place of a key in slots_, or of the empty slot where it would be.
  size_t PlaceOf(int64_t key) const;

  const int64_t width_;
  int shift_;
  std::vector<uint32_t> slots_;  // number of the key, or kEmpty
  std::vector<int64_t> keys_;
  mutable std::vector<float> values_;  // in the order of keys_
};

}  // namespace elastor

#endif  // ELASTOR_TRAINER_SCORE_ROW_LAYER_H_
