#include "trainer/data/dataset_writer.h"

#include <fcntl.h>
#include <glog/logging.h>
#include <sys/file.h>
#include <unistd.h>
#include <xxhash.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <system_error>

#include "core/base/file.h"
#include "trainer/data/block_format.h"

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

Status SyncFolder(const std::string& path) {
  const int folder = open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0) return WriteError(path);
  const int outcome = fsync(folder);
  close(folder);
  return outcome == 0 ? OkStatus() : WriteError(path);
}

}  // namespace

// A split file being written: blocks, then their index.
struct DatasetWriter::SplitFile {
  explicit SplitFile(AtomicFileWriter writer) : file(std::move(writer)) {}

  AtomicFileWriter file;
  int64_t rows = 0;
  int64_t bytes = 0;
  std::vector<BlockEntry> index;
  uint64_t index_checksum = 0;
};

DatasetWriter::DatasetWriter(std::string path, const DatasetInfo& info)
    : path_(std::move(path)), partial_path_(path_ + ".partial"), info_(info) {
  if (info_.rows_per_block == 0) info_.rows_per_block = kDefaultRowsPerBlock;
}

DatasetWriter::~DatasetWriter() {
  if (lock_ >= 0 && !committed_) {
    std::error_code ignored;
    std::filesystem::remove_all(partial_path_, ignored);
  }
  if (lock_ >= 0) close(lock_);
}

StatusOr<std::unique_ptr<DatasetWriter>> DatasetWriter::Create(const std::string& path,
                                                               const DatasetInfo& info) {
  std::unique_ptr<DatasetWriter> writer(new DatasetWriter(WithoutTrailingSlash(path), info));
  ELASTOR_RETURN_IF_ERROR(writer->Prepare());
  return writer;
}

Status DatasetWriter::Prepare() {
  namespace fs = std::filesystem;
  std::error_code error;
  if (fs::exists(path_, error) && !(fs::is_directory(path_, error) && fs::is_empty(path_, error))) {
    return UserError(path_ + ": output_dir exists and is not empty");
  }
  fs::create_directories(partial_path_, error);
  if (error) return UserError(partial_path_ + ": cannot make the folder: " + error.message());
  lock_ = open(partial_path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (lock_ < 0) return WriteError(partial_path_);
  if (flock(lock_, LOCK_EX | LOCK_NB) != 0) {
    close(lock_);
    lock_ = -1;
    return UserError(path_ + ": output_dir is being written by another process");
  }
  for (const fs::directory_entry& left : fs::directory_iterator(partial_path_, error)) {
    fs::remove_all(left.path(), error);
  }
  for (int split = 0; split < 3; ++split) {
    ELASTOR_ASSIGN_OR_RETURN(
        AtomicFileWriter file,
        AtomicFileWriter::Open(partial_path_ + "/" + SplitFileName(static_cast<Split>(split))));
    files_[split] = std::make_unique<SplitFile>(std::move(file));
  }
  return OkStatus();
}

void DatasetWriter::SetInfo(const DatasetInfo& info) {
  for (const auto& file : files_) CHECK_EQ(file->rows, 0);
  CHECK_EQ(info.numeric.size(), info_.numeric.size());
  CHECK_EQ(info.categorical.size(), info_.categorical.size());
  const int64_t rows_per_block = info_.rows_per_block;
  info_ = info;
  info_.rows_per_block = rows_per_block;
}

Status DatasetWriter::Append(Split split, const Rows& rows) {
  return AppendEncoded(split, rows.rows, EncodeBlock(info_, rows));
}

Status DatasetWriter::AppendEncoded(Split split, int64_t rows, const std::string& block) {
  SplitFile& file = *files_[static_cast<int>(split)];
  CHECK_EQ(file.rows % info_.rows_per_block, 0) << "only the last block may be short";
  if (rows == 0) return OkStatus();
  file.index.push_back(
      {static_cast<uint64_t>(file.bytes), block.size(), XXH3_64bits(block.data(), block.size())});
  file.rows += rows;
  file.bytes += static_cast<int64_t>(block.size());
  return file.file.Append(block);
}

Status DatasetWriter::FinishSplit(int split) {
  SplitFile& file = *files_[split];
  const size_t index_bytes = file.index.size() * sizeof(BlockEntry);
  file.index_checksum = XXH3_64bits(file.index.data(), index_bytes);
  ELASTOR_RETURN_IF_ERROR(
      file.file.Append({reinterpret_cast<const char*>(file.index.data()), index_bytes}));
  file.bytes += static_cast<int64_t>(index_bytes);
  info_.rows[split] = file.rows;
  return file.file.Commit();
}

Status DatasetWriter::WriteMeta(const std::vector<NumericScale>& scales) {
  nlohmann::ordered_json meta;
  meta["format"] = kPreparedFormat;
  meta["version"] = kPreparedVersion;
  meta["name"] = info_.name;
  meta["rows_per_block"] = info_.rows_per_block;
  meta["id_bytes"] = IdBytes(info_);
  if (info_.best_auc >= 0) meta["best_auc"] = info_.best_auc;
  for (int split = 0; split < 3; ++split) {
    const SplitFile& file = *files_[split];
    meta["splits"][SplitName(static_cast<Split>(split))] = {
        {"rows", file.rows}, {"bytes", file.bytes}, {"index_checksum", file.index_checksum}};
  }
  meta["numeric"] = nlohmann::ordered_json::array();
  for (size_t field = 0; field < info_.numeric.size(); ++field) {
    const NumericScale scale = scales.empty() ? NumericScale() : scales[field];
    meta["numeric"].push_back({{"name", info_.numeric[field].name},
                               {"transform", scale.transform},
                               {"mean", scale.mean},
                               {"stddev", scale.stddev}});
  }
  meta["categorical"] = nlohmann::ordered_json::array();
  for (const DatasetInfo::Categorical& field : info_.categorical) {
    meta["categorical"].push_back({{"name", field.name},
                                   {"ids", field.ids},
                                   {"multi_hot", field.multi_hot},
                                   {"pooling", field.mean_pooling ? "mean" : "sum"}});
  }
  return WriteFileAtomically(partial_path_ + "/" + kMetaFile, meta.dump(1) + "\n");
}

Status DatasetWriter::Commit(const std::vector<NumericScale>& scales) {
  CHECK(scales.empty() || scales.size() == info_.numeric.size());
  for (int split = 0; split < 3; ++split) ELASTOR_RETURN_IF_ERROR(FinishSplit(split));
  ELASTOR_RETURN_IF_ERROR(WriteMeta(scales));
  if (rename(partial_path_.c_str(), path_.c_str()) != 0) return WriteError(path_);
  committed_ = true;
  const std::filesystem::path parent = std::filesystem::path(path_).parent_path();
  return SyncFolder(parent.empty() ? "." : parent.string());
}

}  // namespace elastor
