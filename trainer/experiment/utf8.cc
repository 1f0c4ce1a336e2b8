#include "trainer/experiment/utf8.h"

#include <cstdint>
#include <cstdio>
#include <string>

#include "core/base/utf8.h"

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

Status CheckUtf8(std::string_view text) {
  std::string_view left = text;
  while (const int bytes = Utf8Bytes(left)) left.remove_prefix(bytes);
  if (left.empty()) return OkStatus();
  return UserError("byte " + std::to_string(text.size() - left.size() + 1) + " of '" +
                   Printable(text) + "' is not UTF-8; expected UTF-8 text");
}

}  // namespace elastor
