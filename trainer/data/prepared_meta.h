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

// What meta.json of a prepared set says (docs/reference/data_format.md).
struct PreparedMeta {
  struct SplitFile {
    int64_t bytes = 0;
    uint64_t index_checksum = 0;
  };
  int version = kPreparedVersion;
  DatasetInfo info;
  SplitFile splits[3];
  // Of every other file but meta.json, by its path in the set. Version 2 does not tell.
  std::map<std::string, FileFacts> files;
  std::string fingerprint;
};

// The text of version 3. meta.version and meta.fingerprint are not read.
std::string PreparedMetaText(const PreparedMeta& meta);
// Of version 2 or 3. User error naming file and entry, with what was found and expected.
StatusOr<PreparedMeta> ReadPreparedMeta(const std::string& path);

}  // namespace elastor

#endif  // ELASTOR_TRAINER_DATA_PREPARED_META_H_
