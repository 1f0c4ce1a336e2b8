#ifndef ELASTOR_CORE_BASE_STATUS_H_
#define ELASTOR_CORE_BASE_STATUS_H_

#include <optional>
#include <string>
#include <utility>

namespace elastor {

// Why an operation failed, as the code the process will end with (docs/use/troubleshooting.md).
enum class StatusCode {
  kOk = 0,
  kUser = 2,      // a flag, a file, a configuration or the data is wrong
  kMachine = 3,   // a rank, a disk or the network failed
  kDiverged = 4,  // a loss, gradient or weight is no longer finite
  kStopped = 75,  // stopped by a signal, with a checkpoint written (EX_TEMPFAIL: start it again)
};

// Returns the text with control characters other than tabs written as \n or \x1b, so that a file's
// or a name's contents break no line and steer no terminal.
std::string WithoutControls(std::string text);

// The outcome of an operation that can fail for a reason outside the program. A message is one
// line (WithoutControls) that names file, field, expected and found. Program errors are CHECKs, not
// Statuses.
class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(StatusCode code, std::string message)
      : code_(code), message_(WithoutControls(std::move(message))) {}

  bool ok() const { return code_ == StatusCode::kOk; }
  StatusCode code() const { return code_; }
  const std::string& message() const { return message_; }
  // Returns whether every rank holds this same status, so that one rank can print it for all.
  bool agreed() const { return agreed_; }
  void set_agreed() { agreed_ = true; }

 private:
  StatusCode code_ = StatusCode::kOk;
  std::string message_;
  bool agreed_ = false;
};

inline Status OkStatus() { return Status(); }
inline Status UserError(std::string message) { return {StatusCode::kUser, std::move(message)}; }
inline Status MachineError(std::string message) {
  return {StatusCode::kMachine, std::move(message)};
}
inline Status DivergedError(std::string message) {
  return {StatusCode::kDiverged, std::move(message)};
}
inline Status StoppedBySignal(std::string message) {
  return {StatusCode::kStopped, std::move(message)};
}

// A value, or the reason why there is none.
template <typename T>
class [[nodiscard]] StatusOr {
 public:
  StatusOr(Status status) : status_(std::move(status)) {}  // REQUIRES: !status.ok()
  StatusOr(T value) : value_(std::move(value)) {}

  bool ok() const { return status_.ok(); }
  const Status& status() const { return status_; }
  // REQUIRES: ok(). Otherwise std::bad_optional_access is thrown, which ends the process, instead
  // of returning arbitrary memory.
  T& value() & { return value_.value(); }
  const T& value() const& { return value_.value(); }
  T&& value() && { return std::move(value_).value(); }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

 private:
  Status status_;
  std::optional<T> value_;
};

#define ELASTOR_RETURN_IF_ERROR(expression)                                      \
  do {                                                                           \
    if (::elastor::Status status_ = (expression); !status_.ok()) return status_; \
  } while (false)

#define ELASTOR_CONCAT_INNER(a, b) a##b
#define ELASTOR_CONCAT(a, b) ELASTOR_CONCAT_INNER(a, b)
#define ELASTOR_ASSIGN_OR_RETURN(target, expression) \
  ELASTOR_ASSIGN_OR_RETURN_IMPL(ELASTOR_CONCAT(status_or_, __LINE__), target, expression)
#define ELASTOR_ASSIGN_OR_RETURN_IMPL(temporary, target, expression) \
  auto temporary = (expression);                                     \
  if (!temporary.ok()) return temporary.status();                    \
  target = std::move(temporary).value()

}  // namespace elastor

#endif  // ELASTOR_CORE_BASE_STATUS_H_
