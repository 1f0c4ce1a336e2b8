#ifndef ELASTOR_TRAINER_DATA_UNPACKER_H_
#define ELASTOR_TRAINER_DATA_UNPACKER_H_

#include <cstddef>
#include <memory>
#include <span>
#include <string_view>

namespace elastor {

// Unpacks compressed data piece by piece; several members (frames) one after another are joined.
class Unpacker {
 public:
  // For data that begin with `head`, gzip or zstd; null: neither.
  static std::unique_ptr<Unpacker> For(std::string_view head);
  virtual ~Unpacker() = default;

  // What a call has done: bytes it took and made, and why it can do no more.
  struct Step {
    size_t used = 0;
    size_t made = 0;
    const char* damage = nullptr;  // what is wrong with the data; null: nothing
    bool no_memory = false;
  };
  // `packed` follows what was used so far; empty at the end, where text may still be held.
  virtual Step Unpack(std::string_view packed, std::span<char> text) = 0;
  // Whether the data must go on.
  virtual bool inside() const = 0;
  virtual const char* name() const = 0;  // "gzip", "zstd"
};

}  // namespace elastor

#endif  // ELASTOR_TRAINER_DATA_UNPACKER_H_
