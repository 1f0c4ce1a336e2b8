#ifndef ELASTOR_EMBEDDING_WIRE_FORMAT_H_
#define ELASTOR_EMBEDDING_WIRE_FORMAT_H_

#include <cstdint>

namespace elastor {

// How the vectors of a step travel between ranks (parallel.wire): rows to the ranks that asked for
// them, and gradients to the owners of their rows. A vector is rounded whether or not it travels:
// the rows that a rank looks up at itself, the sum of a gradient over every leaf and over every
// node of the tree. So the bits do not depend on who owns a row.
enum class WireFormat { kFloat32, kFloat16, kBFloat16 };
struct WireFormats {
  WireFormat rows = WireFormat::kFloat32;
  WireFormat gradients = WireFormat::kFloat32;
};

// kBFloat16: each number rounded to 8 significant bits, ties to even.
// kFloat16: numbers x * 2^-e as IEEE 754 binary16, ties to even, and e in 16 bits behind them. 2^e
// is the largest power of two that is not above the largest magnitude, rounded to 11 significant
// bits; 1 if that is zero or not finite. So a vector has 11 significant bits near its largest
// number, and an absolute error of at most 2^(e - 25) elsewhere. A vector that was rounded once is
// not changed by being rounded again, so it may travel any number of times. In both a zero is +0,
// as is what lies below the least normal float; a NaN is one value. All is made of integers, so
// every machine has the same bits.

// Returns the words of 16 bits of vectors with `elements` numbers in all. REQUIRES: not kFloat32.
inline int64_t WireWords(WireFormat format, int64_t elements, int64_t vectors) {
  return elements + (format == WireFormat::kFloat16 ? vectors : 0);
}
// Returns the bytes of vectors on the wire. element_bytes: of a number without a format.
inline int64_t WireBytes(WireFormat format, int64_t elements, int64_t vectors,
                         int64_t element_bytes) {
  return format == WireFormat::kFloat32 ? elements * element_bytes
                                        : 2 * WireWords(format, elements, vectors);
}

// Writes a vector as WireWords(format, width, 1) words, and reads it back. vector and words do not
// overlap. REQUIRES: not kFloat32, and T is float.
template <typename T>
void WriteWire(WireFormat format, const T* vector, int64_t width, uint16_t* words);
template <typename T>
void ReadWire(WireFormat format, const uint16_t* words, int64_t width, T* vector);
// Does the same to a vector in place.
template <typename T>
void WriteAndReadWire(WireFormat format, int64_t width, T* vector);

// Rounds a vector to what a reader would have; does nothing with kFloat32.
template <typename T>
inline void RoundToWire(WireFormat format, int64_t width, T* vector) {
  if (format != WireFormat::kFloat32) WriteAndReadWire(format, width, vector);
}

}  // namespace elastor

#endif  // ELASTOR_EMBEDDING_WIRE_FORMAT_H_
