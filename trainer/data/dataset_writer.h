#ifndef ELASTOR_TRAINER_DATA_DATASET_WRITER_H_
#define ELASTOR_TRAINER_DATA_DATASET_WRITER_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/base/hash_text.h"
#include "core/base/status.h"
#include "core/base/thread_pool.h"
#include "trainer/data/dataset.h"

namespace elastor {

// What meta.json says about a numeric field beyond its name: stored = (t(x) - mean) / stddev.
struct NumericScale {
  std::string transform = "none";
  double mean = 0;
  double stddev = 1;
};

// A block made by EncodeBlock.
struct EncodedBlock {
  int64_t rows = 0;
  std::string bytes;
};

// Writes a prepared data set. Everything is written and synced in `<path>.partial`, which Commit
// renames to `path`: a set that was not committed never opens. Which blocks are written is noted in
// a journal beside them, so that a killed writer can be followed by one that goes on.
// Not thread-safe.
class DatasetWriter {
 public:
  // User error when `path` exists and is not an empty folder, or another process writes it. `info`
  // needs names, ids and rows_per_block (0: 4096). Leaves what is in the partial folder alone;
  // Clear or Continue must follow.
  static StatusOr<std::unique_ptr<DatasetWriter>> Open(const std::string& path,
                                                       const DatasetInfo& info);
  // Open and Clear, for writers that nothing goes on from: Discard unless published.
  static StatusOr<std::unique_ptr<DatasetWriter>> Create(const std::string& path,
                                                         const DatasetInfo& info);
  ~DatasetWriter();

  // Removes what an earlier writer has left, and begins.
  Status Clear();
  // Goes on behind the last block of an earlier writer up to which all are as they were written.
  // REQUIRES: the same info, then the same blocks, as the earlier writer's.
  Status Continue(ThreadPool* pool);
  // An earlier writer had written everything; Publish is all that is left.
  bool complete() const;
  // Unless published, nothing in the partial folder is of use: the destructor removes it.
  void Discard() { discard_ = true; }

  // A file in the partial folder that says what the run was begun with; gone after Publish.
  std::string begun_path() const { return partial_path_ + "/" + kBegunFile; }
  // The folder to be renamed; a place for working files, in work_path().
  const std::string& partial_path() const { return partial_path_; }
  // A folder in it, made by Clear, that Publish removes.
  std::string work_path() const { return partial_path_ + "/work"; }
  // Table sizes known only after reading the data; before the first Append. rows_per_block 0: as
  // it was. REQUIRES: the fields, names and order of Create.
  void SetInfo(const DatasetInfo& info);
  const DatasetInfo& info() const { return info_; }
  int64_t rows_written(Split split) const;

  // Appends one block. REQUIRES: rows_per_block rows, or fewer in the last block of a split.
  Status Append(Split split, const Rows& rows);
  // The same for a block made by EncodeBlock(info(), rows) (on any thread).
  Status AppendEncoded(Split split, int64_t rows, const std::string& block);
  // The same for the first `count` of several blocks, written by all threads.
  Status AppendBlocks(Split split, const std::vector<EncodedBlock>& blocks, int64_t count,
                      ThreadPool* pool);

  // `scales`: one per numeric field, or empty. Machine error when the disk is full.
  Status Commit(const std::vector<NumericScale>& scales);
  // Removes working files and gives the folder its name.
  Status Publish();
  // Of every label.
  void set_best_auc(const std::vector<double>& best_auc);
  void set_best_gauc(double best_gauc) { info_.best_gauc = best_gauc; }
  // By categorical field: XXH3-64 of its vocabulary file, or empty.
  void set_vocabularies(std::vector<std::string> checksums) { vocabularies_ = checksums; }

 private:
  static constexpr char kBegunFile[] = "begun.json";
  struct SplitFile;
  DatasetWriter(std::string path, const DatasetInfo& info);
  Status Prepare();
  Status OpenFiles();
  Status WriteJournal(int split, size_t first_block);
  Status FinishSplit(int split);
  StatusOr<std::map<std::string, FileFacts>> OtherFiles() const;
  Status WriteMeta(const std::vector<NumericScale>& scales);

  const std::string path_;
  const std::string partial_path_;
  DatasetInfo info_;
  std::vector<std::string> vocabularies_;
  std::unique_ptr<SplitFile> files_[3];
  int journal_ = -1;
  int lock_ = -1;  // held on the partial folder
  bool discard_ = false;
};

}  // namespace elastor

#endif  // ELASTOR_TRAINER_DATA_DATASET_WRITER_H_
