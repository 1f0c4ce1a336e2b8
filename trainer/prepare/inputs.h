#ifndef ELASTOR_TRAINER_PREPARE_INPUTS_H_
#define ELASTOR_TRAINER_PREPARE_INPUTS_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "configs/proto/schema.pb.h"
#include "core/base/status.h"
#include "trainer/data/arrow/arrow_part.h"
#include "trainer/data/text_source.h"
#include "trainer/prepare/rows/parsed_chunk.h"
#include "trainer/prepare/rows/spill.h"

namespace elastor {

// A piece of whole records of one input. Which of them are in which chunk depends on the input
// alone.
struct TextChunk {
  uint32_t input = 0;
  uint32_t part = 0;        // among the parts of all inputs
  uint32_t number = 0;      // in its input
  int64_t text_at = 0;      // in the (unpacked) input; 0 in a table
  int64_t text_bytes = 0;   // with what has been taken from the text
  int64_t lines_taken = 0;  // from its beginning: skipped ones, and that of column names
};

// Hands out the chunks of all inputs to workers. An input is one part, or a part for each group of
// a table. Each worker keeps to one part as long as no other worker reads it, so that several gzip
// files are unpacked at once.
class InputFiles {
 public:
  // Opens every input once, so that what cannot be read is known at once. By the schema every input
  // begins with lines that are left out, then with a header.
  static StatusOr<std::unique_ptr<InputFiles>> Open(const std::vector<std::string>& paths,
                                                    const Schema& schema);

  const std::string& header(size_t input) const { return inputs_[input]->header; }
  bool is_table(size_t input) const { return inputs_[input]->table != nullptr; }
  // Returns the schema by which the rows of an input are parsed.
  Schema SchemaOf(size_t input, const Schema& schema) const;
  // Chunks that need not be read again, before the first Next.
  void Skip(const SpilledChunk& chunk);
  // The input has `chunks` chunks.
  void SkipRestOf(uint32_t input, uint32_t chunks);
  // Called (by one thread at a time an input) when all chunks of an input have been handed out.
  void set_on_end(std::function<Status(uint32_t input, uint32_t chunks)> on_end) {
    on_end_ = std::move(on_end);
  }

  // Replaces parsed->text and parsed->table. *found is false when nothing is left. *chunk: the one
  // that this worker last read. Thread-safe.
  Status Next(TextChunk* chunk, ParsedChunk* parsed, bool* found);
  // User error when an input is not what it was when it was opened.
  Status CheckUnchanged() const;
  // Whether all chunks of all inputs have been handed out, or need not be.
  bool ended() const;
  // Returns the share of all files' bytes that has been read. Thread-safe.
  double share_read() const;

 private:
  struct Input {
    std::string path;
    std::string header;
    int64_t file_bytes = 0;
    int64_t modified_ns = 0;
    std::unique_ptr<TableFile> table;  // null: text
    std::vector<int> columns;          // of the table
    std::vector<ColumnForm> forms;     // by column
    uint32_t chunks = 0;               // of the table
    uint32_t first_part = 0;
    uint32_t parts = 0;
    std::atomic<uint32_t> parts_left{0};
  };
  struct Part {
    uint32_t input = 0;
    int group = 0;                        // of a table
    int64_t rows = 0;                     // of the group
    int64_t chunk_rows = 0;               // of its chunks but the last
    uint32_t first = 0;                   // the number of its first chunk
    int64_t file_bytes = 0;               // its share of the file's
    std::map<uint32_t, int64_t> skipped;  // number, bytes
    std::atomic<bool> ended{false};
    std::atomic<int64_t> consumed{0};

    std::mutex mutex;  // guards the rest
    std::unique_ptr<TextSource> source;
    std::unique_ptr<TableRows> table_rows;
    int64_t rows_to_skip = 0;
    int64_t rows_taken = 0;
    uint32_t next = 0;
    int64_t text_at = 0;
  };
  explicit InputFiles(const Schema& schema);
  StatusOr<std::unique_ptr<TextSource>> OpenSource(const std::string& path) const;
  Status OpenText(Input* input);
  Status OpenParts(Input* input, const Schema& schema);
  Status ReadBegin(const std::string& path, TextSource* source, std::string* header) const;
  // Returns the place behind the line or record that begins at text[begin]; 0: it does not end.
  // `line`: its number in the input.
  size_t EndOfLine(std::string_view text, size_t begin, int64_t line) const;
  // Each reads the next chunk of a part, but for chunk->part; an empty one at the end.
  Status ReadText(Part* part, TextChunk* chunk, ParsedChunk* parsed) const;
  Status ReadTable(Part* part, TextChunk* chunk, ParsedChunk* parsed) const;
  Status ReadFrom(uint32_t number, TextChunk* chunk, ParsedChunk* parsed, bool* found);
  // Takes a byte order mark, skipped lines and a header from the first chunk of an input.
  void TakeBegin(TextChunk* chunk, std::string* text) const;

  const int64_t skip_lines_;
  const int64_t begin_lines_;  // of every input, before its rows: skipped ones and header
  const int64_t chunk_bytes_;
  const std::string record_delimiter_;  // empty: every line is a record
  std::vector<std::unique_ptr<Input>> inputs_;
  std::vector<std::unique_ptr<Part>> parts_;
  std::function<Status(uint32_t, uint32_t)> on_end_;
};

}  // namespace elastor

#endif  // ELASTOR_TRAINER_PREPARE_INPUTS_H_
