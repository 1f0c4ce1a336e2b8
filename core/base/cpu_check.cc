#include "core/base/cpu_check.h"

#include <string.h>
#include <unistd.h>

#include "core/base/cpu_features.h"

namespace elastor {
namespace {

void Print(const char* text) {
  const ssize_t written = write(STDERR_FILENO, text, strlen(text));
  static_cast<void>(written);  // there is nobody left to tell
}

// 101 is the earliest priority open to programs; other static initialisers run after all of these.
__attribute__((constructor(101))) void CheckCpuBeforeMain() {
  const char* missing = MissingCpuFeature(ReadCpuFeatures());
  if (missing != nullptr) RefuseCpu(missing);
}

}  // namespace

void RefuseCpu(const char* missing_feature) {
  char line[160] = "this CPU lacks ";
  strncat(line, missing_feature, 20);
  strcat(line, "; this build needs ");
  strncat(line, kNeededCpu, 80);
  strcat(line, "\n");
  Print(line);
  _exit(3);
}

}  // namespace elastor
