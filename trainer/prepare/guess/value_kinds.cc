#include "trainer/prepare/guess/value_kinds.h"

#include <algorithm>
#include <cctype>
#include <chrono>
#include <iterator>
#include <string>
#include <vector>

#include "core/base/text.h"
#include "trainer/prepare/rows/time_text.h"
#include "trainer/prepare/rows/value_text.h"

namespace elastor {
namespace {

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

std::string_view Trimmed(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

// Takes a currency or a percent sign from the front or the back of *text, if there is one.
bool TakeAffix(std::string_view* text) {
  constexpr std::string_view kAffixes[] = {"$",   "€",   "£",   "¥",   "%",  "USD",
                                           "EUR", "GBP", "Rs.", "RUB", "CHF"};
  for (const std::string_view affix : kAffixes) {
    const bool front = text->starts_with(affix);
    if (!front && !text->ends_with(affix)) continue;
    front ? text->remove_prefix(affix.size()) : text->remove_suffix(affix.size());
    *text = Trimmed(*text);
    return true;
  }
  return false;
}

// Whether `text` is digits in groups of three between `between`: 1,234,567.
bool IsGrouped(std::string_view text, std::string_view between) {
  size_t group = std::min(text.find(between), text.size());
  if (group < 1 || group > 3 || group == text.size()) return false;
  for (size_t at = 0; at < text.size(); group = 3) {
    if (text.size() - at < group ||
        !std::all_of(text.begin() + at, text.begin() + at + group, IsDigit)) {
      return false;
    }
    at += group;
    if (at == text.size()) return true;
    if (!text.substr(at).starts_with(between)) return false;
    at += between.size();
  }
  return false;
}

// Whether `text` is digits with a decimal comma, thousands between points, or groups of thousands.
bool IsPunctuatedNumber(std::string_view text) {
  // Besides plain signs: the narrow blank, the blank that breaks no line, the typographic
  // apostrophe.
  for (const std::string_view between :
       {",", ".", "'", " ", "_", "\xc2\xa0", "\xe2\x80\xaf", "\xe2\x80\x99"}) {
    const std::string_view decimals = between == "," ? "." : between == "." ? "," : ".,";
    const size_t point = std::min(text.find_last_of(decimals), text.size());
    const char decimal = point < text.size() ? text[point] : '\0';
    const std::string_view fraction = text.substr(std::min(point + 1, text.size()));
    if (!std::ranges::all_of(fraction, IsDigit)) continue;
    if (IsGrouped(text.substr(0, point), between)) return true;
    if (decimal == ',' && point > 0 && point < text.size() && !fraction.empty() &&
        std::all_of(text.begin(), text.begin() + point, IsDigit)) {
      return true;
    }
  }
  return false;
}

bool IsInfinity(std::string_view text) {
  constexpr size_t kMostBytes = 8;
  if (text.size() > kMostBytes) return false;
  const std::string lower = LowerCase(text);
  return lower == "inf" || lower == "infinity";
}

bool IsDate(int year, int month, int day) {
  using namespace std::chrono;  // NOLINT: for its operators
  return year >= 1900 && year < 2100 && month > 0 && day > 0 &&
         year_month_day(std::chrono::year(year), std::chrono::month(month), std::chrono::day(day))
             .ok();
}

// A run of digits, a run of letters, or one other character.
struct Piece {
  enum Kind { kDigits, kLetters, kOther } kind;
  std::string_view text;

  int number() const {
    int value = 0;
    for (const char c : text) value = value * 10 + (c - '0');
    return value;
  }
  bool is(char c) const { return kind == kOther && text[0] == c; }
};

constexpr size_t kMostTimeBytes = 40;
constexpr int64_t kLeastTimeDigits = 3;  // 5:00

std::vector<Piece> PiecesOf(std::string_view text) {
  const auto kind_of = [](char c) {
    return IsDigit(c)                                    ? Piece::kDigits
           : std::isalpha(static_cast<unsigned char>(c)) ? Piece::kLetters
                                                         : Piece::kOther;
  };
  std::vector<Piece> pieces;
  for (size_t at = 0; at < text.size();) {
    const Piece::Kind kind = kind_of(text[at]);
    size_t end = at + 1;
    while (kind != Piece::kOther && end < text.size() && kind_of(text[end]) == kind) ++end;
    pieces.push_back({kind, text.substr(at, end - at)});
    at = end;
  }
  return pieces;
}

bool IsMonthName(std::string_view text) {
  constexpr std::string_view kMonths[] = {"jan", "feb", "mar", "apr", "may", "jun",
                                          "jul", "aug", "sep", "oct", "nov", "dec"};
  return std::ranges::find(kMonths, LowerCase(text).substr(0, 3)) != std::end(kMonths);
}

// The number of pieces of a date that `pieces` begin with; 0: with none.
size_t DatePieces(const std::vector<Piece>& pieces) {
  if (pieces.size() < 5) return 0;
  const auto digits = [&](size_t i) {
    return pieces[i].kind == Piece::kDigits && pieces[i].text.size() <= 4;
  };
  const bool between = pieces[1].kind == Piece::kOther && pieces[3].kind == Piece::kOther &&
                       (pieces[1].is('/') || pieces[1].is('-') || pieces[1].is('.')) &&
                       pieces[3].text == pieces[1].text;
  if (digits(0) && digits(2) && digits(4) && between) {
    const int a = pieces[0].number(), b = pieces[2].number(), c = pieces[4].number();
    if (pieces[0].text.size() == 4) return IsDate(a, b, c) ? 5 : 0;
    if (pieces[4].text.size() != 4 && pieces[4].text.size() != 2) return 0;
    const int year = pieces[4].text.size() == 2 ? 2000 + c : c;
    return IsDate(year, b, a) || IsDate(year, a, b) ? 5 : 0;
  }
  // 21 Oct 2014, 21/Oct/2014, Oct 21, 2014, Tue Oct 21 2014: a month's name and two numbers.
  size_t numbers = 0, months = 0, end = 0;
  bool year = false;
  for (size_t i = 0; i < pieces.size() && (numbers < 2 || months < 1); ++i) {
    if (pieces[i].is(':')) return 0;
    if (pieces[i].kind == Piece::kOther) continue;
    if (digits(i)) {
      ++numbers;
      year |= pieces[i].text.size() == 4;
    } else if (pieces[i].kind == Piece::kLetters && IsMonthName(pieces[i].text)) {
      ++months;
    } else if (i > 0) {
      return 0;
    }
    end = i + 1;
  }
  return numbers == 2 && months == 1 && year ? end : 0;
}

// Whether pieces from `at` on are the time of a day, with a zone or without.
bool IsTimeOfDay(const std::vector<Piece>& pieces, size_t at) {
  size_t numbers = 0;
  for (size_t i = at; i < pieces.size(); ++i) {
    const Piece& piece = pieces[i];
    if (piece.kind == Piece::kDigits) {
      if (numbers == 0 && piece.text.size() <= 2 && piece.number() > 23) return false;
      if (numbers == 1 && (piece.text.size() != 2 || piece.number() > 59)) return false;
      ++numbers;
    } else if (piece.kind == Piece::kLetters) {
      const std::string word = LowerCase(piece.text);
      if (word != "am" && word != "pm" && word != "z" && word != "utc" && word != "gmt") {
        return false;
      }
    } else if (std::string_view(":. +-").find(piece.text[0]) == std::string_view::npos) {
      return false;
    }
  }
  return numbers >= 2 && pieces.size() > at + 1 && pieces[at + 1].is(':');
}

}  // namespace

bool IsWrittenNumber(std::string_view text) {
  double number;
  if (ParseNumber(text, &number)) return false;
  text = Trimmed(text);
  const auto between = [&](char open, char close) {
    if (text.size() < 3 || text.front() != open || text.back() != close) return;
    text = Trimmed(text.substr(1, text.size() - 2));
  };
  between('\'', '\'');
  between('(', ')');
  const auto take_sign = [&] {
    if (text.size() > 1 && (text[0] == '-' || text[0] == '+')) text.remove_prefix(1);
  };
  take_sign();
  if (TakeAffix(&text)) take_sign();
  return ParseNumber(text, &number) || IsPunctuatedNumber(text) || IsInfinity(text);
}

std::string UnitOf(std::string_view text) {
  constexpr std::string_view kBefore[] = {"~",      "<=",     ">=",     "<",      ">",
                                          "\u2248", "\u2264", "\u2265", "\u00b1", "\u2212"};
  constexpr size_t kMostBytes = 8;
  text = Trimmed(text);
  const auto* const before =
      std::ranges::find_if(kBefore, [&](std::string_view sign) { return text.starts_with(sign); });
  const std::string_view front = before == std::end(kBefore) ? "" : *before;
  text = Trimmed(text.substr(front.size()));
  const size_t end = text.find_last_of("0123456789") + 1;
  const std::string_view back = Trimmed(text.substr(end));
  const std::string_view number = text.substr(0, end);
  double value;
  if (back.size() > kMostBytes || (front.empty() && back.empty())) return "";
  if (!ParseNumber(number, &value) && !IsPunctuatedNumber(number)) return "";
  return StrCat(front, "0", back);
}

bool IsWrittenTime(std::string_view text) {
  int64_t seconds;
  const bool parts = text.size() <= kMostTimeBytes && text.find_first_of(":/-. ") != text.npos &&
                     std::ranges::count_if(text, IsDigit) >= kLeastTimeDigits;
  if (!parts || ParseTime(text, Field::YYYY_MM_DD_HH_MM_SS, &seconds)) return false;
  const std::vector<Piece> pieces = PiecesOf(Trimmed(text));
  const size_t date = DatePieces(pieces);
  if (date == 0) return !pieces.empty() && IsTimeOfDay(pieces, 0);
  if (date == pieces.size()) return true;
  const Piece& between = pieces[date];
  size_t at = date + 1;
  if (between.is(',') && at < pieces.size() && pieces[at].is(' ')) ++at;
  return (between.kind == Piece::kOther || between.text == "T") && IsTimeOfDay(pieces, at);
}

bool HoldsPairs(std::string_view text) {
  size_t words = 0, pairs = 0;
  for (; !text.empty(); ++words) {
    const std::string_view word = text.substr(0, text.find(' '));
    text = Trimmed(text.substr(word.size()));
    const size_t colon = word.find(':');
    if (colon == word.npos || colon == 0) continue;
    const std::string_view value = word.substr(colon + 1);
    double number;
    pairs += std::ranges::all_of(word.substr(0, colon), IsDigit) &&
             (ParseNumber(value, &number) || IsWrittenNumber(value) || MeansMissing(value));
  }
  return pairs > 0 && pairs + 1 >= words;
}

std::string FormOf(std::string_view text) {
  constexpr std::string_view kArabic = "\xd9", kPersian = "\xdb", kWide = "\xef\xbc";
  const auto in = [&](size_t at, std::string_view lead, unsigned char first) {
    if (!text.substr(at).starts_with(lead) || at + lead.size() >= text.size()) return size_t{0};
    const auto last = static_cast<unsigned char>(text[at + lead.size()]);
    return last >= first && last < first + 10 ? lead.size() + 1 : 0;
  };
  std::string form;
  bool digits = false;
  for (size_t at = 0; at < text.size();) {
    const size_t bytes =
        IsDigit(text[at])
            ? 1
            : std::max({in(at, kArabic, 0xa0), in(at, kPersian, 0xb0), in(at, kWide, 0x90)});
    if (bytes == 0 || !digits) form += bytes == 0 ? text[at] : '0';
    digits = bytes > 0;
    at += std::max<size_t>(bytes, 1);
  }
  return form;
}

bool IsFormOfName(std::string_view form) {
  const size_t digits = form.find('0');
  const std::string_view before = form.substr(0, digits);
  return digits == form.npos ||
         (digits > 0 && form.find_first_not_of("0.", digits) == form.npos &&
          std::ranges::all_of(before, [](char c) { return c > ' ' && c < 0x7f; }));
}

bool LooksMissing(std::string_view text) {
  constexpr std::string_view kTexts[] = {"<na>", "#n/a", "nat", "(null)", ".", "--", "<null>"};
  return MeansMissing(text) || Trimmed(text).empty() ||
         std::ranges::find(kTexts, LowerCase(text)) != std::end(kTexts);
}

// A person can be named Null; programs write NULL and null.
bool MayBeValue(std::string_view text) {
  if (text == "Null") return true;
  constexpr std::string_view kTexts[] = {"na", "none", "nil", "-", ".", "--"};
  return std::ranges::find(kTexts, LowerCase(text)) != std::end(kTexts);
}

bool IsShortDate(std::string_view digits) {
  if (digits.size() != 6 || !std::ranges::all_of(digits, IsDigit)) return false;
  const auto number = [&](size_t at) { return (digits[at] - '0') * 10 + (digits[at + 1] - '0'); };
  return IsDate(1900 + number(0), number(2), number(4));
}

}  // namespace elastor
