#include "trainer/prepare/rows/value_text.h"

#include <fast_float/fast_float.h>
#include <xxhash.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <limits>

#include "core/base/canonical_math.h"
#include "core/base/log.h"
#include "core/base/status.h"
#include "core/base/text.h"
#include "core/base/utf8.h"

namespace elastor {
namespace {

constexpr size_t kShownBytes = 40;

// floor(ln(x)^2)
double SquaredLog(double x) {
  const double log = CanonicalLog(x);
  return std::floor(log * log);
}

constexpr int kTabledCounts = 4096;

std::array<uint8_t, kTabledCounts> Log2Table() {
  std::array<uint8_t, kTabledCounts> table = {};
  for (int x = 3; x < kTabledCounts; ++x) table[x] = static_cast<uint8_t>(SquaredLog(x));
  return table;
}

}  // namespace

// Short integers take the fast way.
bool ParseNumber(std::string_view text, double* value) {
  constexpr size_t kFastDigits = 15;
  if (text.size() > 1 && text[0] == '+' && text[1] != '-') text.remove_prefix(1);
  const bool negative = !text.empty() && text[0] == '-';
  const std::string_view digits = text.substr(negative);
  if (!digits.empty() && digits.size() <= kFastDigits) {
    int64_t integer = 0;
    bool plain = true;
    for (const char c : digits) {
      plain &= c >= '0' && c <= '9';
      integer = integer * 10 + (c - '0');
    }
    if (plain) {
      *value = static_cast<double>(negative ? -integer : integer);
      return true;
    }
  }
  const auto [end, error] = fast_float::from_chars(text.data(), text.data() + text.size(), *value);
  // A number below the least double is 0. fast_float 8.0 also says that it is out of range; 3.9
  // does not.
  const bool read =
      error == std::errc() || (error == std::errc::result_out_of_range && *value == 0);
  return read && end == text.data() + text.size() &&
         std::abs(*value) <= std::numeric_limits<float>::max();
}

bool ParseInteger(std::string_view text, int64_t* value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *value);
  return error == std::errc() && end == text.data() + text.size();
}

uint64_t HashedKey(std::string_view text) {
  return text.empty() ? 0 : std::max<uint64_t>(XXH3_64bits(text.data(), text.size()), 1);
}

bool ParseKey(std::string_view text, uint64_t* key) {
  *key = 0;
  if (text.empty()) return true;
  if (text[0] == '-') {
    int64_t value;
    if (!ParseInteger(text, &value)) return false;
    *key = static_cast<uint64_t>(value);
    return true;
  }
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *key);
  return error == std::errc() && end == text.data() + text.size();
}

bool ParseLabel(std::string_view text, float* label) {
  if (text == "0" || text == "1") {
    *label = static_cast<float>(text[0] - '0');
    return true;
  }
  double value;
  if (!ParseNumber(text, &value) || (value != 0 && value != 1 && value != -1)) return false;
  *label = value == 1 ? 1.0f : 0.0f;
  return true;
}

// Counts are mostly small: these come from a table.
void Log2Transform(const double* from, int64_t count, double* to) {
  static const std::array<uint8_t, kTabledCounts> kTable = Log2Table();
  for (int64_t i = 0; i < count; ++i) {
    const double x = from[i];
    if (!(x > 2)) {
      to[i] = x;
    } else if (x < kTabledCounts && x == static_cast<int>(x)) {
      to[i] = kTable[static_cast<int>(x)];
    } else {
      to[i] = SquaredLog(x);
    }
  }
}

double Log2Transform(double x) {
  double transformed;
  Log2Transform(&x, 1, &transformed);
  return transformed;
}

std::string Shown(std::string_view text) {
  std::string shown = "'";
  for (size_t at = 0; at < text.size();) {
    if (at >= kShownBytes) return shown + "...'";
    const int bytes = Utf8Bytes(text.substr(at));
    const unsigned char byte = text[at];
    if (bytes == 0) {
      char escape[8];
      std::snprintf(escape, sizeof(escape), "\\x%02x", byte);
      shown += escape;
    } else {
      shown +=
          byte < 0x20 || byte == 0x7f ? "?" : WithoutControls(std::string(text.substr(at, bytes)));
    }
    at += std::max(bytes, 1);
  }
  return shown + "'";
}

bool MeansMissing(std::string_view text) {
  constexpr std::string_view kTexts[] = {"na",  "n/a", "nan", "null", "none",
                                         "nil", "\\n", "-",   "?"};
  std::string lower(text);
  for (char& c : lower) {
    if (c >= 'A' && c <= 'Z') c += 'a' - 'A';
  }
  return std::ranges::find(kTexts, lower) != std::end(kTexts);
}

}  // namespace elastor
