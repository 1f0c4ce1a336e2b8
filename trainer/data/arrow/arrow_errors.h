#ifndef ELASTOR_TRAINER_DATA_ARROW_ARROW_ERRORS_H_
#define ELASTOR_TRAINER_DATA_ARROW_ARROW_ERRORS_H_

#include <arrow/result.h>
#include <arrow/status.h>

#include <algorithm>
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
