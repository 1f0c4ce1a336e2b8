#include "trainer/prepare/guess/guess.h"

#include <cstddef>

#include "core/base/text.h"
#include "trainer/prepare/guess/columns.h"
#include "trainer/prepare/guess/dialect.h"
#include "trainer/prepare/guess/header.h"
#include "trainer/prepare/guess/label.h"
#include "trainer/prepare/guess/libsvm.h"
#include "trainer/prepare/guess/proposal.h"
#include "trainer/prepare/guess/text_sample.h"
#include "trainer/prepare/schema_file.h"

namespace elastor {
namespace {

StatusOr<std::vector<size_t>> ChooseLabel(const SampleColumns& sample, bool named,
                                          const std::string& given, const std::string& path) {
  if (given.empty()) return LabelCandidates(sample, named, path);
  ELASTOR_ASSIGN_OR_RETURN(const size_t label, GivenLabel(sample.columns, given));
  return std::vector<size_t>{label};
}

StatusOr<std::string> ProposeDelimited(const TextSample& text, const std::string& given_label) {
  const std::string& path = text.paths[0];
  ELASTOR_ASSIGN_OR_RETURN(const Dialect dialect, FindDialect(text.lines[0], path));
  DelimitedFindings found;
  found.schema = dialect.schema;
  found.schema.set_header(FirstLineIsHeader(dialect.schema, text.lines[0]));
  found.sample = ReadColumns(found.schema, dialect.columns, text);
  for (const std::string& null : NullTexts(found.sample.columns)) found.schema.add_null(null);
  ELASTOR_ASSIGN_OR_RETURN(found.candidates,
                           ChooseLabel(found.sample, found.schema.header(), given_label, path));
  found.copies = LabelCopies(found.schema, text, found.sample.columns, found.candidates[0]);
  return DelimitedProposal(text, found);
}

StatusOr<std::string> Propose(const std::vector<std::string>& paths, const std::string& label) {
  ELASTOR_ASSIGN_OR_RETURN(const TextSample text, ReadTextSample(paths));
  if (!IsLibsvm(text.lines[0])) return ProposeDelimited(text, label);
  if (label.empty()) return LibsvmProposal(text);
  return UserError(StrCat("--label=", label, ": the label of libsvm's layout is its first word"));
}

}  // namespace

StatusOr<std::string> GuessSchema(const std::vector<std::string>& paths, const std::string& label) {
  StatusOr<std::string> text = Propose(paths, label);
  if (!text.ok()) return text;
  // Names and labels' values that no schema may have.
  if (const auto schema = ParseSchema(*text, "a schema of it"); !schema.ok()) {
    return UserError(StrCat(paths[0], ": ", schema.status().message()));
  }
  return text;
}

}  // namespace elastor
