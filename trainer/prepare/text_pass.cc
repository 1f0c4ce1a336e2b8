#include "trainer/prepare/text_pass.h"

#include <future>
#include <memory>
#include <utility>

#include "trainer/prepare/text_source.h"

namespace elastor {
namespace {

// Small enough that the values of one field stay in a core's cache while they are numbered.
constexpr int64_t kChunkBytes = 512 << 10;
constexpr int kChunksPerThread = 2;
constexpr int64_t kPrefetchRows = 12;
constexpr int64_t kWarnings = 5;

// A chunk and where it comes from.
struct SourcedChunk {
  size_t input = 0;
  ParsedChunk parsed;
};

// The texts of all inputs, one after another.
class Inputs {
 public:
  explicit Inputs(const std::vector<std::string>& paths) : paths_(paths) {}

  // Finds out at once what cannot be opened.
  Status OpenAll() {
    for (const std::string& path : paths_) {
      ELASTOR_ASSIGN_OR_RETURN(std::unique_ptr<TextSource> source, TextSource::Open(path));
      total_bytes_ += source->file_bytes();
    }
    return OkStatus();
  }

  // Fills the texts of *chunks; those left over at the end get empty ones.
  Status Read(std::vector<SourcedChunk>* chunks) {
    for (SourcedChunk& chunk : *chunks) {
      ELASTOR_RETURN_IF_ERROR(ReadOne(&chunk));
    }
    return OkStatus();
  }

  double share() const {
    const int64_t open_bytes = source_ == nullptr ? 0 : source_->consumed_bytes();
    return total_bytes_ == 0 ? 1 : static_cast<double>(done_bytes_ + open_bytes) / total_bytes_;
  }

 private:
  Status ReadOne(SourcedChunk* chunk) {
    chunk->parsed.text.clear();
    for (; next_ < paths_.size(); ++next_, source_.reset()) {
      if (source_ == nullptr) {
        ELASTOR_ASSIGN_OR_RETURN(source_, TextSource::Open(paths_[next_]));
      }
      ELASTOR_RETURN_IF_ERROR(source_->Next(kChunkBytes, &chunk->parsed.text));
      chunk->input = next_;
      if (!chunk->parsed.text.empty()) return OkStatus();
      done_bytes_ += source_->file_bytes();
    }
    return OkStatus();
  }

  const std::vector<std::string>& paths_;
  size_t next_ = 0;
  std::unique_ptr<TextSource> source_;  // of paths_[next_]; null: not open yet
  int64_t total_bytes_ = 0;
  int64_t done_bytes_ = 0;
};

class TextPass {
 public:
  TextPass(const PrepareOptions& options, ThreadPool* pool, Spill* spill)
      : options_(options),
        pool_(pool),
        spill_(spill),
        parser_(options.schema),
        lines_(options.inputs.size(), 0) {
    result_.single.resize(parser_.single_fields());
    result_.multi.resize(parser_.multi_fields());
    result_.rows_by_file.resize(options.inputs.size(), 0);
    for (const Field& field : options.schema.fields()) {
      if (field.type() == Field::NUMERIC) continue;
      const bool bag = field.type() == Field::MULTI_HOT;
      const int64_t place = bag ? multi_seen_++ : single_seen_++;
      if (field.encoding() == Field::VOCABULARY) numbered_.push_back({bag, place});
    }
  }

  StatusOr<TextPassResult> Run();

 private:
  struct NumberedField {
    bool bag;
    int64_t place;  // among the CATEGORICAL or the MULTI_HOT fields
  };
  Status Process(std::vector<SourcedChunk>* chunks);
  void NumberValues(const NumberedField& field, ParsedChunk* chunk);
  Status CountBadRows(const SourcedChunk& chunk);

  const PrepareOptions& options_;
  ThreadPool* const pool_;
  Spill* const spill_;
  const RowParser parser_;
  std::vector<NumberedField> numbered_;
  std::vector<int64_t> lines_;  // by input, before the chunk at hand
  int64_t single_seen_ = 0;
  int64_t multi_seen_ = 0;
  TextPassResult result_;
};

void TextPass::NumberValues(const NumberedField& field, ParsedChunk* chunk) {
  if (!field.bag) {
    Vocabulary& vocabulary = result_.single[field.place];
    const int64_t stride = parser_.single_fields();
    uint64_t* ids = chunk->ids.data() + field.place;
    for (int64_t row = 0; row < chunk->rows; ++row) {
      if (row + kPrefetchRows < chunk->rows) {
        vocabulary.Prefetch(chunk->TextOf(ids[(row + kPrefetchRows) * stride]));
      }
      ids[row * stride] = vocabulary.Add(chunk->TextOf(ids[row * stride]));
    }
    return;
  }
  Vocabulary& vocabulary = result_.multi[field.place];
  for (int64_t row = 0; row < chunk->rows; ++row) {
    const int64_t bag = row * parser_.multi_fields() + field.place;
    for (uint32_t i = bag == 0 ? 0 : chunk->bag_ends[bag - 1]; i < chunk->bag_ends[bag]; ++i) {
      chunk->bags[i] = vocabulary.Add(chunk->TextOf(chunk->bags[i]));
    }
  }
}

Status TextPass::CountBadRows(const SourcedChunk& chunk) {
  const std::string& path = options_.inputs[chunk.input];
  const auto place = [&](const BadRow& bad) {
    return path + ":" + std::to_string(lines_[chunk.input] + bad.line + 1) + ": " + bad.what;
  };
  int64_t number = result_.bad_rows;
  for (const BadRow& bad : chunk.parsed.bad) {
    if (number++ < kWarnings && options_.warn) options_.warn("bad row: " + place(bad));
  }
  result_.bad_rows += chunk.parsed.bad_rows;
  if (result_.bad_rows <= options_.schema.max_bad_rows()) return OkStatus();
  const std::string example = chunk.parsed.bad.empty() ? path : place(chunk.parsed.bad.front());
  return UserError(example + "; " + std::to_string(result_.bad_rows) +
                   " bad rows so far, max_bad_rows is " +
                   std::to_string(options_.schema.max_bad_rows()));
}

Status TextPass::Process(std::vector<SourcedChunk>* chunks) {
  pool_->ParallelFor(static_cast<int64_t>(chunks->size()), 1, [&](int, int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) parser_.Parse(&(*chunks)[i].parsed);
  });
  pool_->ParallelFor(static_cast<int64_t>(numbered_.size()), 1,
                     [&](int, int64_t begin, int64_t end) {
                       for (int64_t i = begin; i < end; ++i) {
                         for (SourcedChunk& chunk : *chunks) {
                           NumberValues(numbered_[i], &chunk.parsed);
                         }
                       }
                     });
  for (const SourcedChunk& chunk : *chunks) {
    ELASTOR_RETURN_IF_ERROR(CountBadRows(chunk));
    ELASTOR_RETURN_IF_ERROR(spill_->Append(chunk.parsed));
    lines_[chunk.input] += chunk.parsed.lines;
    result_.rows_by_file[chunk.input] += chunk.parsed.rows;
    result_.text_bytes += static_cast<int64_t>(chunk.parsed.text.size());
  }
  return OkStatus();
}

StatusOr<TextPassResult> TextPass::Run() {
  Inputs inputs(options_.inputs);
  ELASTOR_RETURN_IF_ERROR(inputs.OpenAll());
  // With several threads the next chunks are read (and unpacked) while these are parsed.
  const auto policy = pool_->threads() > 1 ? std::launch::async : std::launch::deferred;
  std::vector<SourcedChunk> chunks(kChunksPerThread * pool_->threads());
  std::vector<SourcedChunk> next(chunks.size());
  ELASTOR_RETURN_IF_ERROR(inputs.Read(&chunks));
  while (!chunks.front().parsed.text.empty()) {
    if (options_.progress) options_.progress("reading", inputs.share());
    std::future<Status> reading = std::async(policy, [&] { return inputs.Read(&next); });
    const Status processed = Process(&chunks);
    const Status read = reading.get();
    ELASTOR_RETURN_IF_ERROR(processed);
    ELASTOR_RETURN_IF_ERROR(read);
    chunks.swap(next);
  }
  return std::move(result_);
}

}  // namespace

StatusOr<TextPassResult> RunTextPass(const PrepareOptions& options, ThreadPool* pool,
                                     Spill* spill) {
  return TextPass(options, pool, spill).Run();
}

}  // namespace elastor
