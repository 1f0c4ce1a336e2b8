#ifndef ELASTOR_TRAINER_PREPARE_LAYOUTS_H_
#define ELASTOR_TRAINER_PREPARE_LAYOUTS_H_

#include <algorithm>
#include <array>
#include <iterator>
#include <type_traits>
#include <utility>

#include "configs/proto/schema.pb.h"
#include "core/base/status.h"
#include "core/base/thread_pool.h"
#include "trainer/data/dataset.h"
#include "trainer/data/dataset_writer.h"
#include "trainer/prepare/prepare_options.h"

namespace elastor {

// Where the rows of a layout come from.
enum class RowSource {
  kNone,        // no files: they are made
  kColumns,     // lines of values between delimiters
  kPairs,       // lines of a label and pairs index:value, or triples field:index:value
  kWholeFiles,  // files that are read as a whole
};

// What a layout asks of a schema and of the options.
struct LayoutRules {
  Schema::Layout layout;
  RowSource source;
  // The layout alone says which fields there are. Such data come without vocabularies, and are made
  // in one go.
  bool makes_fields;
  // Test rows have files of their own. Training rows are needed beside them, and may be shared out
  // by `split`.
  bool has_test_files;
  // Number of the field of Schema that only layouts with it here have; 0: there is none.
  int own_field;
  // Checks fields or own field, and completes them.
  Status (*check)(Schema* schema);
};

// How the rows of a layout are made.
struct LayoutWriter {
  DatasetInfo (*info)(const Schema& schema);  // but for what only the data tell
  // Writes all rows and commits them.
  Status (*write)(const PrepareOptions& options, ThreadPool* pool, DatasetWriter* writer,
                  PrepareReport* report);
};

struct LayoutRow {
  LayoutRules rules;
  LayoutWriter writer;
};

// The functions of the rows, by the files that define them.
Status CheckSchemaFields(Schema* schema);  // schema_file.cc
Status CheckSyntheticPlan(Schema* schema);
Status CheckTextPlan(Schema* schema);
DatasetInfo LinesInfo(const Schema& schema);  // prepare.cc
Status WriteLines(const PrepareOptions& options, ThreadPool* pool, DatasetWriter* writer,
                  PrepareReport* report);
DatasetInfo SyntheticInfo(const Schema& schema);  // synthetic/synthetic.h
Status WriteSynthetic(const PrepareOptions& options, ThreadPool* pool, DatasetWriter* writer,
                      PrepareReport* report);
DatasetInfo TextInfo(const Schema& schema);  // media/byte_windows.h
Status WriteByteWindows(const PrepareOptions& options, ThreadPool* pool, DatasetWriter* writer,
                        PrepareReport* report);
DatasetInfo ImagesInfo(const Schema& schema);  // media/images.h
Status WriteImages(const PrepareOptions& options, ThreadPool* pool, DatasetWriter* writer,
                   PrepareReport* report);

// The layouts of data; a new one is a row here.
inline constexpr LayoutRow kLayouts[] = {
    // layout, source, makes_fields, has_test_files, own_field, check; info, write
    {{Schema::DELIMITED, RowSource::kColumns, false, false, 0, CheckSchemaFields},
     {LinesInfo, WriteLines}},
    {{Schema::LIBSVM, RowSource::kPairs, false, false, Schema::kZeroBasedFieldNumber,
      CheckSchemaFields},
     {LinesInfo, WriteLines}},
    {{Schema::LIBFFM, RowSource::kPairs, false, false, Schema::kZeroBasedFieldNumber,
      CheckSchemaFields},
     {LinesInfo, WriteLines}},
    {{Schema::SYNTHETIC, RowSource::kNone, true, false, Schema::kSyntheticFieldNumber,
      CheckSyntheticPlan},
     {SyntheticInfo, WriteSynthetic}},
    {{Schema::TEXT, RowSource::kWholeFiles, true, false, Schema::kTextFieldNumber, CheckTextPlan},
     {TextInfo, WriteByteWindows}},
    {{Schema::IDX, RowSource::kWholeFiles, true, true, 0, nullptr}, {ImagesInfo, WriteImages}},
};

// Returns one part of all rows. It is made at compile time, so a program that reads schemas only
// links no writer.
template <auto kPart>
consteval auto PartOfLayouts() {
  using Part = std::remove_cvref_t<decltype(kLayouts[0].*kPart)>;
  std::array<Part, std::size(kLayouts)> parts = {};
  std::ranges::transform(kLayouts, parts.begin(), kPart);
  return parts;
}

// Returns where the rows of a layout come from.
inline RowSource SourceOf(Schema::Layout layout) {
  static constexpr auto kSources = [] {
    std::array<std::pair<Schema::Layout, RowSource>, std::size(kLayouts)> sources;
    std::ranges::transform(kLayouts, sources.begin(), [](const LayoutRow& row) {
      return std::pair(row.rules.layout, row.rules.source);
    });
    return sources;
  }();
  return std::ranges::find(kSources, layout, &std::pair<Schema::Layout, RowSource>::first)->second;
}

}  // namespace elastor

#endif  // ELASTOR_TRAINER_PREPARE_LAYOUTS_H_
