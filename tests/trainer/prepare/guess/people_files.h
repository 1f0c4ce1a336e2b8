#ifndef ELASTOR_TESTS_TRAINER_PREPARE_GUESS_PEOPLE_FILES_H_
#define ELASTOR_TESTS_TRAINER_PREPARE_GUESS_PEOPLE_FILES_H_

#include <cstdint>
#include <string>
#include <vector>

namespace elastor {

// A column of a random file, and what its values mean.
struct TrueColumn {
  std::string name;  // that the header gives; the field's name where there is none
  enum Kind {
    kLabel,        // numbers: 0 or 1
    kAfterLabel,   // another label, known only afterwards
    kCopy,         // tells the label
    kConstant,     // says nothing
    kUnique,       // another value in every row
    kCategory,     // texts
    kNames,        // integers that name things: texts
    kSmallCounts,  // integers of which there are few: texts or numbers
    kNumber,       // numbers
    kList,         // items
    kTime,         // seconds
    kUnreadable    // numbers, times or lists in a form that no schema reads
  } kind = kCategory;
  std::vector<std::string> texts;               // by row; empty: missing
  std::vector<double> numbers;                  // by row; NaN: missing
  std::vector<std::vector<std::string>> items;  // by row
  std::vector<std::string> written;             // by row: what stands in the file, without quotes
};

// A delimited file as people and their programs write it, with its truth.
struct PeopleFile {
  std::string text;
  std::string dialect;  // delimiter, quotes and the like, for messages
  int64_t rows = 0;
  std::vector<bool> has_label;  // by row: a row without one is bad
  std::vector<TrueColumn> columns;
};

// Returns the same file for the same seed.
PeopleFile MakePeopleFile(uint64_t seed);

}  // namespace elastor

#endif  // ELASTOR_TESTS_TRAINER_PREPARE_GUESS_PEOPLE_FILES_H_
