#ifndef ELASTOR_CORE_KERNELS_SMALL_ROWS_H_
#define ELASTOR_CORE_KERNELS_SMALL_ROWS_H_

#include <cstdint>
#include <string_view>

namespace elastor {

// How the weights of an embedding row are stored for scoring.
enum class RowFormat { kFloat32, kInt8, kInt4 };
inline constexpr RowFormat kRowFormats[] = {RowFormat::kFloat32, RowFormat::kInt8,
                                            RowFormat::kInt4};
// "FLOAT32", "INT8" or "INT4".
std::string_view RowFormatName(RowFormat format);

// A small row (kInt8, kInt4) is a whole number of words of 4 bytes: scale and offset as floats,
// then a code of 8 or 4 bits for each weight, of a byte's two the lower bits first, then zeros. It
// is kept in an array of floats that nobody computes with.
//   offset = the least weight, levels = 255 or 15
//   scale  = (the largest - the least) / levels, in double, rounded to float
//   code   = (weight - offset) / scale, in double, rounded to the nearest integer, ties to even
//   weight = code * scale + offset, rounded once
// Weights and scales below 2^-100 in magnitude count as +0, so that no denormal number arises. With
// the scale 0 all codes are 0. So every machine has the same bits.

// Returns the words of a row; with kFloat32 its width.
int64_t RowWords(RowFormat format, int64_t width);
// Makes a small row. Returns false if a weight is NaN or not below 2^127 in magnitude.
bool EncodeRow(RowFormat format, const float* row, int64_t width, float* words);
// Makes a row of a small row. Writes up to DecodedRoom(width) floats.
void DecodeRow(RowFormat format, const float* words, int64_t width, float* row);
inline int64_t DecodedRoom(int64_t width) { return (width + 7) / 8 * 8; }

}  // namespace elastor

#endif  // ELASTOR_CORE_KERNELS_SMALL_ROWS_H_
