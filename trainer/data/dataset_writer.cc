#include "trainer/data/dataset_writer.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>
#include <xxhash.h>

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <set>
#include <string_view>
#include <system_error>

#include "core/base/file.h"
#include "core/base/log.h"
#include "core/process/claimed_folder.h"
#include "trainer/data/block_format.h"
#include "trainer/data/prepared_meta.h"

namespace elastor {
namespace {

constexpr int64_t kDefaultRowsPerBlock = 4096;

std::string WithoutTrailingSlash(std::string path) {
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  return path;
}

Status WriteError(const std::string& path) {
  return MachineError(path + ": cannot write: " + std::strerror(errno));
}

}  // namespace

// A split file being written: blocks, then their index.
struct DatasetWriter::SplitFile {
  ~SplitFile() {
    if (descriptor >= 0) close(descriptor);
  }

  // Thread-safe.
  Status WriteAt(int64_t at, std::string_view piece) const {
    while (!piece.empty()) {
      const ssize_t written = pwrite(descriptor, piece.data(), piece.size(), at);
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) return WriteError(path);
      piece.remove_prefix(written);
      at += written;
    }
    return OkStatus();
  }
  // Whether block `number` is on the disk as the index has it. Thread-safe.
  bool Verify(size_t number) const {
    const BlockEntry& entry = index[number];
    std::string block(entry.bytes, '\0');
    for (size_t at = 0; at < block.size();) {
      const ssize_t got =
          pread(descriptor, block.data() + at, block.size() - at, entry.offset + at);
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) return false;
      at += got;
    }
    return XXH3_64bits(block.data(), block.size()) == entry.checksum;
  }

  std::string path;
  int descriptor = -1;
  int64_t rows = 0;
  int64_t bytes = 0;
  std::vector<BlockEntry> index;
  std::vector<int64_t> block_rows;  // of the blocks in the index
  uint64_t index_checksum = 0;
};

namespace {

// The journal notes every block after it was written.
constexpr char kJournalFile[] = "blocks.journal";
struct JournalRecord {
  uint64_t split;
  uint64_t rows;
  BlockEntry entry;
  uint64_t checksum;  // XXH3-64 of what is before it
};

uint64_t ChecksumOf(const JournalRecord& record) {
  return XXH3_64bits(&record, offsetof(JournalRecord, checksum));
}

}  // namespace

DatasetWriter::DatasetWriter(std::string path, const DatasetInfo& info)
    : path_(std::move(path)), partial_path_(path_ + ".partial"), info_(info) {
  if (info_.rows_per_block == 0) info_.rows_per_block = kDefaultRowsPerBlock;
}

DatasetWriter::~DatasetWriter() {
  if (journal_ >= 0) close(journal_);
  if (discard_) {
    std::error_code ignored;
    std::filesystem::remove_all(partial_path_, ignored);
  }
  if (lock_ >= 0) close(lock_);
}

StatusOr<std::unique_ptr<DatasetWriter>> DatasetWriter::Open(const std::string& path,
                                                             const DatasetInfo& info) {
  std::unique_ptr<DatasetWriter> writer(new DatasetWriter(WithoutTrailingSlash(path), info));
  ELASTOR_RETURN_IF_ERROR(writer->Prepare());
  return writer;
}

StatusOr<std::unique_ptr<DatasetWriter>> DatasetWriter::Create(const std::string& path,
                                                               const DatasetInfo& info) {
  ELASTOR_ASSIGN_OR_RETURN(std::unique_ptr<DatasetWriter> writer, Open(path, info));
  ELASTOR_RETURN_IF_ERROR(writer->Clear());
  writer->Discard();
  return writer;
}

Status DatasetWriter::Prepare() {
  const auto check_is_empty = [this]() -> Status {
    ELASTOR_ASSIGN_OR_RETURN(const std::set<std::string> names, NamesIn(path_));
    if (names.empty()) return OkStatus();
    // A kill right after the set was published leaves this beside it.
    std::error_code ignored;
    if (names.count(kMetaFile) > 0) std::filesystem::remove(path_ + "/" + kBegunFile, ignored);
    return UserError(path_ + ": output_dir exists and is not empty");
  };
  for (bool in_place = false; !in_place;) {
    ELASTOR_RETURN_IF_ERROR(check_is_empty());
    ELASTOR_RETURN_IF_ERROR(MakeDirectory(partial_path_));
    if (lock_ >= 0) close(lock_);
    lock_ = open(partial_path_.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (lock_ < 0 && std::filesystem::is_symlink(partial_path_)) {
      return UserError(partial_path_ + ": a symbolic link; expected a folder, or nothing");
    }
    if (lock_ < 0) return WriteError(partial_path_);
    if (flock(lock_, LOCK_EX | LOCK_NB) != 0) {
      return UserError(path_ + ": output_dir is being written by another process");
    }
    // Otherwise another process has just published what was opened.
    ELASTOR_ASSIGN_OR_RETURN(in_place, LeadsTo(partial_path_, lock_));
  }
  const Status empty = check_is_empty();
  if (!empty.ok()) rmdir(partial_path_.c_str());
  return empty;
}

Status DatasetWriter::OpenFiles() {
  for (int split = 0; split < 3; ++split) {
    files_[split] = std::make_unique<SplitFile>();
    SplitFile& file = *files_[split];
    file.path = partial_path_ + "/" + SplitFileName(static_cast<Split>(split));
    ELASTOR_ASSIGN_OR_RETURN(file.descriptor, OpenFile(file.path, O_RDWR | O_CREAT));
  }
  const std::string journal = partial_path_ + "/" + kJournalFile;
  ELASTOR_ASSIGN_OR_RETURN(journal_, OpenFile(journal, O_RDWR | O_CREAT | O_APPEND));
  return OkStatus();
}

Status DatasetWriter::Clear() {
  namespace fs = std::filesystem;
  // First what says that there is something to go on from: a kill may leave the rest in part.
  std::error_code error;
  fs::remove(begun_path(), error);
  fs::directory_iterator left;
  if (!error) left = fs::directory_iterator(partial_path_, error);
  for (; !error && left != fs::directory_iterator(); left.increment(error)) {
    fs::remove_all(left->path(), error);
    if (error) break;
  }
  if (error) return MachineError(partial_path_ + ": cannot clear: " + error.message());
  ELASTOR_RETURN_IF_ERROR(MakeWithin(work_path()));
  return OpenFiles();
}

bool DatasetWriter::complete() const {
  std::error_code error;
  return std::filesystem::exists(partial_path_ + "/" + kMetaFile, error);
}

Status DatasetWriter::Continue(ThreadPool* pool) {
  ELASTOR_RETURN_IF_ERROR(OpenFiles());
  const std::string path = partial_path_ + "/" + kJournalFile;
  ELASTOR_ASSIGN_OR_RETURN(const std::string bytes, ReadFile(path));
  std::vector<JournalRecord> records(bytes.size() / sizeof(JournalRecord));
  if (!records.empty()) {
    std::memcpy(records.data(), bytes.data(), records.size() * sizeof(JournalRecord));
  }
  for (const JournalRecord& record : records) {
    if (record.split > 2 || ChecksumOf(record) != record.checksum) break;
    SplitFile& file = *files_[record.split];
    const int64_t file_bytes = lseek(file.descriptor, 0, SEEK_END);
    const bool fits = record.entry.offset == static_cast<uint64_t>(file.bytes) &&
                      static_cast<int64_t>(record.entry.bytes) >= 0 &&
                      static_cast<int64_t>(record.entry.bytes) <= file_bytes - file.bytes;
    const bool behind_full_block = file.rows % info_.rows_per_block == 0;
    if (!fits || !behind_full_block || record.rows == 0 ||
        record.rows > static_cast<uint64_t>(info_.rows_per_block)) {
      break;
    }
    file.index.push_back(record.entry);
    file.block_rows.push_back(static_cast<int64_t>(record.rows));
    file.rows += static_cast<int64_t>(record.rows);
    file.bytes += static_cast<int64_t>(record.entry.bytes);
  }
  // Splits are written one after another, so a bad block makes all later ones superfluous.
  bool good = true;
  std::string kept;
  for (int split = 0; split < 3; ++split) {
    SplitFile& file = *files_[split];
    const int64_t blocks = static_cast<int64_t>(file.index.size());
    std::vector<char> verified(blocks, 0);
    pool->ParallelFor(blocks, 1, [&](int, int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) verified[i] = file.Verify(i);
    });
    int64_t first_bad = 0;
    while (good && first_bad < blocks && verified[first_bad]) ++first_bad;
    good = good && first_bad == blocks;
    file.index.resize(first_bad);
    file.block_rows.resize(first_bad);
    file.rows = file.bytes = 0;
    for (int64_t i = 0; i < first_bad; ++i) {
      file.rows += file.block_rows[i];
      file.bytes += static_cast<int64_t>(file.index[i].bytes);
    }
    if (ftruncate(file.descriptor, file.bytes) != 0) return WriteError(file.path);
  }
  if (ftruncate(journal_, 0) != 0) return WriteError(path);
  for (int split = 0; split < 3; ++split) ELASTOR_RETURN_IF_ERROR(WriteJournal(split, 0));
  return OkStatus();
}

Status DatasetWriter::WriteJournal(int split, size_t first_block) {
  const SplitFile& file = *files_[split];
  std::string records;
  for (size_t i = first_block; i < file.index.size(); ++i) {
    JournalRecord record = {static_cast<uint64_t>(split), static_cast<uint64_t>(file.block_rows[i]),
                            file.index[i], 0};
    record.checksum = ChecksumOf(record);
    records.append(reinterpret_cast<const char*>(&record), sizeof(record));
  }
  for (std::string_view left = records; !left.empty();) {
    const ssize_t written = write(journal_, left.data(), left.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return WriteError(partial_path_ + "/" + kJournalFile);
    left.remove_prefix(written);
  }
  return OkStatus();
}

void DatasetWriter::SetInfo(const DatasetInfo& info) {
  CHECK_EQ(info.numeric.size(), info_.numeric.size());
  CHECK_EQ(info.categorical.size(), info_.categorical.size());
  CHECK_EQ(info.labels.size(), info_.labels.size());
  const int64_t rows_per_block = info_.rows_per_block;
  info_ = info;
  if (info_.rows_per_block == 0) info_.rows_per_block = rows_per_block;
}

void DatasetWriter::set_best_auc(const std::vector<double>& best_auc) {
  CHECK_EQ(static_cast<int64_t>(best_auc.size()), info_.label_count());
  if (info_.labels.empty()) info_.best_auc = best_auc[0];
  for (size_t i = 0; i < info_.labels.size(); ++i) info_.labels[i].best_auc = best_auc[i];
}

int64_t DatasetWriter::rows_written(Split split) const {
  return files_[static_cast<int>(split)]->rows;
}

Status DatasetWriter::Append(Split split, const Rows& rows) {
  return AppendEncoded(split, rows.rows, EncodeBlock(info_, rows));
}

Status DatasetWriter::AppendEncoded(Split split, int64_t rows, const std::string& block) {
  ThreadPool alone(1);
  return AppendBlocks(split, {{rows, block}}, 1, &alone);
}

Status DatasetWriter::AppendBlocks(Split split, const std::vector<EncodedBlock>& blocks,
                                   int64_t count, ThreadPool* pool) {
  SplitFile& file = *files_[static_cast<int>(split)];
  const size_t first = file.index.size();
  for (int64_t i = 0; i < count; ++i) {
    if (blocks[i].rows == 0) continue;
    CHECK_EQ(file.rows % info_.rows_per_block, 0) << "only the last block may be short";
    file.index.push_back({static_cast<uint64_t>(file.bytes), blocks[i].bytes.size(), 0});
    file.block_rows.push_back(blocks[i].rows);
    file.rows += blocks[i].rows;
    file.bytes += static_cast<int64_t>(blocks[i].bytes.size());
  }
  const int64_t added = static_cast<int64_t>(file.index.size() - first);
  std::vector<Status> outcomes(added);
  pool->ParallelFor(added, 1, [&](int, int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const std::string& bytes = blocks[i].bytes;
      BlockEntry& entry = file.index[first + i];
      entry.checksum = XXH3_64bits(bytes.data(), bytes.size());
      outcomes[i] = file.WriteAt(static_cast<int64_t>(entry.offset), bytes);
    }
  });
  for (const Status& outcome : outcomes) ELASTOR_RETURN_IF_ERROR(outcome);
  return WriteJournal(static_cast<int>(split), first);
}

Status DatasetWriter::FinishSplit(int split) {
  SplitFile& file = *files_[split];
  const size_t index_bytes = file.index.size() * sizeof(BlockEntry);
  file.index_checksum = XXH3_64bits(file.index.data(), index_bytes);
  ELASTOR_RETURN_IF_ERROR(
      file.WriteAt(file.bytes, {reinterpret_cast<const char*>(file.index.data()), index_bytes}));
  file.bytes += static_cast<int64_t>(index_bytes);
  info_.rows[split] = file.rows;
  return fsync(file.descriptor) == 0 ? OkStatus() : WriteError(file.path);
}

// Every file of the set but the splits and meta.json: those that are there, but for what Publish
// removes.
StatusOr<std::map<std::string, FileFacts>> DatasetWriter::OtherFiles() const {
  namespace fs = std::filesystem;
  std::map<std::string, FileFacts> files;
  // A process that was killed may have left a part of meta.json.
  std::set<std::string> left_out = {kBegunFile, kJournalFile, kMetaFile,
                                    std::string(kMetaFile) + ".tmp"};
  for (int split = 0; split < 3; ++split) left_out.insert(SplitFileName(static_cast<Split>(split)));
  std::error_code error;
  fs::recursive_directory_iterator at(partial_path_, error);
  for (; !error && at != fs::recursive_directory_iterator(); at.increment(error)) {
    if (at->path() == work_path()) at.disable_recursion_pending();
    const std::string name = at->path().lexically_relative(partial_path_).generic_string();
    if (at->is_directory(error) || left_out.count(name) > 0) continue;
    ELASTOR_ASSIGN_OR_RETURN(files[name], ReadFileFacts(at->path().string()));
  }
  if (error) return MachineError(partial_path_ + ": cannot list: " + error.message());
  return files;
}

Status DatasetWriter::WriteMeta(const std::vector<NumericScale>& scales) {
  PreparedMeta meta;
  meta.info = info_;
  for (size_t i = 0; i < scales.size(); ++i) {
    DatasetInfo::Numeric& field = meta.info.numeric[i];
    field = {field.name, scales[i].transform, scales[i].mean, scales[i].stddev};
  }
  for (size_t i = 0; i < vocabularies_.size(); ++i) {
    meta.info.categorical[i].vocabulary = vocabularies_[i];
  }
  for (int split = 0; split < 3; ++split) {
    meta.splits[split] = {files_[split]->bytes, files_[split]->index_checksum};
  }
  ELASTOR_ASSIGN_OR_RETURN(meta.files, OtherFiles());
  return WriteFileAtomically(partial_path_ + "/" + kMetaFile, PreparedMetaText(meta));
}

Status DatasetWriter::Commit(const std::vector<NumericScale>& scales) {
  CHECK(scales.empty() || scales.size() == info_.numeric.size());
  for (int split = 0; split < 3; ++split) ELASTOR_RETURN_IF_ERROR(FinishSplit(split));
  ELASTOR_RETURN_IF_ERROR(WriteMeta(scales));
  return Publish();
}

Status DatasetWriter::Publish() {
  std::error_code error;
  std::filesystem::remove_all(work_path(), error);
  if (!error) std::filesystem::remove(partial_path_ + "/" + kJournalFile, error);
  if (error) return MachineError(partial_path_ + ": cannot clear: " + error.message());
  discard_ = false;
  ELASTOR_RETURN_IF_ERROR(PublishDirectory(partial_path_, path_));
  // Last, as it tells how to go on from anywhere before.
  std::filesystem::remove(path_ + "/" + kBegunFile, error);
  return OkStatus();
}

}  // namespace elastor
