#ifndef ELASTOR_TRAINER_SCORE_KEYED_ROWS_H_
#define ELASTOR_TRAINER_SCORE_KEYED_ROWS_H_

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace elastor {

// The rows of a keyed table in a scorer, found by open addressing. It is made so that versions of a
// model can share it while an update writes a delta into it:
//
// Copies share their rows. While one thread changes a copy, others may find keys in the other
// copies. What they find of a key that is changed, or was changed since their copy was made, has no
// meaning; every other key is found as before. Nothing locks: an update sets one word of the index
// a key, a removed key leaves a mark in its place, and a changed copy whose index is full gets a
// new one, while the other copies keep theirs.
class KeyedRows {
 public:
  // width: elements of a row.
  explicit KeyedRows(int64_t width);
  ~KeyedRows();
  KeyedRows(const KeyedRows& other);
  KeyedRows& operator=(const KeyedRows& other) = delete;

  // Sets rows[i] to the row of keys[i], or to null. A row's address holds until it is removed.
  void Find(std::span<const int64_t> keys, float** rows) const;
  int64_t size() const;
  // Returns the keys, in no order that has a meaning.
  std::vector<int64_t> Keys() const;

  // Takes the memory for so many new rows and removals; they then take none.
  void Reserve(int64_t rows, int64_t removals);
  // Returns the row of a key for the caller to fill in; a new one has arbitrary values.
  float* Claim(int64_t key);
  // Removes the row of a key, if it exists; it is used again for another key.
  void Remove(int64_t key);

 private:
  struct Rows;
  struct Index;

  float* FindAt(uint64_t place, int64_t key) const;
  // Gives this copy an index of its own for so many keys.
  void Rebuild(uint64_t keys);

  std::shared_ptr<Rows> rows_;
  std::shared_ptr<Index> index_;
};

}  // namespace elastor

#endif  // ELASTOR_TRAINER_SCORE_KEYED_ROWS_H_
