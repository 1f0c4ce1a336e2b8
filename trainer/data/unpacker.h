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
  // Returns an unpacker for data that begin with `head`, or null if they are neither gzip nor zstd.
  static std::unique_ptr<Unpacker> For(std::string_view head);
  virtual ~Unpacker() = default;

  // Result of a call: the bytes it took and made, and why it could do no more.
  struct Step {
    size_t used = 0;
    size_t made = 0;
    const char* damage = nullptr;  // what is wrong with the data; null: nothing
    bool no_memory = false;
  };
  // Unpacks into `text`. `packed` continues the data used so far. It is empty at the end, when the
  // unpacker may still hold text.
  virtual Step Unpack(std::string_view packed, std::span<char> text) = 0;
  // Returns whether the data are incomplete so far.
  virtual bool inside() const = 0;
  virtual const char* name() const = 0;  // "gzip", "zstd"
};

}  // namespace elastor

#endif  // ELASTOR_TRAINER_DATA_UNPACKER_H_
