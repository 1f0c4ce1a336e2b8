#ifndef ELASTOR_TRAINER_DATA_PREPARED_META_H_
#define ELASTOR_TRAINER_DATA_PREPARED_META_H_

#include <cstdint>
#include <map>
#include <string>

#include "core/base/hash_text.h"
#include "core/base/status.h"
#include "trainer/data/block_format.h"
#include "trainer/data/dataset.h"

namespace elastor {

// Contents of a prepared set's meta.json (docs/reference/data_format.md).
struct PreparedMeta {
  struct SplitFile {
    int64_t bytes = 0;
    uint64_t index_checksum = 0;
  };
  int version = kPreparedVersion;
  DatasetInfo info;
  SplitFile splits[3];
  // Facts about every other file except meta.json, by its path in the set. Empty in version 2.
  std::map<std::string, FileFacts> files;
  std::string fingerprint;
};

// Returns the text of version 3, or of version 4 if fields are keyed. Does not read meta.version
// and meta.fingerprint.
std::string PreparedMetaText(const PreparedMeta& meta);
// Reads meta.json of versions 2 to 4. User error naming file and entry, with the value found and
// the value expected.
StatusOr<PreparedMeta> ReadPreparedMeta(const std::string& path);

}  // namespace elastor

#endif  // ELASTOR_TRAINER_DATA_PREPARED_META_H_
