#ifndef ELASTOR_TESTS_MUTATION_MISTAKE_H_
#define ELASTOR_TESTS_MUTATION_MISTAKE_H_

#include <cstdlib>
#include <string_view>

// Whether this process makes the mistake of this name: the one that ELASTOR_MISTAKE names.
inline bool Makes(std::string_view mistake) {
  static const char* const chosen = std::getenv("ELASTOR_MISTAKE");
  return chosen != nullptr && chosen == mistake;
}

#endif  // ELASTOR_TESTS_MUTATION_MISTAKE_H_
