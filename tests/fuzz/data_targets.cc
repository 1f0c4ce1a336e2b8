#include <xxhash.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/base/hash_text.h"
#include "core/base/log.h"
#include "core/base/thread_pool.h"
#include "tests/fuzz/scratch.h"
#include "tests/fuzz/targets.h"
#include "trainer/data/block_format.h"
#include "trainer/data/dataset_writer.h"
#include "trainer/data/prepared_meta.h"
#include "trainer/data/saved_vocabulary.h"
#include "trainer/data/text_source.h"
#include "trainer/experiment/memory_plan.h"
#include "trainer/prepare/guess/guess.h"
#include "trainer/prepare/media/images.h"
#include "trainer/prepare/plan.h"
#include "trainer/prepare/rows/row_parser.h"
#include "trainer/prepare/rows/segments.h"
#include "trainer/prepare/run_identity.h"
#include "trainer/prepare/schema_file.h"
#include "trainer/prepare/values/encoding_state.h"

namespace elastor {
namespace {

bool FuzzSchema(std::string_view bytes) {
  const StatusOr<Schema> schema = ParseSchema(std::string(bytes), "fuzzed");
  if (!schema.ok()) return CheckOneLine(schema.status());
  if (MakesItsFields(*schema)) return true;
  // As a set and its models hold it.
  const std::string stored = PreparePlan(*schema).Info().schema;
  const StatusOr<Schema> again = ParseStoredSchema(stored, "stored");
  CHECK(again.ok()) << again.status().message();
  CHECK_EQ(PreparePlan(*again).Info().schema, stored);
  return true;
}

// A schema, a line of three hyphens, and rows.
bool FuzzRows(std::string_view bytes) {
  constexpr std::string_view kBetween = "\n---\n";
  const size_t between = bytes.find(kBetween);
  if (between == bytes.npos) return false;
  const StatusOr<Schema> schema = ParseSchema(std::string(bytes.substr(0, between)), "fuzzed");
  if (!schema.ok() || schema->layout() == Schema::SYNTHETIC) return false;
  std::string_view text = bytes.substr(between + kBetween.size());
  const std::string_view header = text.substr(0, text.find('\n'));
  const StatusOr<std::unique_ptr<RowParser>> parser =
      RowParser::Create(*schema, header, "fuzzed", Labels::kOptional);
  if (!parser.ok()) return CheckOneLine(parser.status());
  if (schema->header()) text.remove_prefix(std::min(text.size(), header.size() + 1));
  ParsedChunk chunk;
  chunk.text = text;
  if (text.empty() || text.back() != '\n') chunk.text += '\n';
  const auto lines = std::ranges::count(chunk.text, '\n');
  (*parser)->Parse(&chunk);
  CHECK_EQ(chunk.lines, lines);
  CHECK_LE(chunk.rows + chunk.bad_rows, chunk.lines);
  CHECK_EQ(chunk.numeric.size(), static_cast<size_t>(chunk.rows * (*parser)->numeric_fields()));
  CHECK_EQ(chunk.ids.size(), static_cast<size_t>(chunk.rows * (*parser)->single_fields()));
  CHECK_EQ(chunk.bag_ends.size(), static_cast<size_t>(chunk.rows * (*parser)->multi_fields()));
  CHECK(std::ranges::is_sorted(chunk.bag_ends));
  CHECK(chunk.bag_ends.empty() || chunk.bag_ends.back() == chunk.bags.size());
  for (const BadRow& bad : chunk.bad) CheckOneLine(UserError(bad.what));
  return chunk.rows > 0;
}

bool FuzzGuess(std::string_view bytes) {
  const StatusOr<std::string> text = GuessSchema({FileOf("guessed", bytes)});
  if (!text.ok()) return CheckOneLine(text.status());
  const StatusOr<Schema> schema = ParseSchema(*text, "guessed");
  CHECK(schema.ok()) << schema.status().message() << "\n" << *text;
  return true;
}

// Plain, gzip or zstd, to its end: the same text in pieces of any size.
bool FuzzText(std::string_view bytes) {
  const std::string path = FileOf("text", bytes);
  std::string whole[2];
  bool read[2] = {false, false};
  for (const int way : {0, 1}) {
    const StatusOr<std::unique_ptr<TextSource>> source = TextSource::Open(path);
    if (!source.ok()) return CheckOneLine(source.status());
    Status status;
    for (std::string piece;;) {
      status = (*source)->Next(way == 0 ? 7 : 1 << 20, &piece);
      if (!status.ok() || piece.empty()) break;
      CHECK_EQ(piece.back(), '\n');
      whole[way] += piece;
    }
    read[way] = status.ok() || CheckOneLine(status);
    CHECK_LE((*source)->consumed_bytes(), (*source)->file_bytes());
  }
  CHECK_EQ(read[0], read[1]);
  CHECK(!read[0] || whole[0] == whole[1]);
  return read[0];
}

// An array of images, or of labels.
bool FuzzIdx(std::string_view bytes) {
  constexpr int64_t kMostBytes = 1 << 16;
  const std::string path = FileOf("fuzzed.idx", bytes);
  bool read = false;
  for (const int64_t dimensions : {1, 3}) {
    const StatusOr<IdxArray> array = ReadIdx(path, dimensions, kMostBytes);
    if (!array.ok()) {
      CheckOneLine(array.status());
      continue;
    }
    read = true;
    int64_t expected = 1;
    for (const int64_t size : array->sizes) expected *= size;
    CHECK_EQ(static_cast<int64_t>(array->sizes.size()), dimensions);
    CHECK_EQ(static_cast<int64_t>(array->bytes.size()), expected);
  }
  return read;
}

bool FuzzVocabulary(std::string_view bytes) {
  const SavedVocabulary saved = {.rows = std::ranges::count(bytes, '\n') + 1,
                                 .checksum = HashTextOf(bytes)};
  const StatusOr<Vocabulary> vocabulary = LoadVocabularyFile(FileOf("field.tsv", bytes), saved);
  return vocabulary.ok() || CheckOneLine(vocabulary.status());
}

// Of a fixed shape: 32-bit ids, 64-bit ids, or images; and how many rows are said to be in it.
DatasetInfo InfoOfBlock(int shape) {
  constexpr int64_t kWide = (int64_t{1} << 32) + 1;
  constexpr int kImages = 2;
  DatasetInfo info = shape == kImages ? Images(2, 3, 10) : DatasetInfo();
  info.rows_per_block = 8;
  if (shape == kImages) return info;
  info.labels = {{"a"}, {"b"}};
  info.numeric.resize(3);
  info.categorical = {{.name = "i", .ids = shape == 0 ? 100 : kWide},
                      {.name = "j", .ids = 7},
                      {.name = "k", .ids = 100, .multi_hot = true},
                      {.name = "l", .ids = 9, .multi_hot = true}};
  info.has_weights = info.has_groups = info.has_times = true;
  return info;
}

// The first byte chooses the shape and the rows.
bool FuzzBlock(std::string_view bytes) {
  static const DatasetInfo kInfos[] = {InfoOfBlock(0), InfoOfBlock(1), InfoOfBlock(2)};
  if (bytes.empty()) return false;
  const auto choice = static_cast<unsigned char>(bytes[0]);
  const DatasetInfo& info = kInfos[choice / 8 % 3];
  const int64_t rows = 1 + choice % info.rows_per_block;
  // A multiple of 8, so aligned, and not a byte longer.
  const size_t size = (bytes.size() - 1) / 8 * 8;
  const std::unique_ptr<char, decltype(&std::free)> block(
      static_cast<char*>(std::aligned_alloc(8, std::max<size_t>(size, 8))), &std::free);
  std::memcpy(block.get(), bytes.data() + 1, size);
  const auto block_bytes = static_cast<int64_t>(size);
  const std::string mistake = BlockMistake(info, block.get(), block_bytes, rows);
  if (!mistake.empty()) return CheckOneLine(UserError(mistake));
  Rows read;
  BlockReader reader(info, rows, &read);
  for (int64_t row = 0; row < rows; ++row) reader.Append(block.get(), block_bytes, rows, row);
  CHECK_EQ(read.labels.size(), static_cast<size_t>(rows * info.label_count()));
  CHECK_EQ(read.numeric.size(), static_cast<size_t>(rows * info.numeric_count()));
  const size_t fields = info.categorical.size();
  CHECK_EQ(read.offsets.size(), fields == 0 ? 0 : rows * fields + 1);
  for (size_t bag = 0; bag + 1 < read.offsets.size(); ++bag) {
    for (int64_t i = read.offsets[bag]; i < read.offsets[bag + 1]; ++i) {
      CHECK(read.ids[i] >= 0 && read.ids[i] < info.categorical[bag % fields].ids);
    }
  }
  return true;
}

// Of a set without rows, so that it opens, and what another set takes over from it.
bool FuzzMeta(std::string_view bytes) {
  static const Schema kSchema = *ParseSchema(
      "fields { name: 'y' type: LABEL } fields { name: 'n' type: NUMERIC transform: LOG2 } "
      "fields { name: 'c' type: CATEGORICAL } fields { name: 'h' type: CATEGORICAL encoding: HASH "
      "buckets: 9 }",
      "fuzzed");
  static const PreparePlan kPlan(kSchema);
  static const std::string kSet = [] {
    const std::string set = FuzzFolder() + "/set";
    std::filesystem::create_directory(set);
    for (const Split split : {Split::kTrain, Split::kValidation, Split::kTest}) {
      FileOf("set/" + SplitFileName(split), "");
    }
    return set;
  }();
  FileOf(std::string("set/") + kMetaFile, Resealed(bytes, "meta_xxh3"));
  const StatusOr<PreparedMeta> meta = ReadPreparedMeta(kSet);
  if (!meta.ok()) return CheckOneLine(meta.status());
  const StatusOr<EncodingState> given = ReadGivenEncoding(kSet, kPlan);
  if (!given.ok()) CheckOneLine(given.status());
  return true;
}

// stats.json, of which nobody says a mistake: what it does not tell is not known.
bool FuzzStatistics(std::string_view bytes) {
  DatasetInfo info;
  info.categorical = {{.name = "c", .ids = 100}, {.name = "h", .ids = 9}};
  FileOf("stats.json", bytes);
  const std::vector<int64_t> occurring = OccurringIds(FuzzFolder(), info);
  CHECK(occurring[0] >= 0 && occurring[0] <= 100 && occurring[1] >= 0 && occurring[1] <= 9);
  return occurring[0] > 0;
}

bool FuzzState(std::string_view bytes) {
  const StatusOr<EncodingState> state =
      ReadState(FileOf("state.json", Resealed(bytes, "checksum")));
  if (!state.ok()) return CheckOneLine(state.status());
  const std::string text = StateJson(*state);
  const StatusOr<EncodingState> again = ReadState(FileOf("state.json", text));
  CHECK(again.ok());
  CHECK_EQ(StateJson(*again), text);
  return true;
}

// What a run was begun with, against a run of other options.
bool FuzzBegun(std::string_view bytes) {
  static const std::string kNow =
      R"({"grow":true,"inputs":[{"path":"a","split":"train","bytes":3,"modified_ns":4,)"
      R"("head":"0123456789abcdef"}],"schema":"x","version":2,"vocabulary_from":null})";
  const std::string difference = IdentityDifference(std::string(bytes), kNow);
  CHECK(difference.find('\n') == difference.npos);
  return difference.empty();
}

// Records of a journal, each sealed anew: the length of the payload, its hash, the payload.
std::string ResealedRecords(std::string_view bytes) {
  std::string journal(bytes);
  for (size_t at = 0; at + 2 * sizeof(uint64_t) <= journal.size();) {
    uint64_t size;
    std::memcpy(&size, &journal[at], sizeof(size));
    const size_t payload = at + 2 * sizeof(uint64_t);
    if (size > journal.size() - payload) break;
    const uint64_t hash = XXH3_64bits(journal.data() + payload, size);
    std::memcpy(&journal[at + sizeof(size)], &hash, sizeof(hash));
    at = payload + size;
  }
  return journal;
}

// The journal of prepare's segments: what is kept of it is read again as it was.
bool FuzzSegments(std::string_view bytes) {
  const std::string path = FileOf("segments", ResealedRecords(bytes));
  SegmentList list, again;
  const auto log = SegmentLog::Open(path, &list);
  if (!log.ok()) return CheckOneLine(log.status());
  CHECK(SegmentLog::Open(path, &again).ok());
  CHECK_EQ(again.segments.size(), list.segments.size());
  CHECK(again.ended == list.ended);
  return !list.segments.empty();
}

// A journal of blocks that were written, each record sealed anew, and the file that they are in;
// the first byte says how many records there are.
bool FuzzBlockJournal(std::string_view bytes) {
  constexpr size_t kRecordBytes = 48, kHashBytes = sizeof(uint64_t);
  static ThreadPool pool(1);
  if (bytes.empty()) return false;
  const size_t records = std::min(static_cast<unsigned char>(bytes[0]) * kRecordBytes,
                                  (bytes.size() - 1) / kRecordBytes * kRecordBytes);
  std::string journal(bytes.substr(1, records));
  for (size_t at = 0; at < records; at += kRecordBytes) {
    const uint64_t hash = XXH3_64bits(&journal[at], kRecordBytes - kHashBytes);
    std::memcpy(&journal[at + kRecordBytes - kHashBytes], &hash, kHashBytes);
  }
  const auto writer = DatasetWriter::Open(FuzzFolder() + "/written", InfoOfBlock(0));
  CHECK(writer.ok()) << writer.status().message();
  FileOf("written.partial/blocks.journal", journal);
  FileOf("written.partial/" + SplitFileName(Split::kTrain), bytes.substr(1 + records));
  const Status continued = (*writer)->Continue(&pool);
  if (!continued.ok()) return CheckOneLine(continued);
  const int64_t rows = (*writer)->rows_written(Split::kTrain);
  CHECK(rows >= 0 && rows <= static_cast<int64_t>(records / kRecordBytes) * 8);
  return rows > 0;
}

constexpr FuzzTarget kDataTargets[] = {
    {"begun", false, FuzzBegun},
    {"block", false, FuzzBlock},
    {"block_journal", true, FuzzBlockJournal},
    {"guess", true, FuzzGuess},
    {"idx", true, FuzzIdx},
    {"meta", true, FuzzMeta},
    {"rows", false, FuzzRows},
    {"schema", false, FuzzSchema},
    {"segments", true, FuzzSegments},
    {"state", true, FuzzState},
    {"statistics", true, FuzzStatistics},
    {"text", true, FuzzText},
    {"vocabulary", true, FuzzVocabulary},
};

}  // namespace

std::span<const FuzzTarget> DataTargets() { return kDataTargets; }

}  // namespace elastor
