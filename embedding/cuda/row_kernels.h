#ifndef ELASTOR_EMBEDDING_CUDA_ROW_KERNELS_H_
#define ELASTOR_EMBEDDING_CUDA_ROW_KERNELS_H_

#include <cstdint>

#include "core/cuda/runtime.h"
#include "embedding/cuda/key_format.h"
#include "embedding/cuda/table_view.h"

namespace elastor::cuda {

// Rows by owned key, on `stream`; all pointers into device memory. `tables`: by number.

// Numbers of owned keys whose rows were not there, in any order.
struct KeyList {
  uint32_t* keys = nullptr;
  int32_t* count = nullptr;  // 0 before
};

// rows[j] = where the row of owned key j lies; rows not there yet are marked present and listed.
void ClaimRows(Stream& stream, const TableView* tables, const OwnedKeys& owned, float** rows,
               KeyList created);
// The same without marking: rows[j] = null where there is none.
void FindRows(Stream& stream, const TableView* tables, const OwnedKeys& owned, float** rows,
              KeyList missing);
// Initial values (weights and slots) of the listed rows.
void InitialiseRows(Stream& stream, const TableView* tables, const OwnedKeys& owned,
                    KeyList created, float* const* rows);
// Initial weights of the `count` listed rows, in row i of memory; rows[key] points there.
void MakeForgottenRows(Stream& stream, const TableView* tables, const OwnedKeys& owned,
                       KeyList missing, int64_t count, float* memory, int64_t stride, float** rows);

// Marks all rows of a table present, with initial values.
void CreateAllRows(Stream& stream, const TableView& table);

// marks |= the bits of the owned keys' rows; table t's bits begin at marks + first_word[t].
void MarkRows(Stream& stream, const TableView* tables, const OwnedKeys& owned,
              const int64_t* first_word, uint32_t* marks);

// Rows as they were set: weights, then slots unless only_weights; marked present.
struct RowToSet {
  int32_t table;
  int32_t only_weights;  // slots stay, or are initial in a new row
  int64_t index;
  int64_t at;  // elements, in values
};
void SetRows(Stream& stream, const TableView* tables, const RowToSet* rows, int64_t count,
             const float* values);

}  // namespace elastor::cuda

#endif  // ELASTOR_EMBEDDING_CUDA_ROW_KERNELS_H_
