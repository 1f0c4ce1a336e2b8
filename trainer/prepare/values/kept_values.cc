#include "trainer/prepare/values/kept_values.h"

#include <algorithm>
#include <cstring>

namespace elastor {
namespace {

constexpr int64_t kPieceBytes = 64 << 10;

}  // namespace

StatusOr<KeptValues> WriteKeptValues(const std::vector<ValueRunView>& runs,
                                     std::vector<std::pair<uint64_t, RunPlace>> kept,
                                     WorkFile* file) {
  std::stable_sort(kept.begin(), kept.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  KeptValues written;
  for (const auto& [count, place] : kept) {
    const size_t length = runs[place.run].length(place.at);
    written.bytes += static_cast<int64_t>(sizeof(count) + sizeof(uint32_t) + length);
  }
  written.at = file->Reserve(written.bytes);
  // In pieces: values may be long.
  std::string piece;
  int64_t at = written.at;
  const auto flush = [&]() -> Status {
    at += static_cast<int64_t>(piece.size());
    const Status status = file->WriteAt(at - static_cast<int64_t>(piece.size()), piece);
    piece.clear();
    return status;
  };
  for (const auto& [count, place] : kept) {
    ShortText short_text(0, 0);
    const std::string_view value = runs[place.run].Value(place.at, &short_text);
    const uint32_t length = static_cast<uint32_t>(value.size());
    piece.append(reinterpret_cast<const char*>(&count), sizeof(count));
    piece.append(reinterpret_cast<const char*>(&length), sizeof(length));
    piece.append(value);
    if (piece.size() >= kPieceBytes) ELASTOR_RETURN_IF_ERROR(flush());
  }
  ELASTOR_RETURN_IF_ERROR(flush());
  return written;
}

Status KeptValuesReader::Fill(size_t bytes) {
  if (buffer_.size() - used_ >= bytes || at_ == end_) return OkStatus();
  buffer_.erase(0, used_);
  used_ = 0;
  const int64_t more = std::min(std::max<int64_t>(kPieceBytes, bytes), end_ - at_);
  const size_t before = buffer_.size();
  buffer_.resize(before + more);
  at_ += more;
  return file_->ReadAt(at_ - more, more, buffer_.data() + before);
}

Status KeptValuesReader::Next(bool* found) {
  ELASTOR_RETURN_IF_ERROR(Fill(sizeof(count_) + sizeof(length_)));
  *found = used_ < buffer_.size();
  if (!*found) return OkStatus();
  std::memcpy(&count_, buffer_.data() + used_, sizeof(count_));
  std::memcpy(&length_, buffer_.data() + used_ + sizeof(count_), sizeof(length_));
  used_ += sizeof(count_) + sizeof(length_);
  ELASTOR_RETURN_IF_ERROR(Fill(length_));
  value_at_ = used_;
  used_ += length_;
  return OkStatus();
}

}  // namespace elastor
