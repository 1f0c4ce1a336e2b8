#ifndef ELASTOR_TRAINER_PREPARE_ROWS_DRAWN_ITEMS_H_
#define ELASTOR_TRAINER_PREPARE_ROWS_DRAWN_ITEMS_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace elastor {

// The items that negatives are drawn from, each with the texts of several columns: the item's own,
// then those beside it. Thread-safe once it is filled.
class DrawnItems {
 public:
  explicit DrawnItems(size_t columns) : columns_(columns) {}

  // Adds the next text of the last item, or the first one of a new item.
  void Add(std::string_view text) {
    texts_.append(text);
    ends_.push_back(texts_.size());
  }
  int64_t size() const { return static_cast<int64_t>(ends_.size() / columns_); }
  int64_t bytes() const {
    return static_cast<int64_t>(texts_.capacity() + ends_.capacity() * sizeof(uint64_t));
  }
  std::string_view Text(uint32_t item, size_t column) const {
    const size_t at = item * columns_ + column;
    const size_t begin = at == 0 ? 0 : ends_[at - 1];
    return std::string_view(texts_).substr(begin, ends_[at] - begin);
  }

 private:
  const size_t columns_;
  std::string texts_;
  std::vector<uint64_t> ends_;  // [items][columns]
};

// What is drawn for a record of the log.
struct RecordDraws {
  uint8_t split = 0;            // Split of its rows
  uint32_t begin = 0, end = 0;  // its negatives among all of its chunk
};

}  // namespace elastor

#endif  // ELASTOR_TRAINER_PREPARE_ROWS_DRAWN_ITEMS_H_
