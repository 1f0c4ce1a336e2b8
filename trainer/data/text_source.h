#ifndef ELASTOR_TRAINER_DATA_TEXT_SOURCE_H_
#define ELASTOR_TRAINER_DATA_TEXT_SOURCE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "core/base/status.h"
#include "trainer/data/unpacker.h"

namespace elastor {

// User error when `path` is no file: folders have no text, and a pipe cannot be read again.
Status CheckInputFile(const std::string& path);

// The text of one input file, plain, gzip or zstd (told by its first bytes; several members are
// joined), in pieces of whole lines. Not thread-safe.
class TextSource {
 public:
  // User error when it is not a file that can be read, or by its first bytes (of what packed data
  // hold, too) something else than text.
  static StatusOr<std::unique_ptr<TextSource>> Open(const std::string& path);
  // The same for what comes through stdin, a pipe for example; it is named "stdin" in errors.
  static StatusOr<std::unique_ptr<TextSource>> OpenStdin();
  // The same for a file of text whose first bytes may be any.
  static StatusOr<std::unique_ptr<TextSource>> OpenPlain(const std::string& path);
  ~TextSource();

  // Replaces *text by the next whole lines, about `bytes` of them (more when a line is longer); a
  // last line without a line feed gets one. Empty at the end. User error naming file and byte for
  // packed data that are cut off or damaged, and for a line of more than 64 MiB; machine error when
  // reading fails.
  Status Next(int64_t bytes, std::string* text);

  // Goes on behind the next `bytes` bytes of text, which an earlier Next(chunk_bytes) has given one
  // chunk of. User error when a packed file has another text there.
  Status Skip(int64_t bytes, int64_t chunk_bytes);

  int64_t file_bytes() const { return file_bytes_; }          // size of the file on disk
  int64_t consumed_bytes() const { return consumed_bytes_; }  // of the file, so far

 private:
  explicit TextSource(std::string path);
  static StatusOr<std::unique_ptr<TextSource>> Begin(std::unique_ptr<TextSource> source);
  // User error when text that begins so is of another kind; `where` follows the kind in it.
  Status CheckText(std::string_view begin, const std::string& where) const;
  Status Fill(std::string* text, int64_t bytes);  // appends up to `bytes`; nothing at the end
  Status FillAtEnd(std::string* text, int64_t bytes);
  int64_t RoomFor(int64_t bytes) const;
  Status FillInput();
  Status ReadPlain(std::string* text, int64_t bytes);
  Status Unpack(std::string* text, int64_t bytes);

  const std::string path_;
  int file_ = -1;
  int64_t file_bytes_ = 0;
  int64_t consumed_bytes_ = 0;
  bool at_end_ = false;
  std::string carry_;  // the beginning of a line
  std::string input_;  // bytes of the file not used yet begin at input_at_
  size_t input_at_ = 0;
  std::unique_ptr<Unpacker> unpacker_;  // null for plain text
};

}  // namespace elastor

#endif  // ELASTOR_TRAINER_DATA_TEXT_SOURCE_H_
