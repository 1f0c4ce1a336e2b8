#ifndef ELASTOR_TRAINER_EVALUATE_ROWS_FILE_H_
#define ELASTOR_TRAINER_EVALUATE_ROWS_FILE_H_

#include <memory>
#include <optional>
#include <string>

#include "collective/communicator.h"
#include "core/base/file.h"
#include "core/base/status.h"

namespace elastor {

// A text file with one line per row, in the order of the rows; the bytes are the same for any
// number of ranks. Every rank makes its rows' text, and rank 0 writes it. All calls are collective.
// Nothing is at `path` before Commit.
class RowsFile {
 public:
  // Opens the file. User error, on all ranks, when it cannot be made. communicator outlives the
  // object.
  static StatusOr<std::unique_ptr<RowsFile>> Open(const std::string& path,
                                                  const std::string& header,
                                                  Communicator* communicator);

  // Appends the lines of this rank's rows of a batch. They follow the lines of lower ranks and of
  // earlier batches.
  Status Append(const std::string& lines);
  Status Commit();

 private:
  explicit RowsFile(Communicator* communicator) : communicator_(communicator) {}

  Communicator* communicator_;
  std::optional<AtomicFileWriter> file_;  // on rank 0
  std::string gathered_;
};

}  // namespace elastor

#endif  // ELASTOR_TRAINER_EVALUATE_ROWS_FILE_H_
