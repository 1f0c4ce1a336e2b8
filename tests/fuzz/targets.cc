#include "tests/fuzz/targets.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "core/base/hash_text.h"
#include "glog/logging.h"
#include "launcher/run_folder.h"
#include "launcher/sweep_file.h"
#include "trainer/checkpoint/manifest.h"
#include "trainer/checkpoint/safetensors.h"
#include "trainer/data/block_format.h"
#include "trainer/data/prepared_meta.h"
#include "trainer/experiment/config.h"
#include "trainer/experiment/config_checks.h"
#include "trainer/experiment/config_defaults.h"
#include "trainer/experiment/overrides.h"
#include "trainer/prepare/guess.h"
#include "trainer/prepare/images.h"
#include "trainer/prepare/row_parser.h"
#include "trainer/prepare/saved_vocabulary.h"
#include "trainer/prepare/schema_file.h"

namespace elastor {
namespace {

// A message for people is one line.
void CheckOneLine(const Status& status) {
  CHECK(!status.message().empty());
  CHECK(status.message().find('\n') == std::string::npos) << status.message();
}

// A folder of this process, in memory where there is a choice.
const std::string& Folder() {
  struct Scratch {
    const std::string path = [] {
      const char* const test = std::getenv("TEST_TMPDIR");
      return std::string(test != nullptr ? test : "/dev/shm") + "/elastor_fuzz_" +
             std::to_string(getpid());
    }();
    Scratch() { std::filesystem::create_directories(path); }
    ~Scratch() { std::filesystem::remove_all(path); }
  };
  static const Scratch scratch;
  return scratch.path;
}

// By the system's calls alone, for the fuzzer's time goes into this.
std::string FileOf(const std::string& name, std::string_view bytes) {
  std::string path = Folder() + "/" + name;
  const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  PCHECK(file >= 0) << path;
  PCHECK(write(file, bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size())) << path;
  close(file);
  return path;
}

// Bytes that end with their own hash are of no use when every change of them is found by it.
std::string Resealed(std::string_view bytes, const std::string& member) {
  const std::string opening = "\"" + member + "\": \"";
  const size_t at = bytes.rfind(opening);
  if (at == bytes.npos) return std::string(bytes);
  return SealJson(std::string(bytes.substr(0, at + opening.size())));
}

// What is accepted, is written and read again as it was.
void CheckExperiment(Experiment experiment) {
  ResolveDefaults(&experiment);
  if (const Status valid = ValidateExperiment(experiment); !valid.ok()) return CheckOneLine(valid);
  const std::string text = ExperimentText(experiment);
  const StatusOr<Experiment> read = ParseExperiment(text, "written");
  CHECK(read.ok()) << read.status().message();
  CHECK_EQ(ExperimentText(*read), text);
  CHECK_EQ(NumericHash(*read), NumericHash(experiment));
}

void FuzzExperiment(std::string_view bytes) {
  StatusOr<Experiment> experiment = ParseExperiment(std::string(bytes), "fuzzed");
  if (experiment.ok()) experiment = CompleteStored(*std::move(experiment));
  if (!experiment.ok()) return CheckOneLine(experiment.status());
  CheckExperiment(*experiment);
}

// An override a line.
void FuzzOverrides(std::string_view bytes) {
  std::vector<std::string> assignments(1);
  for (const char c : bytes) {
    if (c == '\n') {
      assignments.emplace_back();
    } else {
      assignments.back() += c;
    }
  }
  Experiment experiment;
  const Status applied = ApplyOverrides(assignments, &experiment);
  if (!applied.ok()) return CheckOneLine(applied);
  CheckExperiment(experiment);
}

void FuzzSchema(std::string_view bytes) {
  const StatusOr<Schema> schema = ParseSchema(std::string(bytes), "fuzzed");
  if (!schema.ok()) CheckOneLine(schema.status());
}

// A schema, a line of three hyphens, and rows.
void FuzzRows(std::string_view bytes) {
  constexpr std::string_view kBetween = "\n---\n";
  const size_t between = bytes.find(kBetween);
  if (between == bytes.npos) return;
  const StatusOr<Schema> schema = ParseSchema(std::string(bytes.substr(0, between)), "fuzzed");
  if (!schema.ok() || schema->layout() == Schema::SYNTHETIC) return;
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
}

void FuzzGuess(std::string_view bytes) {
  const StatusOr<std::string> text = GuessSchema({FileOf("guessed", bytes)});
  if (!text.ok()) return CheckOneLine(text.status());
  const StatusOr<Schema> schema = ParseSchema(*text, "guessed");
  CHECK(schema.ok()) << schema.status().message() << "\n" << *text;
}

// Of a fixed shape; the first byte chooses how many rows are said to be in the block.
void FuzzBlock(std::string_view bytes) {
  DatasetInfo info;
  info.labels = {{"a"}, {"b"}};
  info.numeric.resize(3);
  info.categorical = {{.name = "i", .ids = 100},
                      {.name = "j", .ids = 7},
                      {.name = "k", .ids = 100, .multi_hot = true},
                      {.name = "l", .ids = 9, .multi_hot = true}};
  info.has_weights = info.has_groups = info.has_times = true;
  info.rows_per_block = 8;
  if (bytes.empty()) return;
  const int64_t rows = 1 + static_cast<unsigned char>(bytes[0]) % info.rows_per_block;
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
  const size_t fields = info.categorical.size();
  CHECK_EQ(read.offsets.size(), rows * fields + 1);
  for (size_t bag = 0; bag + 1 < read.offsets.size(); ++bag) {
    for (int64_t i = read.offsets[bag]; i < read.offsets[bag + 1]; ++i) {
      CHECK(read.ids[i] >= 0 && read.ids[i] < info.categorical[bag % fields].ids);
    }
  }
}

void FuzzMeta(std::string_view bytes) {
  const StatusOr<PreparedMeta> meta =
      ReadPreparedMeta(FileOf("meta.json", Resealed(bytes, "meta_xxh3")));
  if (!meta.ok()) CheckOneLine(meta.status());
}

void FuzzManifest(std::string_view bytes) {
  const StatusOr<Manifest> manifest = ParseManifest("fuzzed", Resealed(bytes, "manifest_xxh3"));
  if (!manifest.ok()) CheckOneLine(manifest.status());
}

template <typename T>
void ReadAll(const StatusOr<std::span<const T>>& values, const TensorSpec& tensor) {
  CHECK(values.ok()) << values.status().message();
  CHECK_EQ(static_cast<int64_t>(values->size_bytes()), tensor.bytes());
  HashTextOf({reinterpret_cast<const char*>(values->data()), values->size_bytes()});
}

void FuzzSafetensors(std::string_view bytes) {
  const StatusOr<SafetensorsFile> file =
      SafetensorsFile::Open(FileOf("fuzzed.safetensors", bytes), {});
  if (!file.ok()) return CheckOneLine(file.status());
  for (const TensorSpec& tensor : file->tensors()) {
    if (tensor.type == TensorType::kF32) {
      ReadAll(file->Find<float>(tensor), tensor);
    } else {
      ReadAll(file->Find<int64_t>(tensor), tensor);
    }
  }
}

void FuzzVocabulary(std::string_view bytes) {
  const SavedVocabulary saved = {.rows = std::ranges::count(bytes, '\n') + 1,
                                 .checksum = HashTextOf(bytes)};
  const StatusOr<Vocabulary> vocabulary = LoadVocabularyFile(FileOf("field.tsv", bytes), saved);
  if (!vocabulary.ok()) CheckOneLine(vocabulary.status());
}

void FuzzSweep(std::string_view bytes) {
  const StatusOr<Sweep> sweep = LoadSweep(FileOf("sweep.textproto", bytes), {});
  if (!sweep.ok()) return CheckOneLine(sweep.status());
  const std::string text = SweepText(*sweep);
  const StatusOr<Sweep> again = LoadSweep(FileOf("again.textproto", text), {});
  CHECK(again.ok()) << again.status().message() << "\n" << text;
  CHECK_EQ(SweepText(*again), text);
}

// What a launcher reads of its runs: attempts, progress and results.
void FuzzRunFolder(std::string_view bytes) {
  const Attempts attempts = ReadAttempts(FileOf("attempts.jsonl", bytes));
  CHECK_GE(attempts.started, 0);
  FileOf("metrics.jsonl", bytes);
  ProgressReader(Folder()).Read();
  FileOf("summary.json", bytes);
  ReadResult(Folder());
}

// An array of images, or of labels.
void FuzzIdx(std::string_view bytes) {
  constexpr int64_t kMostBytes = 1 << 16;
  const std::string path = FileOf("fuzzed.idx", bytes);
  for (const int64_t dimensions : {1, 3}) {
    const StatusOr<IdxArray> array = ReadIdx(path, dimensions, kMostBytes);
    if (!array.ok()) {
      CheckOneLine(array.status());
      continue;
    }
    int64_t expected = 1;
    for (const int64_t size : array->sizes) expected *= size;
    CHECK_EQ(static_cast<int64_t>(array->sizes.size()), dimensions);
    CHECK_EQ(static_cast<int64_t>(array->bytes.size()), expected);
  }
}

constexpr FuzzTarget kTargets[] = {
    {"block", false, FuzzBlock},          {"experiment", false, FuzzExperiment},
    {"guess", true, FuzzGuess},           {"idx", true, FuzzIdx},
    {"manifest", false, FuzzManifest},    {"meta", true, FuzzMeta},
    {"overrides", false, FuzzOverrides},  {"rows", false, FuzzRows},
    {"run_folder", true, FuzzRunFolder},  {"safetensors", true, FuzzSafetensors},
    {"schema", false, FuzzSchema},        {"sweep", true, FuzzSweep},
    {"vocabulary", true, FuzzVocabulary},
};

}  // namespace

std::span<const FuzzTarget> FuzzTargets() { return kTargets; }

}  // namespace elastor
