#ifndef ELASTOR_CORE_BASE_UTF8_H_
#define ELASTOR_CORE_BASE_UTF8_H_

#include <string_view>

#include "core/base/status.h"

namespace elastor {

// A user's texts arrive as bytes; texts in JSON or protobuf must be UTF-8.

// Returns the number of bytes of the first character of `text`; 0 if they are not UTF-8 or `text`
// is empty.
int Utf8Bytes(std::string_view text);

bool IsUtf8(std::string_view text);

// Checks that a text is UTF-8. A run's outputs must be UTF-8, as JSON is, so its inputs must be
// too. User error "byte 4 of 'caf\xe9' is not UTF-8; expected UTF-8 text", with bytes that are not
// printable ASCII as \x and two hex digits. Overlong forms and surrogates are not UTF-8.
Status CheckUtf8(std::string_view text);

}  // namespace elastor

#endif  // ELASTOR_CORE_BASE_UTF8_H_
