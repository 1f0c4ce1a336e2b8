#ifndef ELASTOR_CORE_BASE_LOG_H_
#define ELASTOR_CORE_BASE_LOG_H_

#include <concepts>
#include <string>
#include <type_traits>

#include "core/base/text.h"

// Lines of the log, and checks of what the program itself must have made true: a check that fails
// is a defect of the program, never of what a user gave it (core/base/status.h). Both are glog's
// (log.cc), whose own header takes longer to compile than most files that use it.
//
//   CHECK(condition) << "details";  ends the process: "Check failed: condition details", and the
//   stack CHECK_EQ(a, b) << "details";    the same of a == b, with both values; evaluates each
//   once. NE, LT, LE, GT, GE LOG(WARNING) << "details";      one line LOG(FATAL) << "details"; one
//   line and the stack, and the end of the process
//
// Details are texts, numbers, enumerators and pointers.
namespace elastor {

// Starts the log of a program. It goes to stderr, from warnings on; glog's flags change that.
void StartLog(const char* program);

namespace log_internal {

void AppendReal(std::string* text, double value);
void AppendPointer(std::string* text, const volatile void* value);

template <typename T>
void AppendValue(std::string* text, const T& value) {
  if constexpr (std::is_null_pointer_v<T>) {
    AppendPointer(text, value);
  } else if constexpr (std::convertible_to<const T&, std::string_view>) {
    StrAppend(text, value);
  } else if constexpr (std::is_pointer_v<T>) {
    AppendPointer(text, value);
  } else if constexpr (std::is_enum_v<T>) {
    AppendValue(text, static_cast<std::underlying_type_t<T>>(value));
  } else if constexpr (std::is_floating_point_v<T>) {
    AppendReal(text, value);
  } else if constexpr (sizeof(T) == 1) {
    StrAppend(text, static_cast<int>(value));  // a bool or a byte
  } else {
    StrAppend(text, value);
  }
}

// A line that is being put together.
class Line {
 public:
  Line(const char* file, int line) : file_(file), line_(line) {}
  Line(const Line&) = delete;
  Line& operator=(const Line&) = delete;

  template <typename T>
  Line& operator<<(const T& value) {
    AppendValue(&text_, value);
    return *this;
  }

 protected:
  ~Line() = default;

  const char* file_;
  int line_;
  std::string text_;
};

class Warning : public Line {
 public:
  using Line::Line;
  ~Warning();
};

class Fatal : public Line {
 public:
  using Line::Line;
  // Begins with the check that failed and, if there are any, its values.
  Fatal(const char* file, int line, const char* check, std::string* values = nullptr);
  [[noreturn]] ~Fatal();
};

template <typename A, typename B>
__attribute__((noinline, cold)) std::string* Values(const A& a, const B& b) {
  auto* values = new std::string;  // never given back: the process ends
  AppendValue(values, a);
  *values += " vs. ";
  AppendValue(values, b);
  return values;
}

// Both values, or nothing if they compare as they should.
#define ELASTOR_DEFINE_VALUES(name, operation)                 \
  template <typename A, typename B>                            \
  std::string* Values##name(const A& a, const B& b) {          \
    if (__builtin_expect(a operation b, true)) return nullptr; \
    return Values(a, b);                                       \
  }
ELASTOR_DEFINE_VALUES(EQ, ==)
ELASTOR_DEFINE_VALUES(NE, !=)
ELASTOR_DEFINE_VALUES(LT, <)
ELASTOR_DEFINE_VALUES(LE, <=)
ELASTOR_DEFINE_VALUES(GT, >)
ELASTOR_DEFINE_VALUES(GE, >=)
#undef ELASTOR_DEFINE_VALUES

}  // namespace log_internal
}  // namespace elastor

#define ELASTOR_LOG_WARNING ::elastor::log_internal::Warning(__FILE__, __LINE__)
#define ELASTOR_LOG_FATAL ::elastor::log_internal::Fatal(__FILE__, __LINE__)
#define LOG(severity) ELASTOR_LOG_##severity

#define CHECK(condition)                        \
  while (__builtin_expect(!(condition), false)) \
  ::elastor::log_internal::Fatal(__FILE__, __LINE__, #condition)

#define ELASTOR_CHECK_VALUES(name, a, operation, b)                                 \
  while (std::string* elastor_values = ::elastor::log_internal::Values##name(a, b)) \
  ::elastor::log_internal::Fatal(__FILE__, __LINE__, #a " " #operation " " #b, elastor_values)
#define CHECK_EQ(a, b) ELASTOR_CHECK_VALUES(EQ, a, ==, b)
#define CHECK_NE(a, b) ELASTOR_CHECK_VALUES(NE, a, !=, b)
#define CHECK_LT(a, b) ELASTOR_CHECK_VALUES(LT, a, <, b)
#define CHECK_LE(a, b) ELASTOR_CHECK_VALUES(LE, a, <=, b)
#define CHECK_GT(a, b) ELASTOR_CHECK_VALUES(GT, a, >, b)
#define CHECK_GE(a, b) ELASTOR_CHECK_VALUES(GE, a, >=, b)

#endif  // ELASTOR_CORE_BASE_LOG_H_
