#ifndef ELASTOR_TRAINER_SCORE_ROW_LAYER_H_
#define ELASTOR_TRAINER_SCORE_ROW_LAYER_H_

#include <cstdint>
#include <span>
#include <vector>

namespace elastor {

// What a delta changes in one table: rows that stand in the place of the table's, and keys whose
// rows are gone. Thread-safe once it is filled.
class RowLayer {
 public:
  // rows, gone: so many Adds and AddGones will come.
  RowLayer(int64_t rows, int64_t gone, int64_t width);

  // Adds a row, whose values the caller fills in; null if the key was added before.
  float* Add(int64_t key);
  // Adds a key that has no row any more; false if it was added before.
  bool AddGone(int64_t key);
  // Sets rows[i] to the row of keys[i] where there is one, and to null where the key is gone.
  // Leaves the others.
  void Replace(std::span<const int64_t> keys, float** rows) const;

  std::span<const int64_t> keys() const { return keys_; }
  std::span<const int64_t> gone() const { return gone_; }
  // Returns the row of keys()[i].
  const float* row(size_t i) const { return values_.data() + i * width_; }

 private:
  // The place of a key in slots_, or of the empty slot where it would be.
  size_t PlaceOf(int64_t key) const;
  int64_t KeyAt(uint32_t number) const {
    return number < most_rows_ ? keys_[number] : gone_[number - most_rows_];
  }

  const int64_t width_;
  const uint32_t most_rows_;
  int shift_;
  // A key's place in keys_; most_rows_ and its place in gone_; or kEmpty.
  std::vector<uint32_t> slots_;
  std::vector<int64_t> keys_, gone_;
  mutable std::vector<float> values_;  // in the order of keys_
};

}  // namespace elastor

#endif  // ELASTOR_TRAINER_SCORE_ROW_LAYER_H_
