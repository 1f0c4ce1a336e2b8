#ifndef ELASTOR_TRAINER_EVALUATE_PREDICTIONS_FILE_H_
#define ELASTOR_TRAINER_EVALUATE_PREDICTIONS_FILE_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "collective/communicator.h"
#include "core/base/file.h"
#include "core/base/status.h"
#include "core/task/task.h"

namespace elastor {

// predictions.csv: index,label,probability, one line a row in the order of the rows; the same bytes
// for any number of ranks. With several learned labels, or one chosen by name, the columns of each
// are NAME,NAME.probability, and that of a missing label is empty. Every rank makes its rows' text,
// rank 0 writes it. All calls are collective; nothing is at `path` before Commit.
class PredictionsFile {
 public:
  // User error, on all ranks, when the file cannot be made. communicator outlives the object.
  static StatusOr<std::unique_ptr<PredictionsFile>> Open(const std::string& path, const Task& task,
                                                         Communicator* communicator);

  // This rank's rows of a batch, from first_row of the file on: those after the rows of the ranks
  // below, and of the batches before. labels: [rows][task.labels()]; logits: [rows]
  // [task.outputs()].
  Status Append(int64_t first_row, const std::vector<float>& labels,
                const std::vector<float>& logits);
  Status Commit();

 private:
  PredictionsFile(const Task& task, Communicator* communicator)
      : task_(task), communicator_(communicator) {}

  const Task task_;
  Communicator* communicator_;
  std::optional<AtomicFileWriter> file_;  // on rank 0
  std::string gathered_;
};

}  // namespace elastor

#endif  // ELASTOR_TRAINER_EVALUATE_PREDICTIONS_FILE_H_
