#include "core/report/csv.h"

#include <charconv>
#include <cmath>
#include <string_view>
#include <utility>

namespace elastor {

namespace {

std::string WithoutFormula(std::string text) {
  if (text.empty() || std::string_view("=+-@\t").find(text[0]) == std::string_view::npos) {
    return text;
  }
  double number;
  const char* const begin = text.data() + (text[0] == '+' ? 1 : 0);
  const char* const end = text.data() + text.size();
  const bool is_number = std::from_chars(begin, end, number).ptr == end;
  return is_number ? text : "'" + text;
}

std::string InQuotes(const std::string& text) {
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? "\"\"" : std::string(1, c);
  return quoted + "\"";
}

}  // namespace

std::string CsvText(std::string text) {
  text = WithoutFormula(std::move(text));
  return text.find_first_of(",\"\n\r") == text.npos ? text : InQuotes(text);
}

std::string QuotedCsvText(std::string text) { return InQuotes(WithoutFormula(std::move(text))); }

std::string CsvNumber(double value) {
  if (!std::isfinite(value)) return "";
  char text[32];
  return {text, std::to_chars(text, text + sizeof(text), value).ptr};
}

}  // namespace elastor
