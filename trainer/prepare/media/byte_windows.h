#ifndef ELASTOR_TRAINER_PREPARE_MEDIA_BYTE_WINDOWS_H_
#define ELASTOR_TRAINER_PREPARE_MEDIA_BYTE_WINDOWS_H_

#include <string>

#include "configs/proto/schema.pb.h"
#include "core/base/status.h"
#include "core/base/thread_pool.h"
#include "trainer/data/dataset.h"
#include "trainer/data/dataset_writer.h"
#include "trainer/prepare/prepare_options.h"

namespace elastor {

// Data of layout TEXT (docs/use/data.md): the bytes of texts in windows of L. A row has L
// categorical fields, the bytes of a window, which share one table of 256 ids, and L labels of 256
// classes, the bytes that follow each: row i holds bytes i L .. i L + L - 1, and labels i L + 1 ..
// i L + L. So every byte but the first is a label exactly once; where the last row has no bytes any
// more, its ids are 0 and its labels missing.

// REQUIRES: schema.layout() == TEXT.
DatasetInfo TextInfo(const Schema& schema);

// Writes and commits the windows of options' inputs, one text after another in their order.
// report->text_bytes: of all of them, as they are predicted. User error naming a file that is no
// text.
Status WriteByteWindows(const PrepareOptions& options, ThreadPool* pool, DatasetWriter* writer,
                        PrepareReport* report);

}  // namespace elastor

#endif  // ELASTOR_TRAINER_PREPARE_MEDIA_BYTE_WINDOWS_H_
