#ifndef ELASTOR_EMBEDDING_ROW_STORE_H_
#define ELASTOR_EMBEDDING_ROW_STORE_H_

#include <bit>
#include <cstdint>
#include <functional>
#include <span>

#include "core/base/leaves.h"

namespace elastor {

// Shape of a stored row: weights, then optimizer slots, then padding.
struct RowShape {
  int64_t width = 0;
  int64_t slots = 0;  // elements
  int64_t elements() const { return width + slots; }
};

// Bytes from one row to the next: whole cache lines, or a power of two within one line, so that a
// row never touches more lines than it must.
inline int64_t RowBytes(const RowShape& shape, int64_t element_bytes) {
  constexpr int64_t kLine = 64;
  const int64_t bytes = shape.elements() * element_bytes;
  if (bytes <= kLine) return static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(bytes)));
  return (bytes + kLine - 1) / kLine * kLine;
}

// The rows of one table on one rank, by 64-bit key. A row comes into being, with its initial
// values, when it is first created; its address holds until the store is destroyed.
// Thread-safety: calls for different keys may run together; visits exclude creation.
template <typename T>
class RowStore {
 public:
  virtual ~RowStore() = default;

  // rows[i] = the row of keys[i], created when it is not there yet.
  virtual void FindOrCreate(std::span<const int64_t> keys, T** rows) = 0;
  // rows[i] = the row of keys[i], nullptr when it is not there.
  virtual void Find(std::span<const int64_t> keys, T** rows) const = 0;
  // The initial values of a row (weights and slots), without creating it.
  virtual void MakeInitial(int64_t key, T* row) const = 0;
  // The row of a key, for the caller to fill in: *created says that its values are arbitrary.
  virtual T* Claim(int64_t key, bool* created) = 0;
  // No row is there any more; each is made anew when it is next created.
  virtual void Clear() = 0;

  // A mark a row, for telling rows apart during ForEachBlock.
  virtual void SetMark(int64_t key, bool marked) = 0;

  enum class Visit { kAll, kUnmarked };
  // Visits the rows of part `part` of `parts` in blocks: keys[i] has row rows[i].
  virtual void ForEachBlock(
      Visit visit, int part, int parts,
      const std::function<void(std::span<const int64_t> keys, T* const* rows)>& fn) const = 0;
  // Adds the rows of part `part` of `parts` to counts[partition of the key].
  virtual void CountRows(int part, int parts, int64_t* counts) const = 0;
  // Visits the rows of the partitions [begin, end) in blocks, keys ascending.
  virtual void ForEachOfPartitions(
      const Range& partitions,
      const std::function<void(std::span<const int64_t> keys, T* const* rows)>& fn) const = 0;

  virtual int64_t memory_bytes() const = 0;  // when every row exists
};

}  // namespace elastor

#endif  // ELASTOR_EMBEDDING_ROW_STORE_H_
