#include "tests/faults/byte_damage.h"

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <vector>

namespace elastor {
namespace {

class Damager {
 public:
  Damager(std::mt19937_64& random, std::string* bytes) : random_(random), bytes_(*bytes) {}

  std::string Damage() {
    // Digits are most of what texts say, and what a reader is most likely to believe.
    switch (Below(10)) {
      case 0:
      case 1:
      case 2:
        return ChangeDigit();
      case 3:
        return At("flip a bit of byte ",
                  [this](size_t at) { bytes_[at] ^= static_cast<char>(1 << Below(8)); });
      case 4:
        return At("change byte ", [this](size_t at) { bytes_[at] = static_cast<char>(random_()); });
      case 5:
        return At("cut at byte ", [this](size_t at) { bytes_.resize(at); });
      case 6:
        bytes_ += std::string(1 + Below(64), static_cast<char>(Below(3) * '0'));
        return "extend ";
      case 7:
        if (Below(2) == 0) return At("leave out byte ", [this](size_t at) { bytes_.erase(at, 1); });
        return At("put in byte ",
                  [this](size_t at) { bytes_.insert(at, 1, static_cast<char>(random_())); });
      case 8:
        return At("zeros into byte ",
                  [this](size_t at) { Overwrite(at, std::string(1 + Below(512), '\0')); });
      default:
        return At("a part over byte ", [this](size_t at) {
          const size_t from = Below(bytes_.size());
          Overwrite(at, bytes_.substr(from, 1 + Below(256)));
        });
    }
  }

 private:
  size_t Below(size_t n) { return random_() % n; }

  template <typename Change>
  std::string At(const std::string& what, Change change) {
    if (bytes_.empty()) return "";
    const size_t at = Below(bytes_.size());
    change(at);
    return what + std::to_string(at) + " of ";
  }
  std::string ChangeDigit() {
    std::vector<size_t> digits;
    for (size_t i = 0; i < bytes_.size(); ++i) {
      if (std::isdigit(static_cast<unsigned char>(bytes_[i])) != 0) digits.push_back(i);
    }
    if (digits.empty()) return "";
    const size_t at = digits[Below(digits.size())];
    bytes_[at] = static_cast<char>('0' + (bytes_[at] - '0' + 1 + Below(9)) % 10);
    return "change the digit at byte " + std::to_string(at) + " of ";
  }
  void Overwrite(size_t at, const std::string& with) {
    bytes_.replace(at, with.size(), with.substr(0, bytes_.size() - at));
  }

  std::mt19937_64& random_;
  std::string& bytes_;
};

}  // namespace

std::string DamageBytes(std::mt19937_64& random, std::string* bytes) {
  const std::string whole = *bytes;
  const std::string what = Damager(random, bytes).Damage();
  return *bytes == whole ? "" : what;
}

}  // namespace elastor
