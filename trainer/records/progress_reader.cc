#include "trainer/records/progress_reader.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <string_view>

#include "core/base/file.h"
#include "trainer/records/record_json.h"

namespace elastor {
namespace {

// What the last records of some lines say.
struct LastRecords {
  int64_t step = 0;
  std::optional<TrainRecord> train;
  std::optional<EvalRecord> evaluation;
  size_t end = 0;  // of the last whole line

  bool all() const { return train && evaluation; }
};

// whole: the text begins with a line; otherwise somewhere in one, which is passed over.
LastRecords FindLastRecords(std::string_view text, bool whole) {
  LastRecords last;
  if (const size_t newline = text.rfind('\n'); newline != text.npos) last.end = newline + 1;
  size_t end = last.end;
  while (end > 0 && !last.all()) {
    const size_t newline = end > 1 ? text.rfind('\n', end - 2) : text.npos;
    if (newline == text.npos && !whole) break;
    const size_t begin = newline == text.npos ? 0 : newline + 1;
    const StatusOr<RunRecord> record = ParseRecord(text.substr(begin, end - begin));
    end = begin;
    if (!record.ok()) continue;
    last.step = std::max(last.step, record->step);
    if (const auto* train = std::get_if<TrainRecord>(&record->values); train && !last.train) {
      last.train = *train;
    }
    if (const auto* eval = std::get_if<EvalRecord>(&record->values); eval && !last.evaluation) {
      last.evaluation = *eval;
    }
  }
  return last;
}

}  // namespace

const RunProgress& ProgressReader::Read() {
  const StatusOr<int> opened = OpenFile(path_, O_RDONLY);
  const int file = opened.ok() ? *opened : -1;
  struct stat info = {};
  if (file >= 0) fstat(file, &info);
  if (info.st_ino != inode_ || info.st_size < read_bytes_) {
    progress_ = {};
    inode_ = info.st_ino;
    read_bytes_ = 0;
  }
  std::string text;
  LastRecords last;
  constexpr int64_t kFirstBytes = 16'384, kGrowth = 8;
  for (int64_t bytes = kFirstBytes; file >= 0; bytes *= kGrowth) {
    const int64_t begin = std::max(read_bytes_, info.st_size - bytes);
    text.resize(info.st_size - begin);
    const ssize_t count = pread(file, text.data(), text.size(), begin);
    text.resize(std::max<ssize_t>(0, count));
    last = FindLastRecords(text, begin == read_bytes_);
    if (!last.all() && begin > read_bytes_) continue;
    read_bytes_ = begin + static_cast<int64_t>(last.end);
    break;
  }
  if (file >= 0) close(file);
  progress_.step = std::max(progress_.step, last.step);
  if (last.train) progress_.samples_per_s = Finite(last.train->samples_per_s).value_or(0);
  if (last.evaluation) {
    progress_.auc = last.evaluation->metrics.auc;
    progress_.logloss = Finite(last.evaluation->metrics.logloss);
  }
  return progress_;
}

}  // namespace elastor
