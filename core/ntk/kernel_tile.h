#ifndef ELASTOR_CORE_NTK_KERNEL_TILE_H_
#define ELASTOR_CORE_NTK_KERNEL_TILE_H_

#include <cstdint>
#include <span>
#include <vector>

#include "core/base/leaves.h"
#include "core/kernels/matmul.h"
#include "core/ntk/row_factors.h"
#include "core/tensor/panels.h"

namespace elastor {

// Rows of a tile of the kernel along each side.
inline constexpr int64_t kNtkTile = 128;

// A row of an embedding table, and a model row's gradient of it.
struct NtkTableRow {
  int64_t table = 0;
  int64_t id = 0;
  auto operator<=>(const NtkTableRow&) const = default;
};
// The gradients of the tables' rows that model rows use, ascending by table and id without
// repetition: those of row i are [begin[i], begin[i + 1]), of `width` numbers each.
struct NtkTableGradients {
  int64_t width = 0;
  std::vector<int64_t> begin = {0};
  std::vector<NtkTableRow> keys;
  std::vector<double> values;
};

// Sums up a tile of the kernel, the rows j x columns i of its lower triangle's blocks. Every entry
// is summed in one order, that of the calls and within each that of the factors, by chains of FMAs:
// it has the same bits in any tile, on any thread or rank, and on every CPU.
class KernelTile {
 public:
  KernelTile() : values_(PanelElements(kNtkTile, kNtkTile)) {}

  // The tile of rows j and columns i, of at most kNtkTile rows each, begins at 0.
  void Begin(const Range& rows_j, const Range& rows_i);

  // += <gradient of row j, gradient of row i> over the factors; all: those of every row, `stride`
  // numbers a row.
  void Add(std::span<const NtkFactor> factors, const double* all, int64_t stride);
  // += the same of the tables.
  void Add(const NtkTableGradients& gradients);

  // [rows j, rows i].
  Panels<const double> values() const { return View(values_.data()); }

 private:
  template <typename T>
  Panels<T> View(T* data) const {
    return {data, rows_j_.size(), rows_i_.size(), PanelStride(kNtkTile)};
  }
  // y = epilogue(<row j, row i>) over `width` numbers, which begin at at_j and at_i in row 0.
  void Gram(const double* at_j, const double* at_i, int64_t stride, int64_t width,
            const Epilogue<double>& epilogue, Panels<double> y);

  Range rows_j_;
  Range rows_i_;
  std::vector<double> values_;
  std::vector<double> inputs_;  // <x, x>, while <dy, dy> is computed
  std::vector<double> panels_;
  PackedMatrix<double> packed_;
};

}  // namespace elastor

#endif  // ELASTOR_CORE_NTK_KERNEL_TILE_H_
