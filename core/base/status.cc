#include "core/base/status.h"

#include <cstdint>
#include <cstdio>
#include <string_view>

namespace elastor {
namespace {

bool IsControl(char c) { return (c >= 0 && c < ' ' && c != '\t') || c == 0x7f; }

// The character beyond ASCII that `text` begins with, if it steers how text is shown; 0 otherwise.
// Their first bytes begin characters only, so that the text need not be UTF-8.
uint32_t SteeringCharacter(std::string_view text) {
  const auto byte = [&](size_t i) {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u;
  };
  const uint32_t two = (byte(0) & 0x1f) << 6 | (byte(1) & 0x3f);
  if (byte(0) == 0xc2) return byte(1) >= 0x80 && byte(1) < 0xa0 ? two : 0;  // C1
  if (byte(0) == 0xd8) return byte(1) == 0x9c ? two : 0;  // the Arabic letter mark
  if (byte(0) != 0xe2 || (byte(1) != 0x80 && byte(1) != 0x81)) return 0;
  const uint32_t three = 0x2000 | (byte(1) & 0x3f) << 6 | (byte(2) & 0x3f);
  const bool steers = three == 0x200e || three == 0x200f || (three >= 0x2028 && three <= 0x202e) ||
                      (three >= 0x2066 && three <= 0x2069);
  return steers && (byte(2) & 0xc0) == 0x80 ? three : 0;
}

}  // namespace

std::string WithoutControls(std::string text) {
  std::string shown;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    char escaped[7] = "\\n";
    if (const uint32_t steers = SteeringCharacter(std::string_view(text).substr(i)); steers != 0) {
      std::snprintf(escaped, sizeof(escaped), "\\u%04x", steers);
      i += steers < 0x800 ? 1 : 2;
    } else if (!IsControl(c)) {
      shown += c;
      continue;
    } else if (c != '\n') {
      std::snprintf(escaped, sizeof(escaped), "\\x%02x", c);
    }
    shown += escaped;
  }
  return shown;
}

}  // namespace elastor
