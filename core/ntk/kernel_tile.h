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

// The number of rows along each side of a tile of the kernel.
inline constexpr int64_t kNtkTile = 128;

// A row of an embedding table, and the gradient with respect to it of a model row.
struct NtkTableRow {
  int64_t table = 0;
  int64_t id = 0;
  auto operator<=>(const NtkTableRow&) const = default;
};
// The gradients of the tables' rows that model rows use, ascending by table and id without
// repetition: row i's gradients are [begin[i], begin[i + 1]), of `width` elements each.
struct NtkTableGradients {
  int64_t width = 0;
  std::vector<int64_t> begin = {0};
  std::vector<NtkTableRow> keys;
  std::vector<double> values;
};

// Sums up a tile of the kernel, the rows j x columns i of its lower triangle's blocks. Every entry
// is summed by chains of FMAs in one order: by call, then by factor. So it has the same bits in any
// tile, on any thread or rank, and on every CPU.
class KernelTile {
 public:
  KernelTile() : values_(PanelElements(kNtkTile, kNtkTile)) {}

  // Starts the tile of rows j and columns i at 0. Each range has at most kNtkTile rows.
  void Begin(const Range& rows_j, const Range& rows_i);

  // Adds <gradient of row j, gradient of row i> over the factors. all: the factors of every row,
  // `stride` numbers a row.
  void Add(std::span<const NtkFactor> factors, const double* all, int64_t stride);
  // Adds the same for the tables' gradients.
  void Add(const NtkTableGradients& gradients);

  // Returns the tile, [rows j, rows i].
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
