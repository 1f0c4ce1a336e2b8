#ifndef ELASTOR_TRAINER_PREPARE_WORK_APPENDER_H_
#define ELASTOR_TRAINER_PREPARE_WORK_APPENDER_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "core/base/status.h"
#include "trainer/data/work_file.h"

namespace elastor {

// Appends to a working file.
class Appender {
 public:
  explicit Appender(WorkFile* file) : file_(file) {}
  int64_t size() const { return at_ + static_cast<int64_t>(buffer_.size()); }
  Status Append(std::string_view bytes) {
    buffer_.append(bytes);
    return buffer_.size() < kBufferBytes ? OkStatus() : Flush();
  }
  Status Flush() {
    ELASTOR_RETURN_IF_ERROR(file_->WriteAt(at_, buffer_));
    at_ += static_cast<int64_t>(buffer_.size());
    buffer_.clear();
    return OkStatus();
  }

 private:
  static constexpr size_t kBufferBytes = 1 << 20;
  WorkFile* const file_;
  int64_t at_ = 0;
  std::string buffer_;
};

}  // namespace elastor

#endif  // ELASTOR_TRAINER_PREPARE_WORK_APPENDER_H_
