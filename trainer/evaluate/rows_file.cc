#include "trainer/evaluate/rows_file.h"

#include <numeric>
#include <utility>
#include <vector>

namespace elastor {

StatusOr<std::unique_ptr<RowsFile>> RowsFile::Open(const std::string& path,
                                                   const std::string& header,
                                                   Communicator* communicator) {
  std::unique_ptr<RowsFile> rows(new RowsFile(communicator));
  Status status;
  if (communicator->rank() == 0) {
    StatusOr<AtomicFileWriter> file = AtomicFileWriter::Open(path);
    if (file.ok()) rows->file_.emplace(std::move(file).value());
    status = file.ok() ? rows->file_->Append(header) : file.status();
  }
  ELASTOR_RETURN_IF_ERROR(AgreeOnStatus(*communicator, status));
  return rows;
}

Status RowsFile::Append(const std::string& lines) {
  const int ranks = communicator_->size();
  const int rank = communicator_->rank();
  std::vector<int64_t> lengths(ranks);
  lengths[rank] = static_cast<int64_t>(lines.size());
  const std::vector<int64_t> words(ranks, sizeof(int64_t));
  ELASTOR_RETURN_IF_ERROR(
      communicator_->AllGatherV(Phase::kMetrics, &lengths[rank], lengths.data(), words));

  std::vector<int64_t> send(ranks, 0);
  send[0] = lengths[rank];
  const std::vector<int64_t> receive = rank == 0 ? lengths : std::vector<int64_t>(ranks, 0);
  gathered_.resize(std::accumulate(receive.begin(), receive.end(), int64_t{0}));
  ELASTOR_RETURN_IF_ERROR(
      communicator_->AllToAllV(Phase::kMetrics, lines.data(), send, gathered_.data(), receive));
  return file_ ? file_->Append(gathered_) : OkStatus();
}

Status RowsFile::Commit() {
  return AgreeOnStatus(*communicator_, file_ ? file_->Commit() : OkStatus());
}

}  // namespace elastor
