#include "core/base/status.h"

#include <algorithm>
#include <cstdio>

namespace elastor {
namespace {

bool IsControl(char c) { return (c >= 0 && c < ' ' && c != '\t') || c == 0x7f; }

}  // namespace

std::string WithoutControls(std::string text) {
  if (std::ranges::none_of(text, IsControl)) return text;
  std::string shown;
  for (const char c : text) {
    char escaped[5] = "\\n";
    if (c != '\n') std::snprintf(escaped, sizeof(escaped), "\\x%02x", c);
    shown += IsControl(c) ? escaped : std::string(1, c);
  }
  return shown;
}

}  // namespace elastor
