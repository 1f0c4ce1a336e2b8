#ifndef ELASTOR_TRAINER_PREPARE_MEDIA_PAGE_TEXT_H_
#define ELASTOR_TRAINER_PREPARE_MEDIA_PAGE_TEXT_H_

#include <string>

#include "core/base/status.h"

namespace elastor {

// Returns what a reader sees of an HTML or XML page, in UTF-8: its text, without scripts and
// styles. Runs of white space are one space, or one line feed where a block of the page begins or
// ends. Zero bytes are left out, and bytes that are none of the page's encoding become U+FFFD. The
// encoding is the one that the page declares; else it is UTF-8, or Latin-1 if most bytes beyond
// ASCII are no UTF-8. User error for an encoding that is not known, and for a page of more than
// 2^30 bytes or one that libxml2 does not read to its end.
StatusOr<std::string> TextOfPage(const std::string& page);

}  // namespace elastor

#endif  // ELASTOR_TRAINER_PREPARE_MEDIA_PAGE_TEXT_H_
