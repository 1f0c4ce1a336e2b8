#include "trainer/checkpoint/vocabularies.h"

#include <algorithm>

#include "core/base/file.h"
#include "core/base/hash_text.h"
#include "trainer/data/saved_vocabulary.h"

namespace elastor {
namespace {

// Fields that share a table share its owner's file.
bool HasFile(const DatasetInfo::Categorical& field) {
  return field.shares < 0 && !field.vocabulary.empty();
}

std::string PathOf(const std::string& folder, const DatasetInfo::Categorical& field) {
  return folder + "/" + kVocabularyFolder + "/" + VocabularyFileName(field.name);
}

// Whether the files in `folder` are those of `encoding`; they came from the folder `named`.
Status Verify(const DataEncoding& encoding, const std::string& folder, const std::string& named) {
  for (const DatasetInfo::Categorical& field : encoding.categorical) {
    if (!HasFile(field)) continue;
    ELASTOR_ASSIGN_OR_RETURN(const FileFacts facts, ReadFileFacts(PathOf(folder, field)));
    if (facts.xxh3 == field.vocabulary) continue;
    return UserError(PathOf(named, field) + ": has the hash " + facts.xxh3 + "; expected " +
                     field.vocabulary +
                     ", the vocabulary of the training data; the file is damaged or was replaced");
  }
  return OkStatus();
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
  return Verify(encoding, to, from);
}

Status VerifyVocabularies(const DataEncoding& encoding, const std::string& folder) {
  return Verify(encoding, folder, folder);
}

}  // namespace elastor
