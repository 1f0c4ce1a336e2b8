#include "trainer/data/dataset.h"

#include <xxhash.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <map>
#include <mutex>
#include <utility>

#include "core/base/hash_text.h"
#include "core/base/log.h"
#include "core/base/mapped_file.h"
#include "core/base/random.h"
#include "core/base/text.h"
#include "trainer/data/block_format.h"
#include "trainer/data/prepared_meta.h"

namespace elastor {

DatasetInfo ByteWindows(int64_t length) {
  constexpr int64_t kBytes = 256;
  DatasetInfo info;
  info.classes = kBytes;
  for (int64_t i = 1; i <= length; ++i) {
    const std::string number = std::to_string(i);
    info.categorical.push_back(
        {"byte" + number, kBytes, false, false, i == 1 ? -1 : 0, "identity"});
    info.labels.push_back({"next" + number});
  }
  return info;
}

DatasetInfo Images(int64_t height, int64_t width, int64_t classes) {
  DatasetInfo info;
  info.classes = classes;
  info.image = {.height = height, .width = width};
  return info;
}

namespace {

// How an epoch's order walks one split.
class OrderWalk {
  using Wide = __int128;

 public:
  OrderWalk(const RowOrder& order, int64_t epoch, int64_t split_rows, int64_t rows_per_block)
      : order_(order),
        key_(MakeRandomKey(order.seed, RandomPurpose::kDataOrder, static_cast<uint32_t>(epoch))),
        rows_(order.choices(split_rows)),
        positions_(order.positions(split_rows)),
        rows_per_block_(rows_per_block),
        full_blocks_(rows_ / rows_per_block),
        blocks_(key_, 0, std::max<int64_t>(full_blocks_, 1)),
        window_(key_, 1, 1) {
    CHECK_GE(order.window_blocks, 1);
    CHECK(!order.shuffled || order.spread_rows == 0);
  }

  int64_t RowAt(int64_t position) {
    CHECK_GE(position, 0);
    CHECK_LT(position, positions_);
    if (!order_.shuffled) {
      if (positions_ == rows_) return position;
      return static_cast<int64_t>((2 * Wide{position} + 1) * rows_ / (2 * Wide{positions_}));
    }
    if (position < window_begin_ || position >= window_end_) EnterWindow(position);
    const int64_t shuffled = window_begin_ + window_(position - window_begin_);
    const int64_t place = shuffled / rows_per_block_;
    const int64_t block = place < full_blocks_ ? blocks_(place) : place;
    return block * rows_per_block_ + shuffled % rows_per_block_;
  }

 private:
  void EnterWindow(int64_t position) {
    const int64_t size = order_.window_blocks * rows_per_block_;
    const int64_t number = position / size;
    window_begin_ = number * size;
    window_end_ = std::min(window_begin_ + size, rows_);
    window_ = Permutation(key_, 1 + number, window_end_ - window_begin_);
  }

  const RowOrder& order_;
  const uint64_t key_;
  const int64_t rows_;
  const int64_t positions_;
  const int64_t rows_per_block_;
  const int64_t full_blocks_;
  const Permutation blocks_;
  Permutation window_;
  int64_t window_begin_ = 0;
  int64_t window_end_ = 0;
};

// A split file in memory. Its contents have a number, raised whenever the file was written to; a
// block is as it should be as long as the number is the one it was verified under.
class MappedSplit {
 public:
  // Maps `path`, whose index must have the checksum that meta.json says.
  static StatusOr<std::unique_ptr<MappedSplit>> Open(const std::string& path,
                                                     const DatasetInfo& info, int64_t rows,
                                                     const PreparedMeta::SplitFile& expected);

  const char* block(int64_t number) const { return file_.data() + index_[number].offset; }
  int64_t block_bytes(int64_t number) const { return static_cast<int64_t>(index_[number].bytes); }
  int64_t block_rows(int64_t number) const {
    return std::min(info_.rows_per_block, rows_ - number * info_.rows_per_block);
  }
  uint32_t contents() const { return contents_.load(std::memory_order_acquire); }
  // The number as of now, by the file's size and times.
  StatusOr<uint32_t> LookAtContents() const;
  // Whether a block is as it was written and its ids are in their tables. Two threads may both
  // verify a block, with the same outcome.
  Status Verify(int64_t block, uint32_t contents) const;
  Status CheckReadable() const { return file_.CheckReadable(); }

 private:
  MappedSplit(MappedFile file, const DatasetInfo& info, int64_t rows)
      : file_(std::move(file)), info_(info), rows_(rows) {}
  Status ReadIndex(uint64_t index_checksum);

  const MappedFile file_;
  const DatasetInfo& info_;
  const int64_t rows_;
  std::vector<BlockEntry> index_;
  std::unique_ptr<std::atomic<uint32_t>[]> verified_;  // contents under which a block was; 0: none

  mutable std::mutex mutex_;
  mutable FileStamp stamp_;  // of contents_; guarded by mutex_
  mutable std::atomic<uint32_t> contents_ = 1;
};

StatusOr<std::unique_ptr<MappedSplit>> MappedSplit::Open(const std::string& path,
                                                         const DatasetInfo& info, int64_t rows,
                                                         const PreparedMeta::SplitFile& expected) {
  ELASTOR_ASSIGN_OR_RETURN(MappedFile file, MappedFile::Open(path, MappedFile::Links::kFollow));
  if (file.bytes() != expected.bytes) {
    return UserError(StrCat(path, ": found ", file.bytes(), " bytes, expected ", expected.bytes,
                            " (by ", kMetaFile, ")"));
  }
  std::unique_ptr<MappedSplit> split(new MappedSplit(std::move(file), info, rows));
  ELASTOR_ASSIGN_OR_RETURN(split->stamp_, split->file_.Stamp());
  ELASTOR_RETURN_IF_ERROR(split->ReadIndex(expected.index_checksum));
  return split;
}

Status MappedSplit::ReadIndex(uint64_t index_checksum) {
  const std::string& path = file_.path();
  const int64_t blocks = (rows_ + info_.rows_per_block - 1) / info_.rows_per_block;
  const int64_t index_bytes = blocks * static_cast<int64_t>(sizeof(BlockEntry));
  if (file_.bytes() < index_bytes || file_.bytes() % 8 != 0) {
    return UserError(StrCat(path, ": too short for ", blocks, " blocks"));
  }
  const int64_t end = file_.bytes() - index_bytes;
  index_.resize(blocks);
  if (blocks > 0) std::memcpy(index_.data(), file_.data() + end, index_bytes);
  ELASTOR_RETURN_IF_ERROR(file_.CheckReadable());
  if (XXH3_64bits(index_.data(), index_bytes) != index_checksum) {
    return UserError(path + ": the block index does not match its checksum");
  }
  uint64_t offset = 0;
  for (int64_t block = 0; block < blocks; ++block) {
    const BlockSections sections(info_, block_rows(block));
    const BlockEntry& entry = index_[block];
    if (entry.offset != offset || entry.bytes < static_cast<uint64_t>(sections.heap_at) ||
        entry.bytes > static_cast<uint64_t>(end) - offset) {
      return UserError(StrCat(path, ": block ", block, " does not fit ", kMetaFile));
    }
    offset += entry.bytes;
  }
  if (offset != static_cast<uint64_t>(end)) {
    return UserError(path + ": the blocks do not fill the file");
  }
  verified_ = std::make_unique<std::atomic<uint32_t>[]>(blocks);
  return OkStatus();
}

StatusOr<uint32_t> MappedSplit::LookAtContents() const {
  ELASTOR_ASSIGN_OR_RETURN(const FileStamp now, file_.Stamp());
  const std::lock_guard lock(mutex_);
  if (now != stamp_ || stamp_.fresh) {
    stamp_ = now;
    contents_.fetch_add(1, std::memory_order_acq_rel);
  }
  return contents();
}

Status MappedSplit::Verify(int64_t block, uint32_t contents) const {
  if (verified_[block].load(std::memory_order_acquire) == contents) return OkStatus();
  const BlockEntry& entry = index_[block];
  const char* const bytes = file_.data() + entry.offset;
  const bool matches = XXH3_64bits(bytes, entry.bytes) == entry.checksum;
  // What cannot be read, or was cut off meanwhile, is not damaged.
  ELASTOR_RETURN_IF_ERROR(file_.CheckReadable());
  if (!matches) ELASTOR_RETURN_IF_ERROR(file_.Stamp().status());
  const std::string where = StrCat(file_.path(), ": block ", block, " at byte ", entry.offset);
  if (!matches) {
    return UserError(where + " does not match its checksum; the file is damaged or was changed");
  }
  if (const std::string mistake =
          BlockMistake(info_, bytes, static_cast<int64_t>(entry.bytes), block_rows(block));
      !mistake.empty()) {
    return UserError(where + ": " + mistake);
  }
  verified_[block].store(contents, std::memory_order_release);
  return OkStatus();
}

}  // namespace

struct Dataset::Files {
  std::unique_ptr<MappedSplit> splits[3];
  std::map<std::string, FileFacts> others;
};

Dataset::Dataset() : files_(std::make_unique<Files>()) {}
Dataset::~Dataset() = default;

StatusOr<std::unique_ptr<Dataset>> Dataset::Open(const std::string& path) {
  ELASTOR_ASSIGN_OR_RETURN(PreparedMeta meta, ReadPreparedMeta(path));
  std::unique_ptr<Dataset> dataset(new Dataset());
  dataset->path_ = path;
  dataset->version_ = meta.version;
  dataset->info_ = std::move(meta.info);
  dataset->fingerprint_ = std::move(meta.fingerprint);
  dataset->files_->others = std::move(meta.files);
  for (int split = 0; split < 3; ++split) {
    ELASTOR_ASSIGN_OR_RETURN(
        dataset->files_->splits[split],
        MappedSplit::Open(path + "/" + SplitFileName(static_cast<Split>(split)), dataset->info_,
                          dataset->info_.rows[split], meta.splits[split]));
  }
  return dataset;
}

Status Dataset::VerifyOtherFiles() const {
  for (const auto& [name, expected] : files_->others) {
    const std::string file = path_ + "/" + name;
    ELASTOR_ASSIGN_OR_RETURN(const FileFacts found, ReadFileFacts(file));
    if (found.bytes != expected.bytes) {
      return UserError(StrCat(file, ": found ", found.bytes, " bytes, expected ", expected.bytes,
                              " (by ", kMetaFile, ")"));
    }
    if (found.xxh3 != expected.xxh3) {
      return UserError(file + ": found the hash " + found.xxh3 + ", expected " + expected.xxh3 +
                       " (by " + kMetaFile + "); the file is damaged or was changed");
    }
  }
  return OkStatus();
}

int64_t Dataset::RowAt(Split split, const RowOrder& order, int64_t epoch, int64_t position) const {
  return OrderWalk(order, epoch, rows(split), info_.rows_per_block).RowAt(position);
}

Status Dataset::Read(Split split, const RowOrder& order, int64_t epoch, const Range& positions,
                     Rows* rows) const {
  const MappedSplit& file = *files_->splits[static_cast<int>(split)];
  CHECK_LE(positions.begin, positions.end);
  // Calls use(block, row in the block) for every position, whose blocks are verified.
  const auto visit = [&](uint32_t contents, const auto& use) -> Status {
    OrderWalk walk(order, epoch, this->rows(split), info_.rows_per_block);
    for (int64_t position = positions.begin; position < positions.end; ++position) {
      const int64_t row = walk.RowAt(position);
      const int64_t block = row / info_.rows_per_block;
      ELASTOR_RETURN_IF_ERROR(file.Verify(block, contents));
      use(block, row - block * info_.rows_per_block);
    }
    return OkStatus();
  };
  const uint32_t contents = file.contents();
  BlockReader reader(info_, positions.size(), rows);
  ELASTOR_RETURN_IF_ERROR(visit(contents, [&](int64_t block, int64_t row) {
    reader.Append(file.block(block), file.block_bytes(block), file.block_rows(block), row);
  }));
  if (positions.size() == 0) return OkStatus();
  // What was copied are the verified bytes, unless the file was written to since they were
  // verified; then they are when it still has these bytes.
  ELASTOR_RETURN_IF_ERROR(file.CheckReadable());
  ELASTOR_ASSIGN_OR_RETURN(const uint32_t now, file.LookAtContents());
  return now == contents ? OkStatus() : visit(now, [](int64_t, int64_t) {});
}

}  // namespace elastor
