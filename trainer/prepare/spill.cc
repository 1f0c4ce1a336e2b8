#include "trainer/prepare/spill.h"

#include <fcntl.h>
#include <glog/logging.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace elastor {

StatusOr<std::unique_ptr<Spill>> Spill::Create(const std::string& path, int id_bytes) {
  std::unique_ptr<Spill> spill(new Spill(path, id_bytes));
  spill->file_ = open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (spill->file_ < 0) return MachineError(path + ": cannot make: " + std::strerror(errno));
  // The open file needs no name, and so cannot be left behind.
  unlink(path.c_str());
  return spill;
}

Spill::~Spill() {
  if (data_ != nullptr) munmap(const_cast<char*>(data_), bytes_);
  if (file_ < 0) return;
  close(file_);
}

template <typename T>
int64_t Spill::Put(const std::vector<T>& values) {
  const int64_t at = bytes_ + static_cast<int64_t>(buffer_.size());
  buffer_.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
  buffer_.resize((buffer_.size() + 7) & ~size_t{7});
  return at;
}

int64_t Spill::PutIds(const std::vector<uint64_t>& ids) {
  return id_bytes_ == 8 ? Put(ids) : Put(std::vector<uint32_t>(ids.begin(), ids.end()));
}

Status Spill::Append(const ParsedChunk& chunk) {
  CHECK(data_ == nullptr);
  if (chunk.rows == 0) return OkStatus();
  buffer_.clear();
  Place place = {};
  place.first_row = rows_;
  place.rows = chunk.rows;
  place.labels_at = Put(chunk.labels);
  place.numeric_at = Put(chunk.numeric);
  place.ids_at = PutIds(chunk.ids);
  place.ends_at = Put(chunk.bag_ends);
  place.bags_at = PutIds(chunk.bags);
  places_.push_back(place);
  rows_ += chunk.rows;
  bytes_ += static_cast<int64_t>(buffer_.size());
  for (size_t at = 0; at < buffer_.size();) {
    const ssize_t written = write(file_, buffer_.data() + at, buffer_.size() - at);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return MachineError(path_ + ": cannot write: " + std::strerror(errno));
    at += written;
  }
  return OkStatus();
}

Status Spill::Seal() {
  if (bytes_ == 0) return OkStatus();
  void* mapped = mmap(nullptr, bytes_, PROT_READ, MAP_SHARED, file_, 0);
  if (mapped == MAP_FAILED) return MachineError(path_ + ": cannot map: " + std::strerror(errno));
  data_ = static_cast<const char*>(mapped);
  return OkStatus();
}

SpilledChunk Spill::chunk(int64_t number) const {
  const Place& place = places_[number];
  return {place.first_row,
          place.rows,
          reinterpret_cast<const float*>(data_ + place.labels_at),
          reinterpret_cast<const double*>(data_ + place.numeric_at),
          IdArray(data_ + place.ids_at, id_bytes_),
          reinterpret_cast<const uint32_t*>(data_ + place.ends_at),
          IdArray(data_ + place.bags_at, id_bytes_)};
}

int64_t Spill::ChunkOfRow(int64_t row) const {
  const auto after =
      std::upper_bound(places_.begin(), places_.end(), row,
                       [](int64_t wanted, const Place& place) { return wanted < place.first_row; });
  return after - places_.begin() - 1;
}

}  // namespace elastor
