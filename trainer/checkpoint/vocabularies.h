#ifndef ELASTOR_TRAINER_CHECKPOINT_VOCABULARIES_H_
#define ELASTOR_TRAINER_CHECKPOINT_VOCABULARIES_H_

#include <string>

#include "core/base/status.h"
#include "trainer/data/encoding.h"

namespace elastor {

inline constexpr char kVocabularyFolder[] = "vocabulary";

// Vocabulary files of a prepared set, which a model's folder holds too: one vocabulary/FIELD.tsv
// for every field that has a vocabulary of its own (docs/reference/data_format.md). HasVocabularies
// returns whether there are any.
bool HasVocabularies(const DataEncoding& encoding);

// Copies the vocabulary files of the set in `from` to the folder `to`. User error naming a file in
// `from` whose hash is not the one in `encoding`.
Status CopyVocabularies(const DataEncoding& encoding, const std::string& from,
                        const std::string& to);

// Checks that the vocabulary files in `folder` have the hashes in `encoding`. User error naming the
// first file that has not.
Status VerifyVocabularies(const DataEncoding& encoding, const std::string& folder);

}  // namespace elastor

#endif  // ELASTOR_TRAINER_CHECKPOINT_VOCABULARIES_H_
