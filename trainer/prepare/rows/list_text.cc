#include "trainer/prepare/rows/list_text.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "trainer/prepare/rows/value_text.h"

namespace elastor {
namespace {

constexpr std::string_view kBlanks = " \t\r\n";

// Appends the character of a code point. False: it is none.
bool AppendCharacter(uint32_t code, std::string* text) {
  constexpr uint32_t kFirstSurrogate = 0xd800, kBehindSurrogates = 0xe000, kEnd = 0x110000;
  if (code >= kEnd || (code >= kFirstSurrogate && code < kBehindSurrogates)) return false;
  const auto more = [&](int shift) { *text += static_cast<char>(0x80 | (code >> shift & 0x3f)); };
  if (code < 0x80) {
    *text += static_cast<char>(code);
  } else if (code < 0x800) {
    *text += static_cast<char>(0xc0 | code >> 6);
    more(0);
  } else if (code < 0x10000) {
    *text += static_cast<char>(0xe0 | code >> 12);
    more(6);
    more(0);
  } else {
    *text += static_cast<char>(0xf0 | code >> 18);
    more(12);
    more(6);
    more(0);
  }
  return true;
}

// Reads a list from its first bracket on.
class ListReader {
 public:
  ListReader(std::string_view text, std::vector<std::string>* items) : text_(text), items_(items) {}

  bool Read() {
    constexpr std::string_view kOpen = "[({", kClose = "])}";
    const size_t kind = text_.size() < 2 ? kOpen.npos : kOpen.find(text_[0]);
    if (kind == kOpen.npos || text_.back() != kClose[kind]) return false;
    text_.remove_prefix(1);
    text_.remove_suffix(1);
    for (SkipBlanks(); !text_.empty(); SkipBlanks()) {
      const size_t prefix = text_.find_first_not_of("ub");
      const bool quoted = prefix < 2 && (text_[prefix] == '\'' || text_[prefix] == '"');
      if (quoted) text_.remove_prefix(prefix);
      if (!(quoted ? TakeQuoted() : TakeBare())) return false;
      SkipBlanks();
      const bool comma = text_.starts_with(',');
      if (comma) text_.remove_prefix(1);
      // Without a comma numpy writes the next quote.
      if (!comma && !text_.empty() && text_[0] != '\'' && text_[0] != '"') return false;
    }
    return true;
  }

 private:
  void SkipBlanks() {
    text_.remove_prefix(std::min(text_.find_first_not_of(kBlanks), text_.size()));
  }

  bool TakeQuoted() {
    const char quote = text_[0];
    std::string item;
    for (text_.remove_prefix(1); !text_.empty() && text_[0] != quote;) {
      if (text_[0] == '\\') {
        if (!TakeEscape(&item)) return false;
        continue;
      }
      item += text_[0];
      text_.remove_prefix(1);
    }
    if (text_.empty()) return false;
    text_.remove_prefix(1);
    items_->push_back(std::move(item));
    return true;
  }

  bool TakeEscape(std::string* item) {
    constexpr std::string_view kNames = "ntrbf\\'\"/", kMeanings = "\n\t\r\b\f\\'\"/";
    if (text_.size() < 2) return false;
    const char name = text_[1];
    text_.remove_prefix(2);
    if (const size_t known = kNames.find(name); known != kNames.npos) {
      *item += kMeanings[known];
      return true;
    }
    const size_t digits = name == 'x' ? 2 : name == 'u' ? 4 : name == 'U' ? 8 : 0;
    uint32_t code;
    if (!TakeHex(digits, &code)) return false;
    uint32_t low;
    constexpr uint32_t kHigh = 0xd800, kLow = 0xdc00, kUnits = 0x400;
    // JSON writes characters beyond 2^16 as two halves.
    if (name == 'u' && code >= kHigh && code < kLow && text_.starts_with("\\u")) {
      text_.remove_prefix(2);
      if (!TakeHex(digits, &low) || low < kLow || low >= kLow + kUnits) return false;
      code = 0x10000 + (code - kHigh) * kUnits + (low - kLow);
    }
    return AppendCharacter(code, item);
  }

  bool TakeHex(size_t digits, uint32_t* code) {
    constexpr std::string_view kDigits = "0123456789abcdef";
    if (digits == 0 || text_.size() < digits) return false;
    *code = 0;
    for (size_t i = 0; i < digits; ++i) {
      const char c = text_[i];
      const size_t digit = kDigits.find(c >= 'A' && c <= 'F' ? static_cast<char>(c + 32) : c);
      if (digit == kDigits.npos) return false;
      *code = *code << 4 | static_cast<uint32_t>(digit);
    }
    text_.remove_prefix(digits);
    return true;
  }

  bool TakeBare() {
    const std::string_view item = text_.substr(0, text_.find(','));
    if (item.empty() || item.find_first_of("[](){}'\":") != item.npos) return false;
    text_.remove_prefix(item.size());
    std::vector<std::string> words;
    double number;
    bool numbers = true;
    for (size_t at = 0; (at = item.find_first_not_of(kBlanks, at)) < item.size();) {
      const size_t end = std::min(item.find_first_of(kBlanks, at), item.size());
      words.emplace_back(item.substr(at, end - at));
      if (words.back() == "...") return false;  // items that numpy left out
      numbers &= ParseNumber(words.back(), &number);
      at = end;
    }
    const std::string_view whole = item.substr(0, item.find_last_not_of(kBlanks) + 1);
    if (numbers) {
      items_->insert(items_->end(), words.begin(), words.end());
    } else {
      const bool missing = whole == "None" || whole == "null" || whole == "nan" || whole == "NaN";
      items_->emplace_back(missing ? std::string_view() : whole);
    }
    return true;
  }

  std::string_view text_;
  std::vector<std::string>* const items_;
};

}  // namespace

std::string_view TrimBlanks(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(" \t"), text.size()));
  return text.substr(0, text.find_last_not_of(" \t") + 1);
}

bool BracketItems(std::string_view text, std::vector<std::string>* items) {
  items->clear();
  return ListReader(TrimBlanks(text), items).Read();
}

}  // namespace elastor
