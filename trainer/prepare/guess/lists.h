#ifndef ELASTOR_TRAINER_PREPARE_GUESS_LISTS_H_
#define ELASTOR_TRAINER_PREPARE_GUESS_LISTS_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "configs/proto/schema.pb.h"
#include "trainer/prepare/guess/columns.h"

namespace elastor {

// A column whose values are lists of items, or may be.
struct ListFinding {
  enum Kind {
    kNone,        // no list
    kMaybe,       // a list as well as names that have the separator in them
    kUnreadable,  // a list, and no schema reads its items
    kList
  } kind = kNone;
  Field::List form = Field::PLAIN;
  char separator = 0;   // between the items; not of BRACKETS
  int64_t longest = 1;  // items of a value
  std::string doubt;    // why the column should be looked at; never empty for the middle kinds
};

// Finds what stands between the items of a column's values. `named`: its name is of a header.
// `delimiter`: between the columns of unquoted lines, which no list can have; empty when values may
// stand in quotes.
ListFinding FindList(const SampleColumn& column, bool named, std::string_view delimiter);

}  // namespace elastor

#endif  // ELASTOR_TRAINER_PREPARE_GUESS_LISTS_H_
