#ifndef ELASTOR_TRAINER_DATA_SIZED_TEXT_H_
#define ELASTOR_TRAINER_DATA_SIZED_TEXT_H_

#include <cstddef>
#include <string>
#include <string_view>

namespace elastor {

// Texts one after another, each behind its size: seven bits a byte, the low ones first.

inline size_t SizeBytes(size_t size) { return size < 128 ? 1 : 1 + SizeBytes(size >> 7); }

inline void PutText(std::string_view text, std::string* all) {
  size_t size = text.size();
  for (; size >= 128; size >>= 7) all->push_back(static_cast<char>(size | 128));
  all->push_back(static_cast<char>(size));
  all->append(text);
}

// Takes the first text of *rest. REQUIRES: PutText has put it.
inline std::string_view TakeText(std::string_view* rest) {
  size_t size = 0, at = 0;
  for (int shift = 0;; shift += 7) {
    const unsigned char byte = (*rest)[at++];
    size |= static_cast<size_t>(byte & 127) << shift;
    if (byte < 128) break;
  }
  const std::string_view text = rest->substr(at, size);
  rest->remove_prefix(at + size);
  return text;
}

}  // namespace elastor

#endif  // ELASTOR_TRAINER_DATA_SIZED_TEXT_H_
