#ifndef ELASTOR_TRAINER_DATA_RECORD_SCANNER_H_
#define ELASTOR_TRAINER_DATA_RECORD_SCANNER_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace elastor {

// Records of delimited text with quoted values, as in RFC 4180. A quote that begins a value opens
// it, and the next quote that is not doubled closes it. Line feeds in between belong to the value;
// every other line feed ends a record. All other quotes are characters like any other.

// The longest record in which a line feed stands within quotes. A quote that stays open longer is
// taken for a mistake.
inline constexpr size_t kMostRecordBytes = 1 << 20;

// Returns the place of the quote that closes the value opened at text[open]; npos: none does. Sets
// *doubled if a doubled quote stands before it.
size_t ClosingQuote(std::string_view text, size_t open, bool* doubled);

// Turns each doubled quote of `text` into one, in place. Returns the size that is left.
size_t Unquote(std::span<char> text);

// Returns the place behind the record that begins at text[begin], and behind its line feed; npos:
// it does not end in the text. *is_open then receives whether a quote is open.
size_t EndOfRecord(std::string_view text, size_t begin, std::string_view delimiter,
                   bool* is_open = nullptr);

// Finds where records end in text that comes piece by piece. Not thread-safe.
class RecordScanner {
 public:
  // The first `skip_lines` lines are no records: each ends at its line feed.
  RecordScanner(std::string delimiter, int64_t skip_lines)
      : delimiter_(std::move(delimiter)), skip_lines_(skip_lines) {}

  // Scans the bytes that `text`, which begins with a record, has got since the last call. Returns
  // the place behind its last whole record; 0: there is none.
  size_t Scan(std::string_view text);
  // Takes away the first `end` bytes, a number that Scan has returned.
  void Drop(size_t end);
  // Begins anew with a record.
  void Restart();

  // Returns whether the text scanned ends within quotes.
  bool is_open() const { return is_open_; }
  // Returns whether a quote has stayed open for more than kMostRecordBytes; Scan stops there.
  bool is_too_long() const { return is_too_long_; }
  size_t last_end() const { return last_end_; }  // what Scan has returned

 private:
  // Goes on from the beginning of a record that has quotes within bare values. Returns false if the
  // record does not end in the text.
  bool ScanRecord(std::string_view text);

  const std::string delimiter_;
  int64_t skip_lines_;
  bool at_beginning_ = true;  // of all text, where a byte order mark may stand
  size_t last_end_ = 0;
  size_t scanned_ = 0;
  bool is_open_ = false;
  bool may_open_ = true;  // a quote that comes next begins a value, or closed quotes go on
  bool by_record_ = false;
  bool is_too_long_ = false;
};

}  // namespace elastor

#endif  // ELASTOR_TRAINER_DATA_RECORD_SCANNER_H_
