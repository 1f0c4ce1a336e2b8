#include "core/base/text.h"

#include <charconv>
#include <cmath>
#include <cstdarg>
#include <cstdio>

namespace elastor {

void TextPiece::SetSigned(int64_t number) {
  text_ = {digits_, std::to_chars(digits_, digits_ + sizeof(digits_), number).ptr};
}

void TextPiece::SetUnsigned(uint64_t number) {
  text_ = {digits_, std::to_chars(digits_, digits_ + sizeof(digits_), number).ptr};
}

std::string StrCat(std::initializer_list<TextPiece> pieces) {
  size_t size = 0;
  for (const TextPiece& piece : pieces) size += piece.text().size();
  std::string text;
  text.reserve(size);
  StrAppend(&text, pieces);
  return text;
}

void StrAppend(std::string* text, std::initializer_list<TextPiece> pieces) {
  for (const TextPiece& piece : pieces) *text += piece.text();
}

std::string Format(const char* format, ...) {
  va_list arguments, again;
  va_start(arguments, format);
  va_copy(again, arguments);
  std::string text(std::vsnprintf(nullptr, 0, format, arguments), '\0');
  std::vsnprintf(text.data(), text.size() + 1, format, again);
  va_end(again);
  va_end(arguments);
  return text;
}

std::string Join(const std::vector<std::string>& texts, std::string_view between) {
  std::string joined;
  for (const std::string& text : texts) {
    if (&text != &texts.front()) joined += between;
    joined += text;
  }
  return joined;
}

std::string CountText(int64_t count, std::string_view noun) {
  return StrCat(count, " ", noun, count == 1 ? "" : "s");
}

std::string DurationText(double seconds) {
  const long long whole = std::llround(seconds);
  return whole >= 3600 ? Format("%lld:%02lld:%02lld", whole / 3600, whole / 60 % 60, whole % 60)
                       : Format("%lld:%02lld", whole / 60, whole % 60);
}

std::string LowerCase(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) {
    if (c >= 'A' && c <= 'Z') c += 'a' - 'A';
  }
  return lower;
}

}  // namespace elastor
