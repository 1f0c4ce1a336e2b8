#ifndef ELASTOR_TRAINER_DATA_TEXT_SOURCE_H_
#define ELASTOR_TRAINER_DATA_TEXT_SOURCE_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "core/base/status.h"
#include "trainer/data/record_scanner.h"
#include "trainer/data/unpacker.h"

namespace elastor {

// Checks that `path` is a file. User error otherwise: a folder has no text, and a pipe cannot be
// read twice.
Status CheckInputFile(const std::string& path);

// Reads the text of one input file in pieces of whole lines. The file is plain, gzip or zstd, which
// its first bytes tell; several members are joined. Not thread-safe.
class TextSource {
 public:
  // Opens a file. User error when it cannot be read, or when its first bytes, unpacked if it is
  // packed, show that it is not text.
  static StatusOr<std::unique_ptr<TextSource>> Open(const std::string& path);
  // Opens stdin, for example a pipe. Errors name it "stdin".
  static StatusOr<std::unique_ptr<TextSource>> OpenStdin();
  // Opens a file and takes it for plain text, whatever its first bytes are.
  static StatusOr<std::unique_ptr<TextSource>> OpenPlain(const std::string& path);
  ~TextSource();

  // Pieces are then whole records, whose quoted values may hold line feeds, behind the first
  // `skip_lines` lines. Call it before the first Next.
  void ReadRecords(const std::string& delimiter, int64_t skip_lines) {
    records_.emplace(delimiter, skip_lines);
  }

  // Replaces *text by the next whole lines, about `bytes` of them (more when a line is longer); a
  // last line without a line feed gets one. Empty at the end. User error naming file and byte for
  // packed data that are cut off or damaged, for a line of more than 64 MiB, and for a quote that
  // stays open; machine error when reading fails.
  Status Next(int64_t bytes, std::string* text);

  // Skips the next `bytes` bytes of text, which an earlier reader got by Next(chunk_bytes). User
  // error when a packed file has different text there.
  Status Skip(int64_t bytes, int64_t chunk_bytes);

  int64_t file_bytes() const { return file_bytes_; }          // size of the file on disk
  int64_t consumed_bytes() const { return consumed_bytes_; }  // bytes of the file read so far

 private:
  explicit TextSource(std::string path);
  static StatusOr<std::unique_ptr<TextSource>> Begin(std::unique_ptr<TextSource> source);
  // User error when text that begins with `begin` is of another kind. The message names the kind,
  // then `where`.
  Status CheckText(std::string_view begin, const std::string& where) const;
  Status Fill(std::string* text, int64_t bytes);  // appends up to `bytes`; nothing at the end
  Status FillAtEnd(std::string* text, int64_t bytes);
  int64_t RoomFor(int64_t bytes) const;
  Status FillInput();
  Status ReadPlain(std::string* text, int64_t bytes);
  Status Unpack(std::string* text, int64_t bytes);
  // Sets *end to the place behind the last whole line or record of *text; 0: there is none.
  // `searched`: the bytes of earlier calls.
  Status FindEnd(const std::string& text, size_t searched, size_t* end);
  // Returns a user error that names the line where the record at hand begins. Reads the file again,
  // so nothing can be read afterwards.
  Status OpenQuoteError(const char* where);

  const std::string path_;
  int file_ = -1;
  int64_t file_bytes_ = 0;
  int64_t consumed_bytes_ = 0;
  bool at_end_ = false;
  std::string carry_;  // the beginning of a line or record
  std::optional<RecordScanner> records_;
  int64_t given_bytes_ = 0;  // of text, by Next and Skip
  std::string input_;        // bytes of the file not used yet begin at input_at_
  size_t input_at_ = 0;
  std::unique_ptr<Unpacker> unpacker_;  // null for plain text
};

}  // namespace elastor

#endif  // ELASTOR_TRAINER_DATA_TEXT_SOURCE_H_
