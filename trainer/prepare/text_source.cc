#include "trainer/prepare/text_source.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "trainer/prepare/file_kind.h"

namespace elastor {
namespace {

constexpr size_t kInputBytes = 1 << 18;
constexpr size_t kLongestLine = 64 << 20;
constexpr int kGzipWindow = 15 + 16;  // zlib: largest window, gzip header and trailer

Status ReadError(const std::string& path) {
  return MachineError(path + ": cannot read: " + std::strerror(errno));
}

// The first bytes of what gzip data hold, as far as they can be unpacked.
std::string FirstUnpacked(std::string packed) {
  std::string text(kKindBytes, '\0');
  z_stream stream = {};
  if (inflateInit2(&stream, kGzipWindow) != Z_OK) return "";
  stream.next_in = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_in = static_cast<uInt>(packed.size());
  stream.next_out = reinterpret_cast<Bytef*>(text.data());
  stream.avail_out = static_cast<uInt>(text.size());
  inflate(&stream, Z_SYNC_FLUSH);
  text.resize(text.size() - stream.avail_out);
  inflateEnd(&stream);
  return text;
}

}  // namespace

Status CheckInputFile(const std::string& path) {
  struct stat facts = {};
  if (stat(path.c_str(), &facts) != 0) {
    return UserError(path + ": cannot open: " + std::strerror(errno));
  }
  if (S_ISREG(facts.st_mode)) return OkStatus();
  return UserError(path + (S_ISDIR(facts.st_mode) ? ": is a folder" : ": is a pipe or a device") +
                   ", expected a file, as it may be read again");
}

struct TextSource::Inflater {
  z_stream stream = {};
  bool inside_member = false;
  ~Inflater() { inflateEnd(&stream); }
};

TextSource::TextSource(std::string path) : path_(std::move(path)) {}

TextSource::~TextSource() {
  if (file_ >= 0) close(file_);
}

StatusOr<std::unique_ptr<TextSource>> TextSource::OpenPlain(const std::string& path) {
  std::unique_ptr<TextSource> source(new TextSource(path));
  ELASTOR_RETURN_IF_ERROR(CheckInputFile(path));
  struct stat facts = {};
  source->file_ = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (source->file_ < 0 || fstat(source->file_, &facts) != 0) {
    return UserError(path + ": cannot open: " + std::strerror(errno));
  }
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
  const std::string& path = source->path_;
  if (!IsGzip(source->input_)) {
    ELASTOR_RETURN_IF_ERROR(source->CheckText(source->input_, ""));
    return source;
  }
  source->inflater_ = std::make_unique<Inflater>();
  if (inflateInit2(&source->inflater_->stream, kGzipWindow) != Z_OK) {
    return MachineError(path + ": no memory to unpack gzip data");
  }
  // What was packed may be an archive, or packed twice.
  ELASTOR_RETURN_IF_ERROR(source->CheckText(FirstUnpacked(source->input_), " within gzip data"));
  return source;
}

Status TextSource::CheckText(std::string_view begin, const char* where) const {
  const FileKind* kind = KindOfFile(begin.substr(0, kKindBytes));
  if (kind == nullptr) return OkStatus();
  return UserError(path_ + ": found " + std::string(kind->what) + where +
                   ", expected text, plain or gzip; " + std::string(kind->remedy));
}

Status TextSource::FillInput() {
  input_.resize(kInputBytes);
  input_at_ = 0;
  ssize_t got;
  do {
    got = read(file_, input_.data(), kInputBytes);
  } while (got < 0 && errno == EINTR);
  input_.resize(std::max<ssize_t>(got, 0));
  if (got < 0) return ReadError(path_);
  return OkStatus();
}

Status TextSource::Inflate(std::string* text, int64_t bytes) {
  z_stream& stream = inflater_->stream;
  const size_t before = text->size();
  text->resize(before + bytes);
  stream.next_out = reinterpret_cast<Bytef*>(text->data() + before);
  stream.avail_out = static_cast<uInt>(bytes);
  stream.next_in = reinterpret_cast<Bytef*>(input_.data() + input_at_);
  stream.avail_in = static_cast<uInt>(input_.size() - input_at_);
  const int code = inflate(&stream, Z_NO_FLUSH);
  const int64_t used = static_cast<int64_t>(input_.size() - input_at_) - stream.avail_in;
  input_at_ += used;
  consumed_bytes_ += used;
  text->resize(text->size() - stream.avail_out);
  inflater_->inside_member = code != Z_STREAM_END;
  if (code == Z_STREAM_END) inflateReset(&stream);
  if (code == Z_OK || code == Z_STREAM_END || code == Z_BUF_ERROR) return OkStatus();
  if (code == Z_MEM_ERROR) return MachineError(path_ + ": no memory to unpack gzip data");
  return UserError(path_ + ": damaged gzip data at byte " + std::to_string(consumed_bytes_) + " (" +
                   (stream.msg != nullptr ? stream.msg : "no reason given") + ")");
}

// The file is used up, but zlib may still hold output.
Status TextSource::FillAtEnd(std::string* text, int64_t bytes) {
  if (inflater_ != nullptr && inflater_->inside_member) {
    const size_t before = text->size();
    ELASTOR_RETURN_IF_ERROR(Inflate(text, bytes));
    if (text->size() > before || !inflater_->inside_member) return OkStatus();
    return UserError(path_ + ": gzip data cut off at byte " + std::to_string(consumed_bytes_) +
                     " (the end of the file)");
  }
  at_end_ = true;
  return OkStatus();
}

// Straight into the text, without a detour through the input buffer.
Status TextSource::ReadPlain(std::string* text, int64_t bytes) {
  const size_t before = text->size();
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
  if (used_up && inflater_ == nullptr) return ReadPlain(text, bytes);
  if (used_up) ELASTOR_RETURN_IF_ERROR(FillInput());
  if (input_.empty()) return FillAtEnd(text, bytes);
  if (inflater_ != nullptr) return Inflate(text, bytes);
  const size_t taken = std::min<size_t>(bytes, input_.size() - input_at_);
  text->append(input_, input_at_, taken);
  input_at_ += taken;
  consumed_bytes_ += static_cast<int64_t>(taken);
  return OkStatus();
}

Status TextSource::Next(int64_t bytes, std::string* text) {
  text->clear();
  text->swap(carry_);
  size_t searched = 0;  // text before this has no line feed
  size_t end = std::string::npos;
  while (!at_end_) {
    const int64_t room = bytes - static_cast<int64_t>(text->size());
    if (room <= 0) {
      end = text->rfind('\n');
      if (end != std::string::npos && end >= searched) break;
      searched = text->size();
      if (searched > kLongestLine) {
        return UserError(path_ + ": a line of more than 64 MiB before byte " +
                         std::to_string(consumed_bytes_) + "; is this a text file?");
      }
    }
    ELASTOR_RETURN_IF_ERROR(Fill(text, room > 0 ? room : bytes));
  }
  if (at_end_) {
    if (!text->empty() && text->back() != '\n') text->push_back('\n');
    return OkStatus();
  }
  carry_.assign(*text, end + 1);
  text->resize(end + 1);
  return OkStatus();
}

Status TextSource::Skip(int64_t bytes, int64_t chunk_bytes) {
  if (inflater_ != nullptr) {
    std::string text;
    ELASTOR_RETURN_IF_ERROR(Next(chunk_bytes, &text));
    if (static_cast<int64_t>(text.size()) == bytes) return OkStatus();
    return UserError(path_ + ": has changed since the unfinished run began");
  }
  // Behind what was read lie, in this order, the carry and the input buffer.
  consumed_bytes_ += bytes - static_cast<int64_t>(carry_.size());
  carry_.clear();
  input_.clear();
  input_at_ = 0;
  if (lseek(file_, consumed_bytes_, SEEK_SET) < 0) {
    return ReadError(path_);
  }
  return OkStatus();
}

}  // namespace elastor
