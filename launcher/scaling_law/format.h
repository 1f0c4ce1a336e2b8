#ifndef ELASTOR_LAUNCHER_SCALING_LAW_FORMAT_H_
#define ELASTOR_LAUNCHER_SCALING_LAW_FORMAT_H_

#include <cstdarg>
#include <cstdio>
#include <string>

namespace elastor {

// Formats like printf. Cuts the result at 511 characters.
[[gnu::format(printf, 1, 2)]] inline std::string Format(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  char line[512];
  vsnprintf(line, sizeof(line), format, arguments);
  va_end(arguments);
  return line;
}

}  // namespace elastor

#endif  // ELASTOR_LAUNCHER_SCALING_LAW_FORMAT_H_
