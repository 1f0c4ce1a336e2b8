#ifndef ELASTOR_TRAINER_CHECKPOINT_VOCABULARIES_H_
#define ELASTOR_TRAINER_CHECKPOINT_VOCABULARIES_H_

#include <string>

#include "core/base/status.h"
#include "trainer/data/encoding.h"

namespace elastor {

inline constexpr char kVocabularyFolder[] = "vocabulary";

// The vocabulary files of a prepared set, which a model's folder holds too: vocabulary/FIELD.tsv
// of every field that has a vocabulary of its own (docs/reference/data_format.md).
bool HasVocabularies(const DataEncoding& encoding);

// Copies those of the set in `from` to the folder `to`. User error naming a file of `from` that
// is not the one of `encoding`.
Status CopyVocabularies(const DataEncoding& encoding, const std::string& from,
                        const std::string& to);

// Whether those in `folder` are the ones of `encoding`. User error naming the file that is not.
Status VerifyVocabularies(const DataEncoding& encoding, const std::string& folder);

}  // namespace elastor

#endif  // ELASTOR_TRAINER_CHECKPOINT_VOCABULARIES_H_
