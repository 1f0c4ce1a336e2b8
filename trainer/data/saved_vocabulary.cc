#include "trainer/data/saved_vocabulary.h"

#include <xxhash.h>

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <functional>
#include <utility>

#include "core/base/hash_text.h"
#include "core/base/text.h"
#include "trainer/data/text_source.h"

namespace elastor {
namespace {

constexpr size_t kBufferBytes = 1 << 20;
constexpr std::string_view kEscaped = "\t\n\r\\";
constexpr std::string_view kEscapes = "tnr\\";

void AppendEscaped(std::string_view value, std::string* out) {
  if (value.find_first_of(kEscaped) == std::string_view::npos) {
    out->append(value);
    return;
  }
  for (const char c : value) {
    const size_t place = kEscaped.find(c);
    if (place != std::string_view::npos) out->push_back('\\');
    out->push_back(place != std::string_view::npos ? kEscapes[place] : c);
  }
}

std::string Unescaped(std::string_view text) {
  std::string value;
  for (size_t i = 0; i < text.size(); ++i) {
    const size_t place =
        text[i] == '\\' && i + 1 < text.size() ? kEscapes.find(text[i + 1]) : std::string::npos;
    value.push_back(place != std::string::npos ? kEscaped[place] : text[i]);
    i += place != std::string::npos;
  }
  return value;
}

// Adds the file's values to *vocabulary, which after_piece, called after every piece of the file,
// may empty.
Status ReadValues(const std::string& path, const SavedVocabulary& saved, Vocabulary* vocabulary,
                  const std::function<Status()>& after_piece) {
  ELASTOR_ASSIGN_OR_RETURN(const std::unique_ptr<TextSource> source, TextSource::OpenPlain(path));
  std::unique_ptr<XXH3_state_t, decltype(&XXH3_freeState)> hash(XXH3_createState(),
                                                                &XXH3_freeState);
  XXH3_64bits_reset(hash.get());
  int64_t values = 0;
  std::string text;
  while (true) {
    ELASTOR_RETURN_IF_ERROR(source->Next(kBufferBytes, &text));
    if (text.empty()) break;
    XXH3_64bits_update(hash.get(), text.data(), text.size());
    for (size_t begin = 0; begin < text.size(); ++values) {
      const size_t end = text.find('\n', begin);
      const std::string_view line = std::string_view(text).substr(begin, end - begin);
      const int64_t before = vocabulary->size();
      vocabulary->Add(Unescaped(line.substr(0, line.find('\t'))));
      if (vocabulary->size() == before) return UserError(path + ": a value stands in two lines");
      begin = end + 1;
    }
    ELASTOR_RETURN_IF_ERROR(after_piece());
  }
  const std::string digits = HashText(XXH3_64bits_digest(hash.get()));
  if (digits == saved.checksum && values + 1 == saved.rows) return OkStatus();
  return UserError(StrCat(path, ": found ", values, " values (checksum ", digits, "), expected ",
                          saved.rows - 1, " (", saved.checksum, ", by meta.json)"));
}

}  // namespace

// XXH3-64 of bytes that come in pieces.
struct VocabularyFileWriter::Hash {
  Hash() { XXH3_64bits_reset(state.get()); }
  std::string Digest() const { return HashText(XXH3_64bits_digest(state.get())); }
  std::unique_ptr<XXH3_state_t, decltype(&XXH3_freeState)> state{XXH3_createState(),
                                                                 &XXH3_freeState};
};

std::string VocabularyFileName(const std::string& field) {
  std::string name;
  for (const char c : field) {
    const unsigned char byte = static_cast<unsigned char>(c);
    if (byte < 0x80 && (std::isalnum(byte) != 0 || c == '_' || c == '-' || c == '.')) {
      name.push_back(c);
    } else {
      char escape[4];
      std::snprintf(escape, sizeof(escape), "%%%02X", byte);
      name += escape;
    }
  }
  return name + ".tsv";
}

VocabularyFileWriter::VocabularyFileWriter(AtomicFileWriter file)
    : file_(std::move(file)), hash_(std::make_unique<Hash>()) {}

VocabularyFileWriter::~VocabularyFileWriter() = default;

StatusOr<std::unique_ptr<VocabularyFileWriter>> VocabularyFileWriter::Open(
    const std::string& path) {
  ELASTOR_ASSIGN_OR_RETURN(AtomicFileWriter file, AtomicFileWriter::Open(path));
  return std::unique_ptr<VocabularyFileWriter>(new VocabularyFileWriter(std::move(file)));
}

Status VocabularyFileWriter::Add(std::string_view value, uint64_t count) {
  AppendEscaped(value, &buffer_);
  StrAppend(&buffer_, "\t", count, "\n");
  ++lines_;
  return buffer_.size() < kBufferBytes ? OkStatus() : Flush();
}

Status VocabularyFileWriter::AddFile(const std::string& path, const SavedVocabulary& saved) {
  ELASTOR_ASSIGN_OR_RETURN(const std::unique_ptr<TextSource> source, TextSource::OpenPlain(path));
  while (true) {
    ELASTOR_RETURN_IF_ERROR(source->Next(kBufferBytes, &buffer_));
    if (buffer_.empty()) break;
    lines_ += std::ranges::count(buffer_, '\n');
    ELASTOR_RETURN_IF_ERROR(Flush());
  }
  if (lines_ + 1 == saved.rows && hash_->Digest() == saved.checksum) return OkStatus();
  return UserError(path + ": changed while it was read");
}

Status VocabularyFileWriter::Flush() {
  XXH3_64bits_update(hash_->state.get(), buffer_.data(), buffer_.size());
  ELASTOR_RETURN_IF_ERROR(file_.Append(buffer_));
  buffer_.clear();
  return OkStatus();
}

StatusOr<SavedVocabulary> VocabularyFileWriter::Finish() {
  ELASTOR_RETURN_IF_ERROR(Flush());
  ELASTOR_RETURN_IF_ERROR(file_.Commit());
  return SavedVocabulary{lines_ + 1, hash_->Digest()};
}

Status CopyVocabularyFile(const std::string& from, const std::string& to) {
  ELASTOR_ASSIGN_OR_RETURN(const std::unique_ptr<TextSource> source, TextSource::OpenPlain(from));
  ELASTOR_ASSIGN_OR_RETURN(AtomicFileWriter file, AtomicFileWriter::Open(to));
  std::string text;
  while (true) {
    ELASTOR_RETURN_IF_ERROR(source->Next(kBufferBytes, &text));
    if (text.empty()) return file.Commit();
    ELASTOR_RETURN_IF_ERROR(file.Append(text));
  }
}

StatusOr<Vocabulary> LoadVocabularyFile(const std::string& path, const SavedVocabulary& saved) {
  Vocabulary vocabulary;
  ELASTOR_RETURN_IF_ERROR(ReadValues(path, saved, &vocabulary, OkStatus));
  return vocabulary;
}

StatusOr<GivenVocabulary> ReadVocabularyFile(const std::string& path, const SavedVocabulary& saved,
                                             int64_t memory_bytes, WorkFile* values) {
  GivenVocabulary given;
  given.saved = saved;
  given.path = path;
  Vocabulary vocabulary;
  int64_t first_id = 1;
  const auto finish_run = [&]() -> Status {
    if (vocabulary.size() == 0) return OkStatus();
    given.first_ids.push_back(first_id);
    first_id += vocabulary.size();
    vocabulary.Sort();
    ELASTOR_ASSIGN_OR_RETURN(const ValueRun run, WriteValueRun(vocabulary, values));
    given.runs.push_back(run);
    vocabulary = Vocabulary();
    return OkStatus();
  };
  ELASTOR_RETURN_IF_ERROR(ReadValues(path, saved, &vocabulary, [&] {
    return vocabulary.bytes() > memory_bytes ? finish_run() : OkStatus();
  }));
  ELASTOR_RETURN_IF_ERROR(finish_run());
  return given;
}

}  // namespace elastor
