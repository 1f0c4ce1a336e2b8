#include "trainer/data/value_runs.h"

#include <xxhash.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "core/base/sizes.h"
#include "core/base/text.h"

namespace elastor {
namespace {

// Writes arrays one after another, through a buffer, and hashes them.
class RunWriter {
 public:
  RunWriter(WorkFile* file, int64_t at)
      : file_(file), at_(at), hash_(XXH3_createState(), &XXH3_freeState) {
    XXH3_64bits_reset(hash_.get());
  }

  template <typename T>
  Status Put(T value) {
    buffer_.append(reinterpret_cast<const char*>(&value), sizeof(value));
    return buffer_.size() < kBufferBytes ? OkStatus() : Flush();
  }
  Status Put(std::string_view bytes) {
    buffer_.append(bytes);
    return buffer_.size() < kBufferBytes ? OkStatus() : Flush();
  }
  Status Align() {
    const int64_t place = at_ + static_cast<int64_t>(buffer_.size());
    buffer_.append(RoundUpTo8(place) - place, '\0');
    return OkStatus();
  }
  Status Flush() {
    XXH3_64bits_update(hash_.get(), buffer_.data(), buffer_.size());
    ELASTOR_RETURN_IF_ERROR(file_->WriteAt(at_, buffer_));
    at_ += static_cast<int64_t>(buffer_.size());
    buffer_.clear();
    return OkStatus();
  }
  uint64_t checksum() const { return XXH3_64bits_digest(hash_.get()); }

 private:
  static constexpr size_t kBufferBytes = 1 << 20;
  WorkFile* const file_;
  int64_t at_;
  std::string buffer_;
  std::unique_ptr<XXH3_state_t, decltype(&XXH3_freeState)> hash_;
};

}  // namespace

StatusOr<ValueRun> WriteValueRun(const Vocabulary& vocabulary, WorkFile* file) {
  const std::vector<SortedValue>& values = vocabulary.sorted();
  ValueRun run;
  run.size = static_cast<int64_t>(values.size());
  run.long_values = vocabulary.long_values();
  run.bytes = run.size * 8 + RoundUpTo8(run.size * 4);
  if (run.long_values) {
    run.bytes += run.size * 8;
    for (const SortedValue& value : values) run.bytes += value.length;
    run.bytes = RoundUpTo8(run.bytes);
  } else {
    run.bytes += RoundUpTo8(run.size);
  }
  run.at = file->Reserve(run.bytes);
  RunWriter writer(file, run.at);
  for (const SortedValue& value : values) ELASTOR_RETURN_IF_ERROR(writer.Put(value.prefix));
  for (const SortedValue& value : values) ELASTOR_RETURN_IF_ERROR(writer.Put(value.number));
  ELASTOR_RETURN_IF_ERROR(writer.Align());
  if (run.long_values) {
    uint64_t end = 0;
    for (const SortedValue& value : values) {
      ELASTOR_RETURN_IF_ERROR(writer.Put(end += value.length));
    }
    for (const SortedValue& value : values) {
      const ShortText text(value.prefix, value.length);
      ELASTOR_RETURN_IF_ERROR(writer.Put(
          value.length > Vocabulary::kShort ? vocabulary.LongValue(value) : text.view()));
    }
  } else {
    for (const SortedValue& value : values) {
      ELASTOR_RETURN_IF_ERROR(writer.Put(static_cast<uint8_t>(value.length)));
    }
  }
  ELASTOR_RETURN_IF_ERROR(writer.Align());
  ELASTOR_RETURN_IF_ERROR(writer.Flush());
  run.checksum = writer.checksum();
  return run;
}

Status CheckValueRun(const ValueRun& run, const WorkFile& file) {
  if (XXH3_64bits(file.data() + run.at, run.bytes) == run.checksum) return OkStatus();
  return MachineError(StrCat("the working file of values is damaged at byte ", run.at,
                             "; begin anew with --restart"));
}

ValueRunView::ValueRunView(const ValueRun& run, const WorkFile& file) : run_(&run), file_(&file) {
  const char* at = file.data() + run.at;
  prefixes_ = reinterpret_cast<const uint64_t*>(at);
  at += run.size * 8;
  numbers_ = reinterpret_cast<const uint32_t*>(at);
  at += RoundUpTo8(run.size * 4);
  if (run.long_values) {
    ends_ = reinterpret_cast<const uint64_t*>(at);
    values_ = at + run.size * 8;
  } else {
    lengths_ = reinterpret_cast<const uint8_t*>(at);
  }
}

int64_t ValueRunView::LowerBound(std::string_view value) const {
  const uint64_t wanted = PrefixOf(value);
  int64_t begin = 0, end = size();
  ShortText text(0, 0);
  while (begin < end) {
    const int64_t middle = begin + (end - begin) / 2;
    const bool less =
        prefix(middle) != wanted ? prefix(middle) < wanted : Value(middle, &text) < value;
    (less ? begin : end) = less ? middle + 1 : middle;
  }
  return begin;
}

void ValueRunView::Forget(int64_t begin, int64_t end) const {
  const auto forget = [&](const void* first, const void* last) {
    file_->Forget(static_cast<const char*>(first) - file_->data(),
                  static_cast<const char*>(last) - static_cast<const char*>(first));
  };
  forget(prefixes_ + begin, prefixes_ + end);
  forget(numbers_ + begin, numbers_ + end);
  if (ends_ == nullptr) {
    forget(lengths_ + begin, lengths_ + end);
  } else {
    forget(ends_ + begin, ends_ + end);
    const auto value_at = [&](int64_t i) { return values_ + (i == 0 ? 0 : ends_[i - 1]); };
    forget(value_at(begin), value_at(end));
  }
}

}  // namespace elastor
