#ifndef ELASTOR_TRAINER_DATA_ARROW_ARROW_ERRORS_H_
#define ELASTOR_TRAINER_DATA_ARROW_ARROW_ERRORS_H_

#include <arrow/result.h>
#include <arrow/status.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <stdexcept>
#include <string>
#include <utility>

// Arrow reports what is wrong by statuses and by exceptions. Here both are exceptions, which no
// function of the part's interface lets out.

namespace elastor {

inline void Check(const arrow::Status& status) {
  if (!status.ok()) throw std::runtime_error(status.message());
}

template <typename T>
T Take(arrow::Result<T> result) {
  Check(result.status());
  return std::move(result).ValueUnsafe();
}

// Returns where a text ends that is referred to by 31 bits.
inline uint32_t CheckedPlace(size_t text_bytes) {
  constexpr size_t kMostTextBytes = size_t{1} << 31;
  if (text_bytes >= kMostTextBytes) {
    throw std::runtime_error(
        "rows that lie together give more than 2 GiB of text; expected smaller row groups, shorter "
        "lists or shorter texts");
  }
  return static_cast<uint32_t>(text_bytes);
}

// Calls `read`. Returns what is wrong in one line.
template <typename Read>
std::string WrongOf(const Read& read) {
  std::string wrong;
  try {
    read();
    return wrong;
  } catch (const std::exception& error) {
    wrong = error.what();
  }
  if (wrong.empty()) wrong = "unreadable";
  wrong.resize(std::min(wrong.find('\n'), wrong.size()));
  return wrong;
}

}  // namespace elastor

#endif  // ELASTOR_TRAINER_DATA_ARROW_ARROW_ERRORS_H_
