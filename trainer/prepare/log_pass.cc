#include "trainer/prepare/log_pass.h"

namespace elastor {

LogPass::LogPass(const PrepareOptions& options, const LogSource& source, const char* phase,
                 ThreadPool* pool)
    : options_(options),
      source_(source),
      phase_(phase),
      pool_(pool),
      ledger_(source.paths, options.schema.max_bad_rows(), nullptr),
      counts_(source.paths.size()) {}

Status LogPass::Run(const Visit& visit, const Finish& finish) {
  ELASTOR_ASSIGN_OR_RETURN(inputs_, InputFiles::Open(source_.paths, options_.schema));
  inputs_->set_on_end([this](uint32_t input, uint32_t chunks) {
    const std::lock_guard<std::mutex> lock(mutex_);
    return ledger_.EndInput(input, chunks);
  });
  pool_->Run([&](int thread) {
    Status status = Work(thread, visit);
    if (status.ok()) status = finish(thread);
    if (status.ok()) return;
    failed_ = true;
    const std::lock_guard<std::mutex> lock(mutex_);
    if (failure_.ok()) failure_ = status;
  });
  if (failure_.code() != StatusCode::kMachine) {
    ELASTOR_RETURN_IF_ERROR(inputs_->CheckUnchanged());
  }
  return failure_;
}

Status LogPass::Work(int thread, const Visit& visit) {
  ParsedChunk parsed;
  TextChunk chunk;
  while (!failed_) {
    bool found;
    ELASTOR_RETURN_IF_ERROR(inputs_->Next(&chunk, &parsed, &found));
    if (!found) break;
    (chunk.input < source_.labelled ? source_.parser : source_.unlabelled)->Parse(&parsed);
    ELASTOR_RETURN_IF_ERROR(visit(thread, chunk, parsed));
    ELASTOR_RETURN_IF_ERROR(CountChunk(chunk, &parsed));
  }
  return OkStatus();
}

Status LogPass::CountChunk(const TextChunk& source, ParsedChunk* parsed) {
  rows_ += parsed->rows;
  text_read_ += source.text_bytes;
  const std::lock_guard<std::mutex> lock(mutex_);
  std::vector<Counts>& counts = counts_[source.input];
  if (counts.size() <= source.number) counts.resize(source.number + 1);
  counts[source.number] = {static_cast<uint32_t>(parsed->records),
                           static_cast<uint32_t>(parsed->rows)};
  if (options_.progress) options_.progress({phase_, inputs_->share_read(), rows_, text_read_});
  return ledger_.Add(source.input, source.number,
                     {static_cast<int64_t>(parsed->lines + source.lines_taken), parsed->bad_rows,
                      std::move(parsed->bad), source.lines_taken});
}

std::vector<std::vector<int64_t>> LogPass::FirstOf(uint32_t Counts::*count) const {
  std::vector<std::vector<int64_t>> firsts;
  int64_t all = 0;
  for (const std::vector<Counts>& counts : counts_) {
    firsts.emplace_back();
    for (const Counts& of_chunk : counts) {
      firsts.back().push_back(all);
      all += of_chunk.*count;
    }
    firsts.back().push_back(all);
  }
  return firsts;
}

std::vector<std::vector<int64_t>> LogPass::FirstRecords() const {
  return FirstOf(&Counts::records);
}

std::vector<std::vector<int64_t>> LogPass::FirstRows() const { return FirstOf(&Counts::rows); }

}  // namespace elastor
