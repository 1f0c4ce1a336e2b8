#ifndef ELASTOR_TRAINER_EXPERIMENT_UTF8_H_
#define ELASTOR_TRAINER_EXPERIMENT_UTF8_H_

#include <string_view>

#include "core/base/status.h"

namespace elastor {

// What a run writes is UTF-8, as JSON must be: so is every text that it is given. User error
// "byte 4 of 'caf\xe9' is not UTF-8; expected UTF-8 text", with bytes that are not printable ASCII
// as \x and two hex digits. Overlong forms and surrogates are not UTF-8.
Status CheckUtf8(std::string_view text);

}  // namespace elastor

#endif  // ELASTOR_TRAINER_EXPERIMENT_UTF8_H_
