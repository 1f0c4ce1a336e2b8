#ifndef ELASTOR_EMBEDDING_CUDA_ROW_CACHE_H_
#define ELASTOR_EMBEDDING_CUDA_ROW_CACHE_H_

#include <cstdint>

#include "core/cuda/runtime.h"
#include "embedding/cuda/key_format.h"
#include "embedding/cuda/row_kernels.h"
#include "embedding/cuda/table_view.h"

namespace elastor::cuda {

// Lines in device memory for hot rows of tables that lie in the host's memory: a row maps to a set
// of eight lines, of which the one used longest ago is written back to make room. A batch never
// evicts its own rows, so its pointers hold until the next batch. A row that finds no line is used
// where it lies. A row's place changes none of its bits.
//
// A tag: table << 48 | index; stamps: the last lookup that used the line.
class RowCache {
 public:
  // Makes as many sets as fit in `bytes`, possibly none. A line has `stride` elements.
  RowCache(Stream* stream, int64_t bytes, int64_t stride);

  bool empty() const { return lines_.sets == 0; }
  // Copies the rows of owned keys that lie in the host's memory into lines, and points rows[j]
  // there.
  void Fetch(const TableView* tables, const OwnedKeys& owned, float** rows);
  // Writes all lines back to their rows in the host's memory; kDrop also empties the lines.
  enum class After { kKeep, kDrop };
  void WriteBack(const TableView* tables, After after);

  // The lines as kernels see them.
  struct Lines {
    float* rows = nullptr;
    int64_t* tags = nullptr;  // -1: empty
    int32_t* stamps = nullptr;
    int64_t sets = 0;
    int64_t stride = 0;
  };

 private:
  Stream* stream_;
  Lines lines_;
  Buffer<float> rows_;
  Buffer<int64_t> tags_;
  Buffer<int32_t> stamps_;
  Buffer<uint32_t> misses_;
  Buffer<int32_t> count_;
  int32_t lookup_ = 0;
};

}  // namespace elastor::cuda

#endif  // ELASTOR_EMBEDDING_CUDA_ROW_CACHE_H_
