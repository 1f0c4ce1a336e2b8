#ifndef ELASTOR_TRAINER_DATA_SAVED_VOCABULARY_H_
#define ELASTOR_TRAINER_DATA_SAVED_VOCABULARY_H_

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/file.h"
#include "core/base/status.h"
#include "trainer/data/value_runs.h"
#include "trainer/data/vocabulary.h"
#include "trainer/data/work_file.h"

namespace elastor {

// A vocabulary in a prepared set: the file vocabulary/<field>.tsv, whose line i (from 1) is value
// i, a tab and its count in the training split. Within a value \t, \n, \r and \\ stand for tab,
// line feed, carriage return and backslash. Id 0 has no line.
struct SavedVocabulary {
  int64_t rows = 0;      // rows of the table: the number of lines plus 1; 0: there is no vocabulary
  std::string checksum;  // XXH3-64 of the file, 16 hex digits
};

// Returns the file name for a field. Bytes other than letters, digits, '_', '-' and '.' become %XX.
std::string VocabularyFileName(const std::string& field);

class VocabularyFileWriter {
 public:
  static StatusOr<std::unique_ptr<VocabularyFileWriter>> Open(const std::string& path);
  ~VocabularyFileWriter();
  Status Add(std::string_view value, uint64_t count);
  // Copies the lines of another file to the beginning of this one. User error when that file does
  // not, or no longer, match `saved`.
  Status AddFile(const std::string& path, const SavedVocabulary& saved);
  StatusOr<SavedVocabulary> Finish();

 private:
  explicit VocabularyFileWriter(AtomicFileWriter file);
  Status Flush();

  struct Hash;
  AtomicFileWriter file_;
  std::string buffer_;
  std::unique_ptr<Hash> hash_;
  int64_t lines_ = 0;
};

// Copies a vocabulary file, whatever its size.
Status CopyVocabularyFile(const std::string& from, const std::string& to);

// Reads the values of a vocabulary file into memory; number n has id n + 1. User error when the
// file does not match `saved`.
StatusOr<Vocabulary> LoadVocabularyFile(const std::string& path, const SavedVocabulary& saved);

// A saved vocabulary as sorted runs: value number n of run i has id first_ids[i] + n.
struct GivenVocabulary {
  SavedVocabulary saved;
  std::string path;
  std::vector<ValueRun> runs;
  std::vector<int64_t> first_ids;
};

// Reads a vocabulary file into runs, each of about `memory_bytes` at most. User error when the file
// does not match `saved`.
StatusOr<GivenVocabulary> ReadVocabularyFile(const std::string& path, const SavedVocabulary& saved,
                                             int64_t memory_bytes, WorkFile* values);

}  // namespace elastor

#endif  // ELASTOR_TRAINER_DATA_SAVED_VOCABULARY_H_
