#ifndef ELASTOR_TRAINER_DATA_DATASET_WRITER_H_
#define ELASTOR_TRAINER_DATA_DATASET_WRITER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "trainer/data/dataset.h"

namespace elastor {

// What meta.json says about a numeric field beyond its name: stored = (t(x) - mean) / stddev.
struct NumericScale {
  std::string transform = "none";
  double mean = 0;
  double stddev = 1;
};

// Writes a prepared data set. Everything is written and synced in `<path>.partial`, which Commit
// renames to `path`: a set that was not committed never opens. Not thread-safe.
class DatasetWriter {
 public:
  // User error when `path` exists and is not an empty folder, or another process writes it.
  // Removes what a killed writer has left. `info` needs names, ids and rows_per_block (0: 4096).
  static StatusOr<std::unique_ptr<DatasetWriter>> Create(const std::string& path,
                                                         const DatasetInfo& info);
  ~DatasetWriter();  // removes the partial folder when not committed

  // The folder to be renamed; a place for working files, which must be gone by Commit.
  const std::string& partial_path() const { return partial_path_; }
  // Table sizes known only after reading the data; before the first Append.
  // REQUIRES: the fields, names and order of Create.
  void SetInfo(const DatasetInfo& info);
  const DatasetInfo& info() const { return info_; }

  // Appends one block. REQUIRES: rows_per_block rows, or fewer in the last block of a split.
  Status Append(Split split, const Rows& rows);
  // The same for a block made by EncodeBlock(info(), rows) (on any thread).
  Status AppendEncoded(Split split, int64_t rows, const std::string& block);

  // `scales`: one per numeric field, or empty. Machine error when the disk is full.
  Status Commit(const std::vector<NumericScale>& scales);
  void set_best_auc(double best_auc) { info_.best_auc = best_auc; }

 private:
  struct SplitFile;
  DatasetWriter(std::string path, const DatasetInfo& info);
  Status Prepare();
  Status FinishSplit(int split);
  Status WriteMeta(const std::vector<NumericScale>& scales);

  const std::string path_;
  const std::string partial_path_;
  DatasetInfo info_;
  std::unique_ptr<SplitFile> files_[3];
  int lock_ = -1;  // held on the partial folder
  bool committed_ = false;
};

}  // namespace elastor

#endif  // ELASTOR_TRAINER_DATA_DATASET_WRITER_H_
