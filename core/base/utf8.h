#ifndef ELASTOR_CORE_BASE_UTF8_H_
#define ELASTOR_CORE_BASE_UTF8_H_

#include <string_view>

namespace elastor {

// Texts of a user come as bytes; what goes into JSON or protobuf must be UTF-8.

// How many bytes the first character of `text` has; 0 when it is none, or `text` is empty.
int Utf8Bytes(std::string_view text);

bool IsUtf8(std::string_view text);

}  // namespace elastor

#endif  // ELASTOR_CORE_BASE_UTF8_H_
