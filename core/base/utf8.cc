#include "core/base/utf8.h"

#include <cstdint>

namespace elastor {

int Utf8Bytes(std::string_view text) {
  if (text.empty()) return 0;
  const uint8_t lead = text[0];
  if (lead < 0x80) return 1;
  if (lead < 0xc2 || lead > 0xf4) return 0;
  const int bytes = lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
  if (text.size() < static_cast<size_t>(bytes)) return 0;
  uint32_t code = lead & (0x7f >> bytes);
  for (int i = 1; i < bytes; ++i) {
    const uint8_t next = text[i];
    if ((next & 0xc0) != 0x80) return 0;
    code = code << 6 | (next & 0x3f);
  }
  const bool too_long = (bytes == 3 && code < 0x800) || (bytes == 4 && code < 0x10000);
  const bool surrogate = code >= 0xd800 && code < 0xe000;
  return too_long || surrogate || code > 0x10ffff ? 0 : bytes;
}

bool IsUtf8(std::string_view text) {
  while (!text.empty()) {
    const int bytes = Utf8Bytes(text);
    if (bytes == 0) return false;
    text.remove_prefix(bytes);
  }
  return true;
}

}  // namespace elastor
