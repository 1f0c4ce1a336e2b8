#include "trainer/prepare/inputs.h"

#include <sys/stat.h>

#include <algorithm>
#include <utility>

#include "core/base/text.h"
#include "trainer/data/file_kind.h"
#include "trainer/data/record_scanner.h"
#include "trainer/prepare/rows/column_names.h"
#include "trainer/prepare/rows/history_columns.h"

namespace elastor {
namespace {

int64_t ModifiedNs(const std::string& path, int64_t* bytes) {
  struct stat facts = {};
  if (stat(path.c_str(), &facts) != 0) return -1;
  *bytes = facts.st_size;
  return int64_t{facts.st_mtim.tv_sec} * 1'000'000'000 + facts.st_mtim.tv_nsec;
}

// Several lines before the rows must end within it.
constexpr int64_t kBeginBytes = 64 << 10;

// How large a chunk is: its numbers of one column stay in a core's cache. Long histories and many
// negatives make the rows of a text many times larger.
int64_t ChunkBytes(const Schema& schema) {
  constexpr int64_t kMost = 512 << 10, kHistoryLength = 8;
  // The first chunk holds all lines before the rows.
  const int64_t kLeast = schema.skip_lines() + schema.header() > 1 ? 2 * kBeginBytes : 4 << 10;
  int64_t length = 0;
  for (const HistoryPlace& place : HistoryPlaces(schema)) {
    length += LengthOf(schema.history(place.history));
  }
  length = std::max<int64_t>(length, 1) * (1 + schema.negatives().per_positive());
  return std::max(kMost * kHistoryLength / std::max(length, kHistoryLength), kLeast);
}

}  // namespace

Inputs::Inputs(const Schema& schema)
    : skip_lines_(schema.skip_lines()),
      begin_lines_(schema.skip_lines() + schema.header()),
      chunk_bytes_(ChunkBytes(schema)),
      record_delimiter_(schema.quoted() ? DelimiterOf(schema) : "") {}

StatusOr<std::unique_ptr<TextSource>> Inputs::OpenSource(const std::string& path) const {
  ELASTOR_ASSIGN_OR_RETURN(std::unique_ptr<TextSource> source, TextSource::Open(path));
  if (!record_delimiter_.empty()) source->ReadRecords(record_delimiter_, skip_lines_);
  return source;
}

StatusOr<std::unique_ptr<Inputs>> Inputs::Open(const std::vector<std::string>& paths,
                                               const Schema& schema) {
  std::unique_ptr<Inputs> inputs(new Inputs(schema));
  for (const std::string& path : paths) {
    auto state = std::make_unique<State>();
    state->path = path;
    ELASTOR_ASSIGN_OR_RETURN(state->source, inputs->OpenSource(path));
    state->modified_ns = ModifiedNs(path, &state->file_bytes);
    if (inputs->begin_lines_ > 0) ELASTOR_RETURN_IF_ERROR(inputs->ReadBegin(state.get()));
    state->source.reset();  // there may be more files than a process can have open
    inputs->states_.push_back(std::move(state));
  }
  return inputs;
}

size_t Inputs::EndOfLine(std::string_view text, size_t begin, int64_t line) const {
  if (record_delimiter_.empty() || line < skip_lines_) return text.find('\n', begin) + 1;
  const size_t end = EndOfRecord(text, begin, record_delimiter_);
  return end == text.npos ? 0 : end;
}

// The lines before the rows of an input, which are to be in its first chunk.
Status Inputs::ReadBegin(State* state) const {
  std::string text, more;
  ELASTOR_RETURN_IF_ERROR(state->source->Next(kBeginBytes, &text));
  if (text.starts_with(kByteOrderMark)) text.erase(0, kByteOrderMark.size());
  size_t end = 0;
  for (int64_t line = 0; line < begin_lines_; ++line) {
    const size_t begin = end;
    end = EndOfLine(text, begin, line);
    state->header = text.substr(begin, end - begin);
    // A single long line is the first chunk; several must surely be in it.
    const bool near = begin_lines_ == 1 || std::cmp_less_equal(end, kBeginBytes);
    if (end > 0 && near) continue;
    if (near) ELASTOR_RETURN_IF_ERROR(state->source->Next(kBeginBytes, &more));
    const std::string expected =
        line < skip_lines_ ? StrCat(skip_lines_, " lines to skip") : "a header line";
    if (!near || !more.empty()) {
      return UserError(StrCat(state->path, ": found ", line, " lines in the first ", kBeginBytes,
                              " bytes, expected ", expected, " there"));
    }
    return UserError(state->path + (line == 0 ? ": is empty" : ": ends after line ") +
                     (line == 0 ? "" : std::to_string(line)) + ", expected " + expected);
  }
  return OkStatus();
}

void Inputs::Skip(const SpilledChunk& chunk) {
  states_[chunk.input]->skipped[chunk.number] = chunk.text_bytes;
}

void Inputs::SkipRestOf(uint32_t input, uint32_t chunks) {
  State& state = *states_[input];
  if (state.skipped.size() != chunks) return;
  state.ended = true;
  state.consumed = state.file_bytes;
}

Status Inputs::ReadFrom(uint32_t input, TextChunk* chunk, std::string* text, bool* found) {
  State& state = *states_[input];
  if (state.source == nullptr) {
    ELASTOR_ASSIGN_OR_RETURN(state.source, OpenSource(state.path));
  }
  for (auto skip = state.skipped.find(state.next); skip != state.skipped.end();
       skip = state.skipped.find(state.next)) {
    ELASTOR_RETURN_IF_ERROR(state.source->Skip(skip->second, chunk_bytes_));
    state.text_at += skip->second;
    ++state.next;
  }
  ELASTOR_RETURN_IF_ERROR(state.source->Next(chunk_bytes_, text));
  state.consumed = state.source->consumed_bytes();
  *found = !text->empty();
  if (*found) {
    *chunk = {input, state.next++, state.text_at, static_cast<int64_t>(text->size()), 0};
    state.text_at += chunk->text_bytes;
    return OkStatus();
  }
  state.source.reset();
  state.ended = true;
  return on_end_ ? on_end_(input, state.next) : OkStatus();
}

void Inputs::TakeBegin(TextChunk* chunk, std::string* text) const {
  if (chunk->number != 0) return;
  if (text->starts_with(kByteOrderMark)) text->erase(0, kByteOrderMark.size());
  size_t end = 0;
  for (int64_t line = 0; line < begin_lines_; ++line) end = EndOfLine(*text, end, line);
  chunk->lines_taken = std::count(text->begin(), text->begin() + end, '\n');
  text->erase(0, end);
}

Status Inputs::Next(uint32_t near, TextChunk* chunk, std::string* text, bool* found) {
  const uint32_t count = static_cast<uint32_t>(states_.size());
  *found = false;
  for (bool waiting = false; !*found; waiting = true) {
    bool left = false;
    // The own input first, then the others in order; only when all are being read, wait for one.
    for (uint32_t i = 0; i <= count && !*found; ++i) {
      const uint32_t input = i == 0 ? near : i - 1;
      State& state = *states_[input];
      if (state.ended) continue;
      std::unique_lock<std::mutex> lock(state.mutex, std::defer_lock);
      if (waiting) {
        lock.lock();
      } else if (!lock.try_lock()) {
        left = true;
        continue;
      }
      if (state.ended) continue;
      ELASTOR_RETURN_IF_ERROR(ReadFrom(input, chunk, text, found));
    }
    if (!*found && !left) return OkStatus();
  }
  TakeBegin(chunk, text);
  return OkStatus();
}

Status Inputs::CheckUnchanged() const {
  for (const auto& state : states_) {
    int64_t bytes = -1;
    const int64_t modified_ns = ModifiedNs(state->path, &bytes);
    if (bytes != state->file_bytes || modified_ns != state->modified_ns) {
      return UserError(StrCat(state->path, ": changed while it was read (", state->file_bytes,
                              " bytes, now ", bytes < 0 ? "gone" : std::to_string(bytes), ")"));
    }
  }
  return OkStatus();
}

bool Inputs::ended() const {
  return std::ranges::all_of(states_, [](const auto& state) { return state->ended.load(); });
}

double Inputs::share_read() const {
  int64_t consumed = 0, bytes = 0;
  for (const auto& state : states_) {
    consumed += state->consumed;
    bytes += state->file_bytes;
  }
  return bytes == 0 ? 1 : static_cast<double>(consumed) / static_cast<double>(bytes);
}

}  // namespace elastor
