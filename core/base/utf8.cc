#include "core/base/utf8.h"

#include <cstdint>
#include <cstdio>
#include <string>

namespace elastor {
namespace {

std::string Printable(std::string_view text) {
  std::string printable;
  for (const char c : text) {
    if (c >= ' ' && c <= '~') {
      printable += c;
      continue;
    }
    char hex[8];
    snprintf(hex, sizeof(hex), "\\x%02x", static_cast<uint8_t>(c));
    printable += hex;
  }
  return printable;
}

}  // namespace

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

Status CheckUtf8(std::string_view text) {
  std::string_view left = text;
  while (const int bytes = Utf8Bytes(left)) left.remove_prefix(bytes);
  if (left.empty()) return OkStatus();
  return UserError("byte " + std::to_string(text.size() - left.size() + 1) + " of '" +
                   Printable(text) + "' is not UTF-8; expected UTF-8 text");
}

}  // namespace elastor
