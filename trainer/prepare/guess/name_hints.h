#ifndef ELASTOR_TRAINER_PREPARE_GUESS_NAME_HINTS_H_
#define ELASTOR_TRAINER_PREPARE_GUESS_NAME_HINTS_H_

#include <string_view>

namespace elastor {

// What the names of columns say, as people choose them: is_click, isClick and "Clicked on Ad" say
// the same.

// How surely a name is a label's. kPartly: a word of a label stands among other words, as in
// last_click, which may as well be an input.
enum class LabelName { kNo, kPartly, kYes };
LabelName LabelNameOf(std::string_view name);

// Whether a label of that name may have more than two values: click and target may; class and
// income are names of inputs as well.
bool IsLabelNameAlone(std::string_view name);

bool IsRatingName(std::string_view name);    // rating, stars, score
bool IsTimeName(std::string_view name);      // timestamp, date, created_at
bool IsBirthName(std::string_view name);     // a time that is no row's
bool IsQuantityName(std::string_view name);  // age, price, num_visits
bool IsThingName(std::string_view name);     // user_id, zip, C14: numbers that name things
bool IsPlaceName(std::string_view name);     // country, whose codes have NA for Namibia
bool IsListName(std::string_view name);      // genres, tags, item_list
bool IsSeriesName(std::string_view name);    // hist_items: a list in order of time

}  // namespace elastor

#endif  // ELASTOR_TRAINER_PREPARE_GUESS_NAME_HINTS_H_
