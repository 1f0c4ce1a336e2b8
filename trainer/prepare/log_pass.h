#ifndef ELASTOR_TRAINER_PREPARE_LOG_PASS_H_
#define ELASTOR_TRAINER_PREPARE_LOG_PASS_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "core/base/status.h"
#include "core/base/thread_pool.h"
#include "trainer/prepare/inputs.h"
#include "trainer/prepare/prepare_options.h"
#include "trainer/prepare/rows/bad_rows.h"
#include "trainer/prepare/rows/parsed_chunk.h"
#include "trainer/prepare/rows/row_parser.h"

namespace elastor {

// The rows of all inputs. The parsers collect what a pass over them asks for.
struct LogSource {
  const std::vector<std::string>& paths;
  size_t labelled;              // inputs before those of rows without labels
  const RowParser* parser;      // of labelled inputs; null: there are none
  const RowParser* unlabelled;  // of the others, likewise
  int64_t memory_bytes;
};

// Reads all inputs once, before the pass that makes rows, by all threads.
class LogPass {
 public:
  // Takes the rows of a chunk. Called by several threads at once, never twice for one thread.
  using Visit =
      std::function<Status(int thread, const TextChunk& source, const ParsedChunk& parsed)>;
  // Called by each thread at its end.
  using Finish = std::function<Status(int thread)>;

  // `phase` names the pass for people. All must outlive this.
  LogPass(const PrepareOptions& options, const LogSource& source, const char* phase,
          ThreadPool* pool);

  // User error on an unreadable input or on more than max_bad_rows bad rows.
  Status Run(const Visit& visit, const Finish& finish);

  // By input and chunk: how many records, or good rows, are before it. Every input has one place
  // more, and inputs follow one another. REQUIRES: Run.
  std::vector<std::vector<int64_t>> FirstRecords() const;
  std::vector<std::vector<int64_t>> FirstRows() const;

 private:
  struct Counts {
    uint32_t records = 0;
    uint32_t rows = 0;
  };

  Status Work(int thread, const Visit& visit);
  Status CountChunk(const TextChunk& source, ParsedChunk* parsed);
  std::vector<std::vector<int64_t>> FirstOf(uint32_t Counts::*count) const;

  const PrepareOptions& options_;
  const LogSource& source_;
  const char* const phase_;
  ThreadPool* const pool_;
  std::unique_ptr<InputFiles> inputs_;
  std::atomic<bool> failed_{false};
  std::atomic<int64_t> rows_{0};
  std::atomic<int64_t> text_read_{0};

  std::mutex mutex_;  // guards the rest
  BadRowLedger ledger_;
  std::vector<std::vector<Counts>> counts_;  // by input and chunk
  Status failure_;
};

// Calls visit(row, record) for the rows of a chunk: `row` counts good ones, `record` all. REQUIRES:
// no negatives are drawn.
template <typename Visit>
void ForEachRow(const ParsedChunk& parsed, const Visit& visit) {
  uint32_t record = 0;
  for (int64_t row = 0; row < parsed.rows; ++row, ++record) {
    for (size_t bad = record - row; bad < parsed.bad_records.size(); ++bad, ++record) {
      if (parsed.bad_records[bad] != record) break;
    }
    visit(row, record);
  }
}

}  // namespace elastor

#endif  // ELASTOR_TRAINER_PREPARE_LOG_PASS_H_
