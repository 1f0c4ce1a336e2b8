#ifndef ELASTOR_TRAINER_PREPARE_ROWS_LINE_SCANNER_H_
#define ELASTOR_TRAINER_PREPARE_ROWS_LINE_SCANNER_H_

#include <bit>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

#include "core/base/byte_mask.h"

namespace elastor {

// One line of delimited text and where its columns end.
struct ScannedLine {
  uint32_t begin = 0;
  uint32_t end = 0;     // without LF or CR LF
  uint32_t next = 0;    // behind its LF
  int64_t columns = 0;  // may exceed ends.size(): further ends are not kept
  std::vector<uint32_t> ends;
};

// Finds lines and the delimiters in them, 32 bytes at a time. `text` ends in a line feed and has
// fewer than 2^31 bytes; the delimiter is not NUL. With a line feed for it, a line is one column.
class LineScanner {
 public:
  LineScanner(std::string_view text, char delimiter)
      : text_(text), delimiters_(TextBytes::Of(delimiter)), feeds_(TextBytes::Of('\n')) {}

  // Replaces *line but for the size of line->ends, the most ends to keep. False at the end.
  bool Next(ScannedLine* line) {
    if (next_ == text_.size()) return false;
    line->begin = next_;
    line->columns = 0;
    const int64_t room = static_cast<int64_t>(line->ends.size());
    while (true) {
      while (found_ == 0) Load();
      const int bit = std::countr_zero(found_);
      found_ &= found_ - 1;
      const uint32_t at = loaded_ - kStep + bit;
      if (line->columns < room) line->ends[line->columns] = at;
      ++line->columns;
      if (feed_ >> bit & 1) return Finish(at, line);
    }
  }

  // Goes on at `next`, behind the line that Next has returned.
  void Skip(uint32_t next) {
    next_ = next;
    if (next >= loaded_) {
      loaded_ = next;
      found_ = feed_ = 0;
    } else {
      found_ &= ~uint32_t{0} << (next + kStep - loaded_);
    }
  }

 private:
  static constexpr uint32_t kStep = kMaskBytes;

  void Load() {
    alignas(kStep) char tail[kStep] = {};
    const char* from = text_.data() + loaded_;
    if (loaded_ + kStep > text_.size()) {
      std::memcpy(tail, from, text_.size() - loaded_);
      from = tail;
    }
    const TextBytes bytes = TextBytes::Load(from);
    feed_ = bytes.Equal(feeds_);
    found_ = feed_ | bytes.Equal(delimiters_);
    loaded_ += kStep;
  }

  bool Finish(uint32_t feed, ScannedLine* line) {
    line->end = feed > line->begin && text_[feed - 1] == '\r' ? feed - 1 : feed;
    if (line->columns <= static_cast<int64_t>(line->ends.size())) {
      line->ends[line->columns - 1] = line->end;
    }
    line->next = next_ = feed + 1;
    return true;
  }

  const std::string_view text_;
  const TextBytes delimiters_;
  const TextBytes feeds_;
  uint32_t next_ = 0;    // where the next line begins
  uint32_t loaded_ = 0;  // bytes compared so far; the last kStep of them are in the masks
  uint32_t feed_ = 0;    // line feeds
  uint32_t found_ = 0;   // line feeds and delimiters not yet seen
};

}  // namespace elastor

#endif  // ELASTOR_TRAINER_PREPARE_ROWS_LINE_SCANNER_H_
