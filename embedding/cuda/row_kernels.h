#ifndef ELASTOR_EMBEDDING_CUDA_ROW_KERNELS_H_
#define ELASTOR_EMBEDDING_CUDA_ROW_KERNELS_H_

#include <cstdint>

#include "core/cuda/runtime.h"
#include "embedding/cuda/key_format.h"
#include "embedding/cuda/table_view.h"

namespace elastor::cuda {

// Kernels that find, make and set rows. Work goes to `stream`; all pointers are into device memory;
// `tables` has the views of all tables.

// Numbers of owned keys whose rows did not exist, in any order.
struct KeyList {
  uint32_t* keys = nullptr;
  int32_t* count = nullptr;  // number of entries; the caller sets it to 0 before
};

// Sets rows[j] to the address of owned key j's row. Rows that do not exist yet are marked present
// and listed; their values are arbitrary until InitialiseRows.
void ClaimRows(Stream& stream, const TableView* tables, const OwnedKeys& owned, float** rows,
               KeyList created);
// Sets rows[j] to the address of owned key j's row, or to null if there is no such row; those keys
// are listed.
void FindRows(Stream& stream, const TableView* tables, const OwnedKeys& owned, float** rows,
              KeyList missing);
// Writes the initial weights and slots of the listed rows.
void InitialiseRows(Stream& stream, const TableView* tables, const OwnedKeys& owned,
                    KeyList created, float* const* rows);
// Writes the initial weights of the `count` listed rows to memory, `stride` elements apart, and
// points their entries of `rows` there.
void MakeForgottenRows(Stream& stream, const TableView* tables, const OwnedKeys& owned,
                       KeyList missing, int64_t count, float* memory, int64_t stride, float** rows);

// Makes all rows of a table, with initial weights and slots.
void CreateAllRows(Stream& stream, const TableView& table);

// Sets the mark of every owned key's row; the marks of table t, a bit a row, begin at
// marks + first_word[t].
void MarkRows(Stream& stream, const TableView* tables, const OwnedKeys& owned,
              const int64_t* first_word, uint32_t* marks);

// A row that the host sets. Its values are weights, then slots unless only_weights.
struct RowToSet {
  int32_t table;
  int32_t only_weights;  // nonzero: slots stay as they are, or initial in a new row
  int64_t index;
  int64_t at;  // offset of the row's values in `values`, in elements
};
// Writes the rows and marks them present.
void SetRows(Stream& stream, const TableView* tables, const RowToSet* rows, int64_t count,
             const float* values);

}  // namespace elastor::cuda

#endif  // ELASTOR_EMBEDDING_CUDA_ROW_KERNELS_H_
