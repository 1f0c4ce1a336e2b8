#ifndef ELASTOR_CORE_BASE_UTF8_H_
#define ELASTOR_CORE_BASE_UTF8_H_

#include <string_view>

#include "core/base/status.h"

namespace elastor {

// Texts of a user come as bytes; what goes into JSON or protobuf must be UTF-8.

// How many bytes the first character of `text` has; 0 when it is none, or `text` is empty.
int Utf8Bytes(std::string_view text);

bool IsUtf8(std::string_view text);

// What a run writes is UTF-8, as JSON must be: so is every text that it is given. User error
// "byte 4 of 'caf\xe9' is not UTF-8; expected UTF-8 text", with bytes that are not printable ASCII
// as \x and two hex digits. Overlong forms and surrogates are not UTF-8.
Status CheckUtf8(std::string_view text);

}  // namespace elastor

#endif  // ELASTOR_CORE_BASE_UTF8_H_
