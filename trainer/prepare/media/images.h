#ifndef ELASTOR_TRAINER_PREPARE_MEDIA_IMAGES_H_
#define ELASTOR_TRAINER_PREPARE_MEDIA_IMAGES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "configs/proto/schema.pb.h"
#include "core/base/status.h"
#include "core/base/thread_pool.h"
#include "trainer/data/dataset.h"
#include "trainer/data/dataset_writer.h"
#include "trainer/prepare/prepare_options.h"

namespace elastor {

// Data of layout IDX (docs/use/data.md): images of one size in shades of grey, each with a label of
// a class. A row is an image, its pixels as bytes, and its label.

// What a file of MNIST's format holds: an array of bytes, row-major.
struct IdxArray {
  std::vector<int64_t> sizes;
  std::string bytes;
};
// Reads such a file, plain, gzip or zstd, of `dimensions` dimensions. User error naming the file
// and what was found and expected where its magic number, its sizes or its length are others, or
// its array has more than `most_bytes` bytes, of which it then takes none.
StatusOr<IdxArray> ReadIdx(const std::string& path, int64_t dimensions, int64_t most_bytes);

// But for what only the data tell: the images' size and the number of classes.
// REQUIRES: schema.layout() == IDX.
DatasetInfo ImagesInfo(const Schema& schema);

// Writes and commits the images of options' inputs. There are as many classes as the largest label
// of all of them says; pixels are scaled by the mean and deviation of the training split. The
// images lie in memory, once, and a block has at most 16 MiB of them, or schema.rows_per_block.
// User error where a file is damaged, images differ in size, labels are not as many as images, the
// images have more than options.memory_bytes, or schema.rows_per_block of them more than 256 MiB.
Status WriteImages(const PrepareOptions& options, ThreadPool* pool, DatasetWriter* writer,
                   PrepareReport* report);

}  // namespace elastor

#endif  // ELASTOR_TRAINER_PREPARE_MEDIA_IMAGES_H_
