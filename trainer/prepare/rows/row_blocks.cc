#include "trainer/prepare/rows/row_blocks.h"

#include <algorithm>
#include <vector>

#include "trainer/data/block_format.h"

namespace elastor {

Status WriteRowBlocks(Split split, const Range& range,
                      const std::function<void(int64_t row, Rows* rows)>& append_row,
                      ThreadPool* pool, DatasetWriter* writer) {
  const int64_t block_rows = writer->info().rows_per_block;
  std::vector<EncodedBlock> blocks(4 * pool->threads());
  for (int64_t first = range.begin; first < range.end;) {
    const int64_t left = (range.end - first + block_rows - 1) / block_rows;
    const int64_t count = std::min(static_cast<int64_t>(blocks.size()), left);
    pool->ParallelFor(count, 1, [&](int, int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        Rows rows;
        const int64_t row = first + i * block_rows;
        const int64_t row_end = std::min(row + block_rows, range.end);
        for (int64_t r = row; r < row_end; ++r) append_row(r, &rows);
        blocks[i] = {rows.rows, EncodeBlock(writer->info(), rows)};
      }
    });
    ELASTOR_RETURN_IF_ERROR(writer->AppendBlocks(split, blocks, count, pool));
    first += count * block_rows;
  }
  return OkStatus();
}

}  // namespace elastor
