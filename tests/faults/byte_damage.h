#ifndef ELASTOR_TESTS_FAULTS_BYTE_DAMAGE_H_
#define ELASTOR_TESTS_FAULTS_BYTE_DAMAGE_H_

#include <random>
#include <string>

namespace elastor {

// Damages a file's bytes in a way of its own choice: a digit or byte changed, a bit flipped, cut,
// extended, a byte left out or put in, zeros or a part of itself over another part. Returns what
// was done, to be followed by the file's name: "flip bit 3 of byte 17 of "; "" when the bytes are
// as they were, since the way did not fit them.
std::string DamageBytes(std::mt19937_64& random, std::string* bytes);

}  // namespace elastor

#endif  // ELASTOR_TESTS_FAULTS_BYTE_DAMAGE_H_
