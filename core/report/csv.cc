#include "core/report/csv.h"

#include <charconv>
#include <cmath>

namespace elastor {

std::string CsvText(const std::string& text) {
  if (text.find_first_of(",\"\n\r") == text.npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? "\"\"" : std::string(1, c);
  return quoted + "\"";
}

std::string CsvNumber(double value) {
  if (!std::isfinite(value)) return "";
  char text[32];
  return {text, std::to_chars(text, text + sizeof(text), value).ptr};
}

}  // namespace elastor
