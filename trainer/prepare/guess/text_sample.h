#ifndef ELASTOR_TRAINER_PREPARE_GUESS_TEXT_SAMPLE_H_
#define ELASTOR_TRAINER_PREPARE_GUESS_TEXT_SAMPLE_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "core/base/status.h"

namespace elastor {

// The first lines of a file tell its layout; so many of them must have the layout that is proposed.
constexpr size_t kLayoutLines = 1000;
constexpr double kLayoutShare = 0.9;

// The first lines of raw files, without their endings; once their quotes are known, the records
// that they make.
struct TextSample {
  std::vector<std::string> paths;
  std::vector<std::vector<std::string>> lines;  // by file; no file is without lines
  size_t first_row = 0;  // the place of every file's first row, behind skipped lines and header
  bool whole = true;     // the lines are all that the files have
  // Of Parquet and Arrow files, whose rows stand here as CSV behind a header: which columns are
  // lists, whose items stand between bars; empty: text.
  std::vector<bool> lists = {};
  std::string left_out = {};  // lines of comments about columns that no field reads

  int64_t bytes() const;  // of all lines, an ending counted as one byte
};

// Reads the first megabytes. Columns of tables that no field reads are left out. User error when a
// file cannot be read, or all are empty; empty ones are left out.
StatusOr<TextSample> ReadTextSample(const std::vector<std::string>& paths);

}  // namespace elastor

#endif  // ELASTOR_TRAINER_PREPARE_GUESS_TEXT_SAMPLE_H_
