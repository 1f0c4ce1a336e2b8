#include "trainer/evaluate/predictions_file.h"

#include <cinttypes>
#include <cstdio>
#include <numeric>
#include <utility>

#include "core/kernels/elementwise.h"
#include "glog/logging.h"

namespace elastor {
namespace {

std::string Lines(int64_t first_row, const std::vector<float>& labels,
                  const std::vector<float>& logits) {
  CHECK_EQ(labels.size(), logits.size());
  std::string text;
  char line[96];
  for (size_t i = 0; i < labels.size(); ++i) {
    const int length =
        std::snprintf(line, sizeof(line), "%" PRId64 ",%.9g,%.9g\n",
                      first_row + static_cast<int64_t>(i), labels[i], Sigmoid(logits[i]));
    text.append(line, length);
  }
  return text;
}

}  // namespace

StatusOr<std::unique_ptr<PredictionsFile>> PredictionsFile::Open(const std::string& path,
                                                                 Communicator* communicator) {
  std::unique_ptr<PredictionsFile> predictions(new PredictionsFile(communicator));
  Status status;
  if (communicator->rank() == 0) {
    StatusOr<AtomicFileWriter> file = AtomicFileWriter::Open(path);
    if (file.ok()) predictions->file_.emplace(std::move(file).value());
    status = file.ok() ? predictions->file_->Append("index,label,probability\n") : file.status();
  }
  ELASTOR_RETURN_IF_ERROR(AgreeOnStatus(*communicator, status));
  return predictions;
}

Status PredictionsFile::Append(int64_t first_row, const std::vector<float>& labels,
                               const std::vector<float>& logits) {
  const int ranks = communicator_->size();
  const int rank = communicator_->rank();
  const std::string own = Lines(first_row, labels, logits);
  std::vector<int64_t> lengths(ranks);
  lengths[rank] = static_cast<int64_t>(own.size());
  const std::vector<int64_t> words(ranks, sizeof(int64_t));
  ELASTOR_RETURN_IF_ERROR(
      communicator_->AllGatherV(Phase::kMetrics, &lengths[rank], lengths.data(), words));

  std::vector<int64_t> send(ranks, 0);
  send[0] = lengths[rank];
  const std::vector<int64_t> receive = rank == 0 ? lengths : std::vector<int64_t>(ranks, 0);
  gathered_.resize(std::accumulate(receive.begin(), receive.end(), int64_t{0}));
  ELASTOR_RETURN_IF_ERROR(
      communicator_->AllToAllV(Phase::kMetrics, own.data(), send, gathered_.data(), receive));
  return file_ ? file_->Append(gathered_) : OkStatus();
}

Status PredictionsFile::Commit() {
  return AgreeOnStatus(*communicator_, file_ ? file_->Commit() : OkStatus());
}

}  // namespace elastor
