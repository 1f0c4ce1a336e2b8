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

// Transform and scale of a numeric field in meta.json: stored = (t(x) - mean) / stddev.
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
  // Opens a writer. `info` needs names, ids and rows_per_block (0: 4096). Does not change the
  // partial folder's contents; Clear or Continue must follow. User error when `path` exists and is
  // not an empty folder, or when another process writes it.
  static StatusOr<std::unique_ptr<DatasetWriter>> Open(const std::string& path,
                                                       const DatasetInfo& info);
  // Opens and clears a writer whose work no later writer continues: unless published, it is
  // discarded.
  static StatusOr<std::unique_ptr<DatasetWriter>> Create(const std::string& path,
                                                         const DatasetInfo& info);
  ~DatasetWriter();

  // Removes the files of an earlier writer, and begins.
  Status Clear();
  // Continues an earlier writer's work after its last intact block before which all blocks are
  // intact too. REQUIRES: the same info, then the same blocks, as the earlier writer's.
  Status Continue(ThreadPool* pool);
  // Returns whether an earlier writer had written everything, so that only Publish is left.
  bool complete() const;
  // Makes the destructor remove the partial folder unless it was published.
  void Discard() { discard_ = true; }

  // Path of the file in the partial folder that records the arguments of the run. Publish removes
  // it.
  std::string begun_path() const { return partial_path_ + "/" + kBegunFile; }
  // The folder that Publish renames. Working files belong in its work_path().
  const std::string& partial_path() const { return partial_path_; }
  // A folder in the partial folder, which Clear makes and Publish removes.
  std::string work_path() const { return partial_path_ + "/work"; }
  // Sets table sizes that are known only after reading the data. rows_per_block 0 keeps the earlier
  // value. REQUIRES: no Append yet; the same fields, names and order as in Create.
  void SetInfo(const DatasetInfo& info);
  const DatasetInfo& info() const { return info_; }
  int64_t rows_written(Split split) const;

  // Appends one block. REQUIRES: rows_per_block rows, or fewer in the last block of a split.
  Status Append(Split split, const Rows& rows);
  // Appends a block made by EncodeBlock(info(), rows), which may run on any thread.
  Status AppendEncoded(Split split, int64_t rows, const std::string& block);
  // Appends the first `count` of several blocks, written by all threads of the pool.
  Status AppendBlocks(Split split, const std::vector<EncodedBlock>& blocks, int64_t count,
                      ThreadPool* pool);

  // Completes and publishes the set. `scales` has one entry per numeric field, or is empty. Machine
  // error when the disk is full.
  Status Commit(const std::vector<NumericScale>& scales);
  // Removes the working files and renames the partial folder to its final name.
  Status Publish();
  // Sets the best AUC of every label (DatasetInfo::Label).
  void set_best_auc(const std::vector<double>& best_auc);
  void set_best_gauc(double best_gauc) { info_.best_gauc = best_gauc; }
  // Sets, by categorical field, the XXH3-64 of its vocabulary file, or empty.
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
