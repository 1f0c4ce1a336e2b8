#include "trainer/data/dataset.h"

#include <fcntl.h>
#include <glog/logging.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include <atomic>
#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>

#include "core/base/random.h"
#include "trainer/data/block_format.h"

namespace elastor {
namespace {

// How an epoch's order walks one split.
class OrderWalk {
 public:
  OrderWalk(const RowOrder& order, int64_t epoch, int64_t rows, int64_t rows_per_block)
      : order_(order),
        key_(MakeRandomKey(order.seed, RandomPurpose::kDataOrder, static_cast<uint32_t>(epoch))),
        rows_(rows),
        rows_per_block_(rows_per_block),
        full_blocks_(rows / rows_per_block),
        blocks_(key_, 0, std::max<int64_t>(full_blocks_, 1)),
        window_(key_, 1, 1) {
    CHECK_GE(order.window_blocks, 1);
  }

  int64_t RowAt(int64_t position) {
    CHECK_GE(position, 0);
    CHECK_LT(position, rows_);
    if (!order_.shuffled) return position;
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
  const int64_t rows_per_block_;
  const int64_t full_blocks_;
  const Permutation blocks_;
  Permutation window_;
  int64_t window_begin_ = 0;
  int64_t window_end_ = 0;
};

// A split file in memory.
struct MappedSplit {
  std::string path;
  const char* data = nullptr;
  int64_t bytes = 0;
  int64_t blocks = 0;
  const BlockEntry* index = nullptr;
  std::unique_ptr<std::atomic<bool>[]> verified;

  ~MappedSplit() {
    if (data != nullptr) munmap(const_cast<char*>(data), bytes);
  }

  // Maps `file_path`, whose index must have the checksum `index_checksum`.
  Status Open(const std::string& file_path, const DatasetInfo& info, int64_t rows,
              int64_t expected_bytes, uint64_t index_checksum);
  // Thread-safe: two threads may both verify a block, with the same outcome.
  Status Verify(int64_t block) const;

 private:
  Status Map(int64_t expected_bytes);
  Status CheckIndex(const DatasetInfo& info, int64_t rows, uint64_t index_checksum) const;
};

Status MappedSplit::Map(int64_t expected_bytes) {
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return UserError(path + ": cannot open: " + std::strerror(errno));
  struct stat facts = {};
  if (fstat(file, &facts) != 0 || facts.st_size != expected_bytes) {
    close(file);
    return UserError(path + ": found " + std::to_string(facts.st_size) + " bytes, expected " +
                     std::to_string(expected_bytes) + " (by " + kMetaFile + ")");
  }
  bytes = expected_bytes;
  if (bytes > 0) {
    void* mapped = mmap(nullptr, bytes, PROT_READ, MAP_SHARED, file, 0);
    if (mapped != MAP_FAILED) data = static_cast<const char*>(mapped);
  }
  close(file);
  if (bytes > 0 && data == nullptr) {
    return MachineError(path + ": cannot map " + std::to_string(bytes) +
                        " bytes: " + std::strerror(errno));
  }
  return OkStatus();
}

Status MappedSplit::CheckIndex(const DatasetInfo& info, int64_t rows,
                               uint64_t index_checksum) const {
  const size_t index_bytes = blocks * sizeof(BlockEntry);
  if (XXH3_64bits(index, index_bytes) != index_checksum) {
    return UserError(path + ": the block index does not match its checksum");
  }
  uint64_t offset = 0;
  for (int64_t block = 0; block < blocks; ++block) {
    const int64_t block_rows = std::min(info.rows_per_block, rows - block * info.rows_per_block);
    const BlockSections sections(info, block_rows);
    if (index[block].offset != offset ||
        index[block].bytes < static_cast<uint64_t>(sections.heap_at)) {
      return UserError(path + ": block " + std::to_string(block) + " does not fit " + kMetaFile);
    }
    offset += index[block].bytes;
  }
  if (offset + index_bytes != static_cast<uint64_t>(bytes)) {
    return UserError(path + ": the blocks do not fill the file");
  }
  return OkStatus();
}

Status MappedSplit::Open(const std::string& file_path, const DatasetInfo& info, int64_t rows,
                         int64_t expected_bytes, uint64_t index_checksum) {
  path = file_path;
  blocks = (rows + info.rows_per_block - 1) / info.rows_per_block;
  const int64_t index_bytes = blocks * static_cast<int64_t>(sizeof(BlockEntry));
  ELASTOR_RETURN_IF_ERROR(Map(expected_bytes));
  if (bytes < index_bytes || bytes % 8 != 0) {
    return UserError(path + ": too short for " + std::to_string(blocks) + " blocks");
  }
  index = reinterpret_cast<const BlockEntry*>(data + (bytes - index_bytes));
  verified = std::make_unique<std::atomic<bool>[]>(blocks);
  return blocks == 0 ? OkStatus() : CheckIndex(info, rows, index_checksum);
}

Status MappedSplit::Verify(int64_t block) const {
  if (verified[block].load(std::memory_order_acquire)) return OkStatus();
  const BlockEntry& entry = index[block];
  if (XXH3_64bits(data + entry.offset, entry.bytes) != entry.checksum) {
    return UserError(path + ": block " + std::to_string(block) + " at byte " +
                     std::to_string(entry.offset) + " does not match its checksum");
  }
  verified[block].store(true, std::memory_order_release);
  return OkStatus();
}

StatusOr<nlohmann::json> ReadMeta(const std::string& path) {
  const std::string file = path + "/" + kMetaFile;
  std::ifstream stream(file);
  if (!stream) {
    return UserError(path + ": not a prepared data set (no " + kMetaFile +
                     "); make one with `prepare`");
  }
  nlohmann::json meta = nlohmann::json::parse(stream, nullptr, /*allow_exceptions=*/false);
  if (!meta.is_object() || meta.value("format", "") != kPreparedFormat) {
    return UserError(file + ": not the meta file of a prepared data set");
  }
  if (const int version = meta.value("version", 0); version != kPreparedVersion) {
    return UserError(file + ": version " + std::to_string(version) + ", expected " +
                     std::to_string(kPreparedVersion) + "; prepare the data again");
  }
  return meta;
}

// Throws nlohmann::json::exception where an entry is missing or of another type.
void ParseInfo(const nlohmann::json& meta, DatasetInfo* info) {
  info->name = meta.at("name");
  info->rows_per_block = meta.at("rows_per_block");
  info->best_auc = meta.value("best_auc", -1.0);
  info->has_weights = meta.at("weights");
  info->has_groups = meta.at("groups");
  info->has_times = meta.at("times");
  for (const nlohmann::json& field : meta.at("numeric")) {
    info->numeric.push_back({field.at("name")});
  }
  for (const nlohmann::json& field : meta.at("categorical")) {
    info->categorical.push_back({field.at("name"), field.at("ids"), field.at("multi_hot"),
                                 field.at("pooling") == "mean", field.at("shares")});
  }
  for (int split = 0; split < 3; ++split) {
    info->rows[split] = meta.at("splits").at(SplitName(static_cast<Split>(split))).at("rows");
  }
}

Status CheckInfo(const DatasetInfo& info) {
  if (info.rows_per_block < 1) return UserError("rows_per_block must be at least 1");
  for (int64_t rows : info.rows) {
    if (rows < 0) return UserError("rows of a split are negative");
  }
  for (int i = 0; i < static_cast<int>(info.categorical.size()); ++i) {
    const DatasetInfo::Categorical& field = info.categorical[i];
    if (field.shares == -1) continue;
    if (field.shares < 0 || field.shares >= i || info.categorical[field.shares].shares != -1 ||
        info.categorical[field.shares].ids != field.ids) {
      return UserError("field " + field.name + " shares no earlier field with as many ids");
    }
  }
  return OkStatus();
}

// meta.json holds the checksums of the indexes, and these the checksums of the blocks: so the hash
// of the one, however it is spaced, stands for everything in the set.
std::string FingerprintOf(const nlohmann::json& meta) {
  const std::string text = meta.dump();
  char digits[17];
  std::snprintf(digits, sizeof digits, "%016" PRIx64,
                static_cast<uint64_t>(XXH3_64bits(text.data(), text.size())));
  return digits;
}

}  // namespace

struct Dataset::Files {
  MappedSplit splits[3];
};

Dataset::Dataset() : files_(std::make_unique<Files>()) {}
Dataset::~Dataset() = default;

StatusOr<std::unique_ptr<Dataset>> Dataset::Open(const std::string& path) {
  ELASTOR_ASSIGN_OR_RETURN(const nlohmann::json meta, ReadMeta(path));
  std::unique_ptr<Dataset> dataset(new Dataset());
  try {
    ParseInfo(meta, &dataset->info_);
    if (Status status = CheckInfo(dataset->info_); !status.ok()) {
      return UserError(path + "/" + kMetaFile + ": " + status.message());
    }
    dataset->fingerprint_ = FingerprintOf(meta);
    for (int split = 0; split < 3; ++split) {
      const Split name = static_cast<Split>(split);
      const nlohmann::json& facts = meta.at("splits").at(SplitName(name));
      ELASTOR_RETURN_IF_ERROR(dataset->files_->splits[split].Open(
          path + "/" + SplitFileName(name), dataset->info_, dataset->info_.rows[split],
          facts.at("bytes"), facts.at("index_checksum")));
    }
  } catch (const nlohmann::json::exception& error) {
    return UserError(path + "/" + kMetaFile + ": " + error.what());
  }
  return dataset;
}

int64_t Dataset::RowAt(Split split, const RowOrder& order, int64_t epoch, int64_t position) const {
  return OrderWalk(order, epoch, rows(split), info_.rows_per_block).RowAt(position);
}

Status Dataset::Read(Split split, const RowOrder& order, int64_t epoch, const Range& positions,
                     Rows* rows) const {
  const MappedSplit& file = files_->splits[static_cast<int>(split)];
  const int64_t total = this->rows(split);
  CHECK_LE(positions.begin, positions.end);
  OrderWalk walk(order, epoch, total, info_.rows_per_block);
  BlockReader reader(info_, positions.size(), rows);
  for (int64_t position = positions.begin; position < positions.end; ++position) {
    const int64_t row = walk.RowAt(position);
    const int64_t block = row / info_.rows_per_block;
    const int64_t first = block * info_.rows_per_block;
    ELASTOR_RETURN_IF_ERROR(file.Verify(block));
    reader.Append(file.data + file.index[block].offset,
                  std::min(info_.rows_per_block, total - first), row - first);
  }
  return OkStatus();
}

}  // namespace elastor
