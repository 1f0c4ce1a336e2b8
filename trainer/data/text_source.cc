#include "trainer/data/text_source.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <span>

#include "core/base/file.h"
#include "core/base/text.h"
#include "trainer/data/file_kind.h"

namespace elastor {
namespace {

constexpr size_t kInputBytes = 1 << 18;
constexpr int64_t kLeastRead = 1 << 12;
constexpr int64_t kUnpackedBytes = 1 << 20;  // at once
constexpr size_t kLongestLine = 64 << 20;

Status ReadError(const std::string& path) {
  return MachineError(path + ": cannot read: " + std::strerror(errno));
}

// The first bytes of what packed data hold, as far as they can be unpacked.
std::string FirstUnpacked(std::string_view packed) {
  const std::unique_ptr<Unpacker> unpacker = Unpacker::For(packed);
  std::string text(kKindBytes, '\0');
  size_t size = 0;
  for (Unpacker::Step step = {.made = 1}; step.made + step.used > 0 && size < text.size();
       size += step.made) {
    step = unpacker->Unpack(packed, std::span(text).subspan(size));
    packed.remove_prefix(step.used);
  }
  text.resize(size);
  return text;
}

}  // namespace

Status CheckInputFile(const std::string& path) {
  struct stat facts = {};
  if (stat(path.c_str(), &facts) != 0) return SystemError(path, "stat");
  if (S_ISREG(facts.st_mode)) return OkStatus();
  if (S_ISDIR(facts.st_mode)) {
    return UserError(StrCat(path, ": is a folder, expected a file; '", path,
                            "/*/*' stands for the files in its folders"));
  }
  return UserError(path + ": is a pipe or a device, expected a file, as it may be read again");
}

TextSource::TextSource(std::string path) : path_(std::move(path)) {}

TextSource::~TextSource() {
  if (file_ >= 0) close(file_);
}

StatusOr<std::unique_ptr<TextSource>> TextSource::OpenPlain(const std::string& path) {
  std::unique_ptr<TextSource> source(new TextSource(path));
  ELASTOR_RETURN_IF_ERROR(CheckInputFile(path));
  struct stat facts = {};
  ELASTOR_ASSIGN_OR_RETURN(source->file_, OpenFile(path, O_RDONLY));
  if (fstat(source->file_, &facts) != 0) return SystemError(path, "stat");
  source->file_bytes_ = facts.st_size;
  ELASTOR_RETURN_IF_ERROR(source->FillInput());
  return source;
}

StatusOr<std::unique_ptr<TextSource>> TextSource::Open(const std::string& path) {
  ELASTOR_ASSIGN_OR_RETURN(std::unique_ptr<TextSource> source, OpenPlain(path));
  return Begin(std::move(source));
}

StatusOr<std::unique_ptr<TextSource>> TextSource::OpenStdin() {
  std::unique_ptr<TextSource> source(new TextSource("stdin"));
  source->file_ = dup(STDIN_FILENO);
  ELASTOR_RETURN_IF_ERROR(source->FillInput());
  return Begin(std::move(source));
}

// Looks at the first bytes, which are in the input buffer.
StatusOr<std::unique_ptr<TextSource>> TextSource::Begin(std::unique_ptr<TextSource> source) {
  source->unpacker_ = Unpacker::For(source->input_);
  if (source->unpacker_ == nullptr) {
    ELASTOR_RETURN_IF_ERROR(source->CheckText(source->input_, ""));
    return source;
  }
  // What was packed may be an archive, or packed twice.
  const std::string where = StrCat(" within ", source->unpacker_->name(), " data");
  ELASTOR_RETURN_IF_ERROR(source->CheckText(FirstUnpacked(source->input_), where));
  return source;
}

Status TextSource::CheckText(std::string_view begin, const std::string& where) const {
  const FileKind* kind = KindOfFile(begin.substr(0, kKindBytes));
  const size_t carriage_return = begin.find('\r');
  if (kind == nullptr && carriage_return != begin.npos && carriage_return + 1 < begin.size() &&
      begin.find('\n') == begin.npos) {
    return UserError(path_ + ": lines end in CR alone, expected LF or CR LF; convert them with " +
                     "tr '\\r' '\\n'");
  }
  if (kind == nullptr) return OkStatus();
  return UserError(StrCat(path_, ": found ", kind->what, where,
                          ", expected text, plain, gzip or zstd; ", kind->remedy));
}

// What is left of the file, as far as its size tells, for room that is not filled costs time too.
int64_t TextSource::RoomFor(int64_t bytes) const {
  if (file_bytes_ == 0) return bytes;
  return std::min(bytes, std::max(file_bytes_ - consumed_bytes_, kLeastRead));
}

Status TextSource::FillInput() {
  const size_t room = RoomFor(kInputBytes);
  input_.resize(room);
  input_at_ = 0;
  ssize_t got;
  do {
    got = read(file_, input_.data(), room);
  } while (got < 0 && errno == EINTR);
  input_.resize(std::max<ssize_t>(got, 0));
  if (got < 0) return ReadError(path_);
  return OkStatus();
}

Status TextSource::Unpack(std::string* text, int64_t bytes) {
  const size_t before = text->size();
  text->resize(before + std::min(bytes, kUnpackedBytes));
  const Unpacker::Step step = unpacker_->Unpack(std::string_view(input_).substr(input_at_),
                                                std::span(*text).subspan(before));
  input_at_ += step.used;
  consumed_bytes_ += static_cast<int64_t>(step.used);
  text->resize(before + step.made);
  const std::string name = unpacker_->name();
  if (step.no_memory) return MachineError(path_ + ": no memory to unpack " + name + " data");
  if (step.damage == nullptr) return OkStatus();
  return UserError(
      StrCat(path_, ": damaged ", name, " data at byte ", consumed_bytes_, " (", step.damage, ")"));
}

// The file is used up, but the unpacker may still hold text.
Status TextSource::FillAtEnd(std::string* text, int64_t bytes) {
  if (unpacker_ != nullptr && unpacker_->inside()) {
    const size_t before = text->size();
    ELASTOR_RETURN_IF_ERROR(Unpack(text, bytes));
    if (text->size() > before || !unpacker_->inside()) return OkStatus();
    return UserError(StrCat(path_, ": ", unpacker_->name(), " data cut off at byte ",
                            consumed_bytes_, " (the end of the file)"));
  }
  at_end_ = true;
  return OkStatus();
}

// Straight into the text, without a detour through the input buffer.
Status TextSource::ReadPlain(std::string* text, int64_t bytes) {
  const size_t before = text->size();
  bytes = RoomFor(bytes);
  text->resize(before + bytes);
  ssize_t got;
  do {
    got = read(file_, text->data() + before, bytes);
  } while (got < 0 && errno == EINTR);
  text->resize(before + std::max<ssize_t>(got, 0));
  if (got < 0) return ReadError(path_);
  consumed_bytes_ += got;
  at_end_ = got == 0;
  return OkStatus();
}

Status TextSource::Fill(std::string* text, int64_t bytes) {
  const bool used_up = input_at_ == input_.size();
  if (used_up && unpacker_ == nullptr) return ReadPlain(text, bytes);
  if (used_up) ELASTOR_RETURN_IF_ERROR(FillInput());
  if (input_.empty()) return FillAtEnd(text, bytes);
  if (unpacker_ != nullptr) return Unpack(text, bytes);
  const size_t taken = std::min<size_t>(bytes, input_.size() - input_at_);
  text->append(input_, input_at_, taken);
  input_at_ += taken;
  consumed_bytes_ += static_cast<int64_t>(taken);
  return OkStatus();
}

Status TextSource::OpenQuoteError(const char* where) {
  const int64_t record_at = given_bytes_ + static_cast<int64_t>(records_->last_end());
  const std::string what = StrCat(
      "a quote opens a value of the row that begins here, and none closes it within ", where,
      "; expected a closing quote before the next delimiter, and two quotes for one in a value");
  if (lseek(file_, 0, SEEK_SET) != 0) {
    return UserError(StrCat(path_, ": at byte ", record_at, " of the text: ", what));
  }
  records_.reset();
  carry_.clear();
  at_end_ = false;
  consumed_bytes_ = 0;
  ELASTOR_RETURN_IF_ERROR(FillInput());
  if (unpacker_ != nullptr) unpacker_ = Unpacker::For(input_);
  int64_t lines = 0, left = record_at;
  for (std::string piece; left > 0; left -= static_cast<int64_t>(piece.size())) {
    ELASTOR_RETURN_IF_ERROR(Next(kUnpackedBytes, &piece));
    if (piece.empty()) break;
    lines += std::ranges::count(std::string_view(piece).substr(0, left), '\n');
  }
  return UserError(StrCat(path_, ":", lines + 1, ": ", what));
}

Status TextSource::FindEnd(const std::string& text, size_t searched, size_t* end) {
  if (records_) {
    *end = records_->Scan(text);
    if (records_->is_too_long()) return OpenQuoteError("1 MiB");
  } else {
    const size_t found = std::string_view(text).substr(searched).rfind('\n');
    *end = found == std::string::npos ? 0 : searched + found + 1;
  }
  if (*end > 0 || text.size() <= kLongestLine) return OkStatus();
  return UserError(path_ + ": a line of more than 64 MiB before byte " +
                   std::to_string(consumed_bytes_) + "; is this a text file?");
}

Status TextSource::Next(int64_t bytes, std::string* text) {
  text->clear();
  text->swap(carry_);
  size_t searched = 0, end = 0;
  while (!at_end_ && end == 0) {
    const int64_t room = bytes - static_cast<int64_t>(text->size());
    if (room <= 0) {
      ELASTOR_RETURN_IF_ERROR(FindEnd(*text, searched, &end));
      searched = text->size();
    }
    if (end == 0) ELASTOR_RETURN_IF_ERROR(Fill(text, room > 0 ? room : bytes));
  }
  if (at_end_) {
    if (!text->empty() && text->back() != '\n') text->push_back('\n');
    end = text->size();
    if (records_ && records_->Scan(*text) < end) return OpenQuoteError("the rest of the file");
  }
  carry_.assign(*text, end);
  text->resize(end);
  if (records_) records_->Drop(end);
  given_bytes_ += static_cast<int64_t>(end);
  return OkStatus();
}

Status TextSource::Skip(int64_t bytes, int64_t chunk_bytes) {
  if (unpacker_ != nullptr) {
    std::string text;
    ELASTOR_RETURN_IF_ERROR(Next(chunk_bytes, &text));
    if (static_cast<int64_t>(text.size()) == bytes) return OkStatus();
    return UserError(path_ + ": has changed since the unfinished run began");
  }
  // Behind what was read lie, in this order, the carry and the input buffer.
  consumed_bytes_ += bytes - static_cast<int64_t>(carry_.size());
  given_bytes_ += bytes;
  if (records_) records_->Restart();
  carry_.clear();
  input_.clear();
  input_at_ = 0;
  if (lseek(file_, consumed_bytes_, SEEK_SET) < 0) {
    return ReadError(path_);
  }
  return OkStatus();
}

}  // namespace elastor
