#ifndef ELASTOR_EMBEDDING_CUDA_KEY_FORMAT_H_
#define ELASTOR_EMBEDDING_CUDA_KEY_FORMAT_H_

#include <cstdint>

#include "core/base/build_config.h"

namespace elastor::cuda {

// (owner, table, id) in one word that sorts in this order.
struct KeyFormat {
  int id_bits = 1;
  int table_bits = 0;
  int owner_bits = 0;

  ELASTOR_HOST_DEVICE uint64_t Make(int64_t owner, int64_t table, int64_t id) const {
    return static_cast<uint64_t>(((owner << table_bits) + table) << id_bits | id);
  }
  ELASTOR_HOST_DEVICE int64_t Id(uint64_t key) const {
    return static_cast<int64_t>(key & ((uint64_t{1} << id_bits) - 1));
  }
  ELASTOR_HOST_DEVICE int Table(uint64_t key) const {
    return static_cast<int>((key >> id_bits) & ((uint64_t{1} << table_bits) - 1));
  }
  ELASTOR_HOST_DEVICE int Owner(uint64_t key) const {
    return static_cast<int>(key >> id_bits >> table_bits);
  }
  int bits() const { return id_bits + table_bits + owner_bits; }
};

// Keys on their way through a sort, in device memory. They take 32 bits each if all keys of the
// model fit.
struct SortKeys {
  uint64_t* wide = nullptr;  // one of the two
  uint32_t* narrow = nullptr;

  ELASTOR_HOST_DEVICE uint64_t operator[](int64_t i) const {
    return narrow != nullptr ? uint64_t{narrow[i]} : wide[i];
  }
  ELASTOR_HOST_DEVICE void Set(int64_t i, uint64_t key) const {
    if (narrow != nullptr) {
      narrow[i] = static_cast<uint32_t>(key);
    } else {
      wide[i] = key;
    }
  }
};

// Keys that a rank owns, in device memory. Their number lies there too; the host knows only a
// bound.
struct OwnedKeys {
  const uint64_t* keys = nullptr;  // all different, ascending by table
  const int64_t* count = nullptr;
  int64_t bound = 0;
  KeyFormat format;
};

}  // namespace elastor::cuda

#endif  // ELASTOR_EMBEDDING_CUDA_KEY_FORMAT_H_
