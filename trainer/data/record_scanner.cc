#include "trainer/data/record_scanner.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "core/base/byte_mask.h"
#include "trainer/data/file_kind.h"

namespace elastor {
namespace {

constexpr size_t kStep = kMaskBytes;

// Which of the bytes are `c`, a bit each.
uint32_t Find(TextBytes bytes, char c) { return bytes.Equal(TextBytes::Of(c)); }

// Bit i of the result is the parity of the bits 0 to i.
uint32_t PrefixParity(uint32_t bits) {
  for (int shift = 1; shift < 32; shift *= 2) bits ^= bits << shift;
  return bits;
}

}  // namespace

size_t ClosingQuote(std::string_view text, size_t open, bool* doubled) {
  for (size_t at = text.find('"', open + 1); at != text.npos; at = text.find('"', at + 2)) {
    if (at + 1 == text.size() || text[at + 1] != '"') return at;
    *doubled = true;
  }
  return text.npos;
}

size_t Unquote(std::span<char> text) {
  size_t put = 0;
  for (size_t take = 0; take < text.size(); ++take) {
    if (text[take] == '"') ++take;
    text[put++] = text[take];
  }
  return put;
}

size_t EndOfRecord(std::string_view text, size_t begin, std::string_view delimiter, bool* is_open) {
  bool unused;
  if (is_open != nullptr) *is_open = false;
  size_t feed = text.find('\n', begin);
  for (size_t at = begin; at < text.size();) {
    if (text[at] == '"') {
      at = ClosingQuote(text, at, &unused);
      if (at == text.npos) {
        if (is_open != nullptr) *is_open = true;
        return text.npos;
      }
      if (feed < at) feed = text.find('\n', at);
      ++at;
    }
    const size_t end = text.substr(0, std::min(feed, text.size())).find(delimiter, at);
    if (end == text.npos) return feed == text.npos ? feed : feed + 1;
    at = end + delimiter.size();
  }
  return text.npos;
}

bool RecordScanner::ScanRecord(std::string_view text) {
  const bool mark = at_beginning_ && last_end_ == 0 && text.starts_with(kByteOrderMark);
  const size_t end =
      EndOfRecord(text, mark ? kByteOrderMark.size() : last_end_, delimiter_, &is_open_);
  by_record_ = end == text.npos;
  scanned_ = by_record_ ? text.size() : end;
  if (by_record_) {
    is_too_long_ = is_open_ && text.size() - last_end_ > kMostRecordBytes;
    return false;
  }
  last_end_ = end;
  may_open_ = true;
  return true;
}

// While quotes stand only where values begin and end, a line feed ends a record if an even number
// of quotes is before it. Where one stands elsewhere, its record is read value by value.
size_t RecordScanner::Scan(std::string_view text) {
  for (; skip_lines_ > 0; --skip_lines_) {
    const size_t feed = text.find('\n', scanned_);
    scanned_ = feed == text.npos ? text.size() : feed + 1;
    if (feed == text.npos) return last_end_;
    last_end_ = scanned_;
  }
  const bool by_record = delimiter_.size() > 1;
  while ((by_record || by_record_) && scanned_ < text.size()) {
    if (!ScanRecord(text)) return last_end_;
  }
  while (scanned_ < text.size()) {
    if (is_open_ && scanned_ - last_end_ > kMostRecordBytes) {
      is_too_long_ = true;
      break;
    }
    const size_t count = std::min(kStep, text.size() - scanned_);
    alignas(kStep) char tail[kStep] = {};
    const char* from = text.data() + scanned_;
    if (count < kStep) from = static_cast<const char*>(std::memcpy(tail, from, count));
    const TextBytes bytes = TextBytes::Load(from);
    const uint32_t quotes = Find(bytes, '"'), feeds = Find(bytes, '\n');
    const uint32_t between = quotes | feeds | Find(bytes, delimiter_[0]);
    const uint32_t inside = PrefixParity(quotes) ^ (is_open_ ? ~0u : 0u);
    const uint32_t wrong = quotes & inside & ~(between << 1 | uint32_t{may_open_});
    const uint32_t before_wrong = wrong == 0 ? ~0u : (wrong & -wrong) - 1;
    const uint32_t ends = feeds & ~inside & before_wrong;
    if (ends != 0) last_end_ = scanned_ + kStep - std::countl_zero(ends);
    if (wrong != 0) {
      if (!ScanRecord(text)) return last_end_;
      continue;
    }
    is_open_ = (inside >> (count - 1) & 1) != 0;
    may_open_ = (between >> (count - 1) & 1) != 0;
    scanned_ += count;
  }
  return last_end_;
}

void RecordScanner::Drop(size_t end) {
  at_beginning_ = at_beginning_ && end == 0;
  last_end_ -= end;
  scanned_ -= end;
}

void RecordScanner::Restart() {
  at_beginning_ = is_open_ = by_record_ = is_too_long_ = false;
  skip_lines_ = 0;
  last_end_ = scanned_ = 0;
  may_open_ = true;
}

}  // namespace elastor
