#ifndef ELASTOR_CORE_BASE_TEXT_H_
#define ELASTOR_CORE_BASE_TEXT_H_

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

namespace elastor {

// One argument of StrCat: a text, or an integer in decimal digits. Refers to a text, which must
// outlive it. Floating-point numbers, characters and bools are refused: the caller chooses their
// digits (Format) or words.
class TextPiece {
 public:
  template <typename T>
  requires std::convertible_to<const T&, std::string_view> TextPiece(const T& text)
      : text_(text) {}  // NOLINT: implicit by design
  template <std::integral T>
  requires(sizeof(T) > 1) TextPiece(T number) {  // NOLINT: implicit by design
    if constexpr (std::signed_integral<T>) {
      SetSigned(number);
    } else {
      SetUnsigned(number);
    }
  }
  TextPiece(const TextPiece&) = delete;
  TextPiece& operator=(const TextPiece&) = delete;

  std::string_view text() const { return text_; }

 private:
  void SetSigned(int64_t number);
  void SetUnsigned(uint64_t number);

  char digits_[20];
  std::string_view text_;
};

// Returns the pieces' texts, one behind the other, in a string allocated once.
std::string StrCat(std::initializer_list<TextPiece> pieces);
template <typename... Pieces>
std::string StrCat(const Pieces&... pieces) {
  return StrCat({TextPiece(pieces)...});
}

// Appends the pieces to `text`. REQUIRES: no piece refers to `text`.
void StrAppend(std::string* text, std::initializer_list<TextPiece> pieces);
template <typename... Pieces>
void StrAppend(std::string* text, const Pieces&... pieces) {
  StrAppend(text, {TextPiece(pieces)...});
}

// Returns what printf would print.
std::string Format(const char* format, ...) __attribute__((format(printf, 1, 2)));

// Returns the texts with `between` between each two.
std::string Join(const std::vector<std::string>& texts, std::string_view between);

// Returns a count with its noun: "1 rank", "3 ranks".
std::string CountText(int64_t count, std::string_view noun);

// Returns minutes and seconds, with hours if there are any: "1:05", "2:00:07". `seconds` is rounded
// to the nearest whole number.
std::string DurationText(double seconds);

// Returns `text` with ASCII's capital letters replaced by small ones.
std::string LowerCase(std::string_view text);

}  // namespace elastor

#endif  // ELASTOR_CORE_BASE_TEXT_H_
