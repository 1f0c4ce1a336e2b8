#include "trainer/checkpoint/vocabularies.h"

#include <algorithm>

#include "core/base/file.h"
#include "core/base/hash_text.h"
#include "trainer/prepare/saved_vocabulary.h"

namespace elastor {
namespace {

// Fields that share a table share its owner's file.
bool HasFile(const DatasetInfo::Categorical& field) {
  return field.shares < 0 && !field.vocabulary.empty();
}

std::string PathOf(const std::string& folder, const DatasetInfo::Categorical& field) {
  return folder + "/" + kVocabularyFolder + "/" + VocabularyFileName(field.name);
}

}  // namespace

bool HasVocabularies(const DataEncoding& encoding) {
  return std::ranges::any_of(encoding.categorical, HasFile);
}

Status CopyVocabularies(const DataEncoding& encoding, const std::string& from,
                        const std::string& to) {
  ELASTOR_RETURN_IF_ERROR(MakeDirectory(to + "/" + kVocabularyFolder));
  for (const DatasetInfo::Categorical& field : encoding.categorical) {
    if (!HasFile(field)) continue;
    ELASTOR_RETURN_IF_ERROR(CopyVocabularyFile(PathOf(from, field), PathOf(to, field)));
  }
  return VerifyVocabularies(encoding, to);
}

Status VerifyVocabularies(const DataEncoding& encoding, const std::string& folder) {
  for (const DatasetInfo::Categorical& field : encoding.categorical) {
    if (!HasFile(field)) continue;
    const std::string path = PathOf(folder, field);
    ELASTOR_ASSIGN_OR_RETURN(const FileFacts facts, ReadFileFacts(path));
    if (facts.xxh3 == field.vocabulary) continue;
    return UserError(path + ": has the hash " + facts.xxh3 + "; expected " + field.vocabulary +
                     ", the vocabulary of the training data; the file is damaged or was replaced");
  }
  return OkStatus();
}

}  // namespace elastor
