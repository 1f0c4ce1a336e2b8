#include <algorithm>
#include <span>
#include <type_traits>
#include <vector>

#include "core/base/leaves.h"
#include "core/base/log.h"
#include "core/kernels/cpu/bfloat16.h"
#include "core/kernels/cpu/kernel_table.h"
#include "core/kernels/cpu/square.h"
#include "core/kernels/matmul.h"

namespace elastor {
namespace {

// Cuts `rows` into the fewest tiles of at most `limit` rows, heights as equal as can be (26 is
// 6+5+5+5+5): a short last tile would not have enough FMA chains to hide their latency.
template <typename T>
void CutIntoTiles(int64_t rows, int64_t limit, int64_t elements_per_row,
                  std::vector<typename PackedMatrix<T>::Tile>& tiles) {
  tiles.clear();
  const int64_t count = (rows + limit - 1) / limit;
  int64_t row = 0;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t height = rows / count + (i < rows % count ? 1 : 0);
    tiles.push_back({row, height, row * elements_per_row});
    row += height;
  }
}

// out[k * pitch + i] = from[i * row_stride + k * column_stride] for up to kSquare rows i: by
// squares where a row lies in one piece, else k by k where a column does. Returns the first k that
// is left to do.
int64_t PackRowsOfSquare(const MatrixView<float>& m, int64_t row, int64_t height, int64_t pitch,
                         float* out) {
  const float* const from = m.data + row * m.row_stride;
  int64_t k = 0;
  if (m.column_stride == 1) {
    for (; k + kSquare <= m.columns; k += kSquare) {
      Square square;
      for (int64_t i = 0; i < kSquare; ++i) {
        square[i] = LoadSquareRow(from + std::min(i, height - 1) * m.row_stride + k);
      }
      square = Transposed(square);
      for (int64_t i = 0; i < kSquare; ++i) SaveFirst(out + (k + i) * pitch, height, square[i]);
    }
  } else if (m.row_stride == 1 && row + kSquare <= m.rows) {
    for (; k < m.columns; ++k) {
      SaveFirst(out + k * pitch, height, LoadSquareRow(from + k * m.column_stride));
    }
  }
  return k;
}
int64_t PackRowsOfSquare(const MatrixView<double>&, int64_t, int64_t, int64_t, double*) {
  return 0;
}

// Writes rows [row, row + height) of `m` to columns of a k-major tile `pitch` wide.
template <typename T>
void PackRows(const MatrixView<T>& m, int64_t row, int64_t height, int64_t pitch, T* out) {
  const int64_t rows = std::min<int64_t>(kSquare, height);
  for (int64_t begin = 0; begin < height; begin += kSquare) {
    // The last rows may be some that are packed already: whole squares are faster.
    const int64_t first = std::min(begin, height - rows);
    const int64_t done = PackRowsOfSquare(m, row + first, rows, pitch, out + first);
    for (int64_t i = first; i < first + rows; ++i) {
      const T* from = m.data + (row + i) * m.row_stride;
      for (int64_t k = done; k < m.columns; ++k) out[k * pitch + i] = from[k * m.column_stride];
    }
  }
}

// Calls write(out) for a k-major tile of `columns` lines of `pitch` elements; `out` receives it, or
// the words of it.
template <typename T, typename Write>
void PackTile(Precision precision, int64_t columns, int64_t pitch, T* out, const Write& write) {
  if constexpr (std::is_same_v<T, float>) {
    if (precision == Precision::kBFloat16) {
      thread_local std::vector<float> lines;
      lines.resize(columns * pitch);
      write(lines.data());
      return KernelsOfBFloat16().pair_lines(lines.data(), columns, pitch, out);
    }
  }
  write(out);
}

}  // namespace

template <typename T>
void PackedMatrix<T>::Reshape(int64_t rows, int64_t columns) {
  Reshape(rows, columns, /*paired=*/false);
}

template <typename T>
void PackedMatrix<T>::Reshape(int64_t rows, int64_t columns, bool paired) {
  rows_ = rows;
  columns_ = columns;
  paired_ = paired;
  const int64_t matrices = paired ? 2 : 1;
  CutIntoTiles<T>(rows, Kernels<T>().tile_rows / matrices, matrices * steps(), tiles_);
  data_.resize(matrices * rows * steps() + kPackedPadding);
}

template <typename T>
void PackedMatrix<T>::Pack(std::span<const MatrixView<T>> blocks) {
  CHECK(!blocks.empty());
  int64_t columns = 0;
  for (const MatrixView<T>& block : blocks) columns += block.columns;
  Reshape(blocks[0].rows, columns);
  PackPart(blocks, 0, 1);
}

template <typename T>
void PackedMatrix<T>::PackPart(std::span<const MatrixView<T>> blocks, int part, int parts) {
  CHECK(!paired_);
  const Range range = PartOf(part, parts, static_cast<int64_t>(tiles_.size()));
  for (int64_t i = range.begin; i < range.end; ++i) {
    const Tile& tile = tiles_[i];
    PackTile(precision_, columns_, tile.height, data_.data() + tile.offset, [&](T* out) {
      T* const begin = out;
      for (const MatrixView<T>& block : blocks) {
        CHECK_EQ(block.rows, rows_);
        PackRows(block, tile.row, tile.height, tile.height, out);
        out += block.columns * tile.height;
      }
      CHECK_EQ(out - begin, tile.height * columns_);
    });
  }
}

template <typename T>
void PackedMatrix<T>::PackPair(const MatrixView<T>& first, const MatrixView<T>& second) {
  CHECK_EQ(first.rows, second.rows);
  CHECK_EQ(first.columns, second.columns);
  Reshape(first.rows, first.columns, /*paired=*/true);
  for (const Tile& tile : tiles_) {
    PackTile(precision_, columns_, 2 * tile.height, data_.data() + tile.offset, [&](T* out) {
      PackRows(first, tile.row, tile.height, 2 * tile.height, out);
      PackRows(second, tile.row, tile.height, 2 * tile.height, out + tile.height);
    });
  }
}

template class PackedMatrix<float>;
template class PackedMatrix<double>;

}  // namespace elastor
