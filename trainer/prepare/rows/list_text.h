#ifndef ELASTOR_TRAINER_PREPARE_ROWS_LIST_TEXT_H_
#define ELASTOR_TRAINER_PREPARE_ROWS_LIST_TEXT_H_

#include <string>
#include <string_view>
#include <vector>

namespace elastor {

// Returns `text` without blanks and tabs at its ends.
std::string_view TrimBlanks(std::string_view text);

// Replaces *items by those of a list as Python, JSON and numpy write it: ['a', "b"], [1, 2],
// (1, 2), {1, 2}, ['a' 'b'], [1 2]. Items without quotes are taken as they stand, but None, null
// and nan are missing: empty texts. Returns false if `text` is no such list: it has no brackets, a
// quote stays open, an escape means nothing, an item has parts, as that of a dictionary, or items
// are left out, as in [1, 2, ..., 9].
bool BracketItems(std::string_view text, std::vector<std::string>* items);

}  // namespace elastor

#endif  // ELASTOR_TRAINER_PREPARE_ROWS_LIST_TEXT_H_
