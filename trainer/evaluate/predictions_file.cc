#include "trainer/evaluate/predictions_file.h"

#include <cmath>
#include <cstdio>
#include <numeric>
#include <utility>

#include "core/kernels/elementwise.h"
#include "glog/logging.h"

namespace elastor {
namespace {

// A name in a line of commas (RFC 4180).
std::string Cell(const std::string& name) {
  if (name.find_first_of(",\"") == std::string::npos) return name;
  std::string cell = "\"";
  for (const char c : name) cell += c == '"' ? "\"\"" : std::string(1, c);
  return cell + "\"";
}

std::string Header(const Task& task) {
  std::string line = "index";
  for (const Task::Label& label : task.learned) {
    line += label.name.empty() ? ",label,probability"
                               : "," + Cell(label.name) + "," + Cell(label.name + ".probability");
  }
  return line + "\n";
}

std::string Lines(const Task& task, int64_t first_row, const std::vector<float>& labels,
                  const std::vector<float>& logits) {
  const int64_t rows = static_cast<int64_t>(labels.size()) / task.labels();
  CHECK_EQ(static_cast<int64_t>(logits.size()), rows * task.outputs());
  std::string text;
  char number[32];
  const auto add = [&](float value) {
    text.append(number, std::snprintf(number, sizeof(number), "%.9g", value));
  };
  for (int64_t row = 0; row < rows; ++row) {
    text += std::to_string(first_row + row);
    for (int64_t i = 0; i < task.outputs(); ++i) {
      const float label = labels[row * task.labels() + task.learned[i].column];
      text += ',';
      if (!std::isnan(label)) add(label);
      text += ',';
      add(Sigmoid(logits[row * task.outputs() + i]));
    }
    text += '\n';
  }
  return text;
}

}  // namespace

StatusOr<std::unique_ptr<PredictionsFile>> PredictionsFile::Open(const std::string& path,
                                                                 const Task& task,
                                                                 Communicator* communicator) {
  std::unique_ptr<PredictionsFile> predictions(new PredictionsFile(task, communicator));
  Status status;
  if (communicator->rank() == 0) {
    StatusOr<AtomicFileWriter> file = AtomicFileWriter::Open(path);
    if (file.ok()) predictions->file_.emplace(std::move(file).value());
    status = file.ok() ? predictions->file_->Append(Header(task)) : file.status();
  }
  ELASTOR_RETURN_IF_ERROR(AgreeOnStatus(*communicator, status));
  return predictions;
}

Status PredictionsFile::Append(int64_t first_row, const std::vector<float>& labels,
                               const std::vector<float>& logits) {
  const int ranks = communicator_->size();
  const int rank = communicator_->rank();
  const std::string own = Lines(task_, first_row, labels, logits);
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
