#include "trainer/prepare/text_pass.h"

#include <xxhash.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <charconv>
#include <limits>
#include <memory>
#include <mutex>
#include <set>
#include <utility>

#include "core/base/text.h"
#include "trainer/data/vocabulary.h"
#include "trainer/prepare/histories.h"
#include "trainer/prepare/inputs.h"
#include "trainer/prepare/layouts.h"
#include "trainer/prepare/negatives.h"
#include "trainer/prepare/rows/bad_rows.h"
#include "trainer/prepare/rows/row_parser.h"
#include "trainer/prepare/side_tables.h"
#include "trainer/prepare/split_ranges.h"

namespace elastor {
namespace {

constexpr int64_t kPrefetchRows = 12;
// Share of a worker's memory that vocabularies may take. The rest is for sorting the largest and
// for its chunk.
constexpr double kVocabularyShare = 0.6;

// Returns the schema of rows that lack the labels' columns.
Schema WithoutLabels(const Schema& schema) {
  std::set<std::string> shared;
  for (const Field& field : schema.fields()) shared.insert(field.column());
  for (const Lookup& lookup : schema.lookup()) shared.insert(lookup.by());
  Schema rest = schema;
  rest.clear_fields();
  for (const Field& field : schema.fields()) {
    // Pairs tell by themselves whether a label stands before them.
    if (field.type() != Field::LABEL || SourceOf(schema.layout()) == RowSource::kPairs) {
      *rest.add_fields() = field;
    } else if (shared.contains(field.name()) && !schema.header()) {
      // Another field reads its column, by its name.
      rest.add_fields()->set_name(field.name());
      rest.mutable_fields()->rbegin()->set_type(Field::IGNORED);
    }
  }
  return rest;
}

// Numbers values of a field by its vocabulary.
class ValueNumberer {
 public:
  Vocabulary& vocabulary() { return vocabulary_; }
  int64_t bytes() const {
    return vocabulary_.bytes() + 4 * static_cast<int64_t>(number_of_.capacity());
  }

  // `text_of`: of a value's place among `count`.
  template <typename TextOf>
  void NumberTexts(int64_t count, const TextOf& text_of, uint32_t* numbers) {
    for (int64_t i = 0; i < count; ++i) {
      if (i + kPrefetchRows < count) vocabulary_.Prefetch(text_of(i + kPrefetchRows));
      numbers[i] = vocabulary_.Add(text_of(i));
    }
  }
  template <typename IdOf>
  void NumberIds(int64_t count, const IdOf& id_of, uint32_t* numbers) {
    for (int64_t i = 0; i < count; ++i) {
      if (i + kPrefetchRows < count) vocabulary_.PrefetchInteger(id_of(i + kPrefetchRows));
      numbers[i] = vocabulary_.AddInteger(id_of(i));
    }
  }
  // Looks up each value of a dictionary once. `record_of`: of a row; nulls: see RowParser.
  template <typename RecordOf>
  void NumberCodes(const TextColumn& column, const std::vector<std::string>& nulls, int64_t rows,
                   const RecordOf& record_of, uint32_t* numbers) {
    if (dictionary_ != column.dictionary) {
      dictionary_ = column.dictionary;
      number_of_.assign(dictionary_->size(), kNotYet);
    }
    for (int64_t row = 0; row < rows; ++row) {
      const uint32_t code = column.codes[record_of(row)];
      uint32_t& number = number_of_[code];
      if (number == kNotYet) number = AddUnlessNull(dictionary_->Value(code), nulls);
      numbers[row] = number;
    }
  }
  // Takes integers that were met lately without their text.
  template <typename RecordOf>
  void NumberIntegers(const std::vector<int64_t>& integers, int64_t rows, const RecordOf& record_of,
                      uint32_t* numbers) {
    lately_.resize(kLately);
    struct Text {
      int64_t row;
      size_t bytes;
      char digits[20];
    };
    std::array<Text, kPrefetchRows> texts;
    for (int64_t begin = 0; begin < rows; begin += kPrefetchRows) {
      size_t count = 0;
      for (int64_t row = begin; row < std::min(rows, begin + kPrefetchRows); ++row) {
        const int64_t value = integers[record_of(row)];
        const Met& met = MetAt(value);
        numbers[row] = met.number;
        if (met.is_set && met.value == value) continue;
        Text& text = texts[count++];
        char* const end = text.digits + sizeof text.digits;
        text.row = row;
        text.bytes = value == TextColumn::kNone
                         ? 0
                         : std::to_chars(text.digits, end, value).ptr - text.digits;
        vocabulary_.Prefetch({text.digits, text.bytes});
      }
      for (size_t i = 0; i < count; ++i) {
        const auto& [row, bytes, digits] = texts[i];
        const int64_t value = integers[record_of(row)];
        numbers[row] = vocabulary_.Add({digits, bytes});
        MetAt(value) = {value, numbers[row], true};
      }
    }
  }
  uint32_t AddUnlessNull(std::string_view text, const std::vector<std::string>& nulls) {
    const bool null = !nulls.empty() && std::ranges::find(nulls, text) != nulls.end();
    return vocabulary_.Add(null ? std::string_view() : text);
  }

 private:
  static constexpr uint32_t kNotYet = std::numeric_limits<uint32_t>::max();
  static constexpr int kLatelyBits = 10;
  static constexpr size_t kLately = size_t{1} << kLatelyBits;
  static constexpr uint64_t kSpread = 0x9e3779b97f4a7c15;  // 2^64 / golden ratio
  struct Met {
    int64_t value = 0;
    uint32_t number = 0;
    bool is_set = false;
  };

  Met& MetAt(int64_t value) {
    return lately_[static_cast<uint64_t>(value) * kSpread >> (64 - kLatelyBits)];
  }

  Vocabulary vocabulary_;
  std::shared_ptr<const TextDictionary> dictionary_;
  std::vector<uint32_t> number_of_;  // by value of the dictionary
  std::vector<Met> lately_;
};

// Numbers the values of one column of a chunk.
void NumberValues(const PreparePlan& plan, const PreparePlan::IdColumn& column,
                  const std::vector<std::string>& nulls, const ParsedChunk& chunk,
                  ValueNumberer* numberer, std::vector<uint32_t>* numbers) {
  const auto number_all = [&](int64_t count, const auto& value_at) {
    numbers->resize(count);
    if (column.text) {
      numberer->NumberTexts(
          count, [&](int64_t i) { return chunk.TextOf(value_at(i)); }, numbers->data());
    } else {
      numberer->NumberIds(count, value_at, numbers->data());
    }
  };
  if (column.bag) {
    const std::vector<uint64_t> values = BagValues(plan, column, chunk);
    return number_all(std::ssize(values), [&](int64_t i) { return values[i]; });
  }
  const ChunkColumn<uint64_t> ids = chunk.single_columns[column.place].ids;
  const TextColumn* const texts = chunk.single_columns[column.place].texts;
  if (texts == nullptr) {
    return number_all(chunk.rows, [&ids](int64_t i) { return ids.values[i * ids.stride]; });
  }
  numbers->resize(chunk.rows);
  const auto record_of = [&chunk](int64_t row) { return chunk.RecordOf(row); };
  if (texts->dictionary != nullptr) {
    numberer->NumberCodes(*texts, nulls, chunk.rows, record_of, numbers->data());
  } else if (!texts->integers.empty()) {
    numberer->NumberIntegers(texts->integers, chunk.rows, record_of, numbers->data());
  } else {
    numberer->NumberTexts(
        chunk.rows,
        [&](int64_t row) {
          const std::string_view text = texts->Text(chunk.RecordOf(row), chunk.text);
          const bool null = !nulls.empty() && std::ranges::find(nulls, text) != nulls.end();
          return null ? std::string_view() : text;
        },
        numbers->data());
  }
}

class TextPass {
 public:
  TextPass(const PrepareOptions& options, const PreparePlan& plan,
           const std::vector<std::string>& paths, const TextPassFiles& files, ThreadPool* pool)
      : options_(options),
        plan_(plan),
        paths_(paths),
        files_(files),
        pool_(pool),
        labelled_(paths.size() - (options.unlabelled_test ? options.test_inputs.size() : 0)),
        ledger_(paths, options.schema.max_bad_rows(), options.warn) {}

  StatusOr<TextPassResult> Run();

 private:
  // What one worker holds of the segment at hand.
  struct Draft {
    TextSegment segment;
    std::vector<ValueNumberer> numberers;  // by column of PreparePlan::ids
    int64_t text_bytes = 0;
  };

  Status Open();
  // For the inputs from `begin` to `end`, whose headers have to be alike; null: there are none.
  StatusOr<std::unique_ptr<RowParser>> MakeParser(size_t begin, size_t end,
                                                  Collect collect = Collect::kNothing) const;
  Status ReadLog();  // for negatives and histories
  Status TakeUpJournal(const SegmentList& list);
  Status Work();
  Status ProcessChunk(const TextChunk& source, ParsedChunk* parsed, Draft* draft);
  bool Full(const Draft& draft) const;
  Status Finish(Draft* draft);
  void AddSegment(const TextSegment& segment);  // but for its chunks
  void Report();

  const PrepareOptions& options_;
  const PreparePlan& plan_;
  const std::vector<std::string>& paths_;
  const TextPassFiles files_;
  ThreadPool* const pool_;
  std::unique_ptr<InputFiles> inputs_;
  SideTables tables_;
  std::unique_ptr<DrawnNegatives> negatives_;  // null: there are none
  std::unique_ptr<RowHistories> histories_;    // likewise
  int64_t memory_bytes_ = 0;                   // without the side tables and drawn items
  const size_t labelled_;                      // inputs before the unlabelled ones
  std::unique_ptr<RowParser> parser_, unlabelled_parser_;
  std::unique_ptr<SegmentLog> journal_;
  std::atomic<bool> failed_{false};
  std::atomic<int64_t> rows_{0};
  std::atomic<int64_t> text_read_{0};

  std::mutex mutex_;  // guards the rest
  BadRowLedger ledger_;
  TextPassResult result_;
  Status failure_;
};

Status TextPass::Open() {
  const Schema& schema = options_.schema;
  ELASTOR_ASSIGN_OR_RETURN(inputs_, InputFiles::Open(paths_, schema));
  ELASTOR_ASSIGN_OR_RETURN(tables_, ReadSideTables(schema, options_.memory_bytes / 2));
  memory_bytes_ = options_.memory_bytes;
  for (const SideTable& table : tables_) memory_bytes_ -= table.bytes();
  ELASTOR_ASSIGN_OR_RETURN(parser_, MakeParser(0, labelled_));
  ELASTOR_ASSIGN_OR_RETURN(unlabelled_parser_, MakeParser(labelled_, paths_.size()));
  SegmentList list;
  ELASTOR_ASSIGN_OR_RETURN(journal_, SegmentLog::Open(files_.journal, &list));
  ELASTOR_RETURN_IF_ERROR(TakeUpJournal(list));
  inputs_->set_on_end([this](uint32_t input, uint32_t chunks) {
    const std::lock_guard<std::mutex> lock(mutex_);
    ELASTOR_RETURN_IF_ERROR(journal_->AppendEnd(input, chunks));
    return ledger_.EndInput(input, chunks);
  });
  return inputs_->ended() ? OkStatus() : ReadLog();
}

Status TextPass::ReadLog() {
  const Schema& schema = options_.schema;
  for (const Collect collect : {Collect::kNegatives, Collect::kHistories}) {
    const bool negatives = collect == Collect::kNegatives;
    if (negatives ? !schema.has_negatives() : schema.history().empty()) continue;
    ELASTOR_ASSIGN_OR_RETURN(const std::unique_ptr<RowParser> parser,
                             MakeParser(0, labelled_, collect));
    ELASTOR_ASSIGN_OR_RETURN(const std::unique_ptr<RowParser> of_others,
                             MakeParser(labelled_, paths_.size(), collect));
    const LogSource source = {paths_, labelled_, parser.get(), of_others.get(), memory_bytes_};
    if (negatives) {
      ELASTOR_ASSIGN_OR_RETURN(
          negatives_, DrawnNegatives::Make(options_, plan_, source, files_.negatives, pool_));
      memory_bytes_ -= negatives_->bytes();
    } else {
      ELASTOR_ASSIGN_OR_RETURN(histories_,
                               RowHistories::Make(options_, source, files_.histories, pool_));
    }
  }
  return OkStatus();
}

StatusOr<std::unique_ptr<RowParser>> TextPass::MakeParser(size_t begin, size_t end,
                                                          Collect collect) const {
  if (begin == end) return std::unique_ptr<RowParser>();
  Schema schema = inputs_->SchemaOf(begin, options_.schema);
  if (begin >= labelled_) schema = WithoutLabels(schema);
  ELASTOR_ASSIGN_OR_RETURN(
      std::unique_ptr<RowParser> parser,
      RowParser::Create(schema, inputs_->header(begin), paths_[begin],
                        begin < labelled_ ? Labels::kRequired : Labels::kOptional, tables_,
                        collect));
  for (size_t i = begin + 1; i < end; ++i) {
    if (inputs_->is_table(i) != inputs_->is_table(begin)) {
      const auto kind = [this](size_t input) {
        return inputs_->is_table(input) ? " is a Parquet or Arrow file" : " is text";
      };
      return UserError(
          StrCat(paths_[i], kind(i), ", and ", paths_[begin], kind(begin), "; expected one kind"));
    }
    if (!schema.header()) continue;
    ELASTOR_RETURN_IF_ERROR(parser->CheckHeader(inputs_->header(i), paths_[i]));
  }
  return parser;
}

Status TextPass::TakeUpJournal(const SegmentList& list) {
  for (const TextSegment& segment : list.segments) {
    for (const SpilledChunk& chunk : segment.chunks) {
      inputs_->Skip(chunk);
      files_.rows->ReserveUpTo(chunk.at + chunk.bytes);
      result_.chunks.push_back(chunk);
      result_.chunks.back().segment = static_cast<uint32_t>(result_.runs.size());
      ELASTOR_RETURN_IF_ERROR(
          ledger_.Add(chunk.input, chunk.number, {chunk.lines, chunk.bad_rows, {}, 0}));
    }
    for (const ValueRun& run : segment.runs) files_.values->ReserveUpTo(run.at + run.bytes);
    AddSegment(segment);
  }
  for (const auto& [input, chunks] : list.ended) {
    inputs_->SkipRestOf(input, chunks);
    ELASTOR_RETURN_IF_ERROR(ledger_.EndInput(input, chunks));
  }
  return OkStatus();
}

Status TextPass::ProcessChunk(const TextChunk& source, ParsedChunk* parsed, Draft* draft) {
  // Rows without labels get none.
  if (negatives_ != nullptr && source.input < labelled_) {
    ELASTOR_RETURN_IF_ERROR(negatives_->Read(source.input, source.number, parsed));
  } else {
    parsed->draws.clear();
  }
  if (histories_ != nullptr) {
    ELASTOR_RETURN_IF_ERROR(histories_->Read(source.input, source.number, parsed));
  }
  const RowParser& parser = source.input < labelled_ ? *parser_ : *unlabelled_parser_;
  parser.Parse(parsed, Taking::kColumns);
  if (source.input >= labelled_) {
    parsed->labels.assign(parsed->rows * plan_.labels.size(),
                          std::numeric_limits<float>::quiet_NaN());
  }
  const size_t records = static_cast<size_t>(parsed->records);
  const size_t histories = records * options_.schema.history_size();
  if ((histories_ != nullptr && !parsed->histories.empty() &&
       parsed->histories.size() != histories) ||
      (!parsed->draws.empty() && parsed->draws.size() != records)) {
    return MachineError(
        "histories or negatives are of other rows than the text; begin anew with --restart");
  }
  ValueNumbers numbers(plan_.ids.size());
  for (size_t i = 0; i < plan_.ids.size(); ++i) {
    if (plan_.ids[i].keyed) continue;
    NumberValues(plan_, plan_.ids[i], parser.nulls(), *parsed, &draft->numberers[i], &numbers[i]);
  }
  SpilledChunk chunk;
  if (negatives_ == nullptr && plan_.split_by_hash) {
    for (const uint64_t hash : parsed->split_hashes) {
      parsed->splits.push_back(static_cast<uint8_t>(SplitOfHash(options_.schema.split(), hash)));
    }
  }
  if (plan_.stores_splits) parsed->splits.resize(parsed->rows);  // where the input has changed
  for (const uint8_t split : parsed->splits) ++chunk.split_rows[split];
  const std::string bytes = PackChunk(plan_, *parsed, numbers);
  chunk.input = source.input;
  chunk.number = source.number;
  chunk.rows = static_cast<uint32_t>(parsed->rows);
  chunk.lines = static_cast<uint32_t>(parsed->lines + source.lines_taken);
  chunk.bad_rows = static_cast<uint32_t>(parsed->bad_rows);
  chunk.text_at = source.text_at;
  chunk.text_bytes = source.text_bytes;
  chunk.bytes = static_cast<int64_t>(bytes.size());
  chunk.at = files_.rows->Reserve(chunk.bytes);
  chunk.checksum = XXH3_64bits(bytes.data(), bytes.size());
  ELASTOR_RETURN_IF_ERROR(files_.rows->WriteAt(chunk.at, bytes));
  draft->segment.chunks.push_back(chunk);
  draft->segment.cut_values.resize(plan_.ids.size(), 0);
  for (size_t i = 0; i < plan_.ids.size(); ++i) {
    if (plan_.ids[i].bag) draft->segment.cut_values[i] += parsed->cut_values[plan_.ids[i].place];
  }
  draft->segment.missing_keys.resize(tables_.size(), 0);
  for (size_t i = 0; i < tables_.size(); ++i) {
    draft->segment.missing_keys[i] += parsed->missing_keys[i];
  }
  draft->text_bytes += chunk.text_bytes;
  rows_ += chunk.rows;
  text_read_ += chunk.text_bytes;
  const std::lock_guard<std::mutex> lock(mutex_);
  Report();
  return ledger_.Add(chunk.input, chunk.number,
                     {chunk.lines, chunk.bad_rows, std::move(parsed->bad), source.lines_taken});
}

void TextPass::AddSegment(const TextSegment& segment) {
  result_.runs.push_back(segment.runs);
  for (size_t i = 0; i < plan_.ids.size(); ++i) result_.cut_values[i] += segment.cut_values[i];
  for (size_t i = 0; i < tables_.size(); ++i) result_.missing_keys[i] += segment.missing_keys[i];
}

bool TextPass::Full(const Draft& draft) const {
  const double limit = kVocabularyShare * static_cast<double>(memory_bytes_) / pool_->threads();
  int64_t bytes = 0;
  for (const ValueNumberer& numberer : draft.numberers) bytes += numberer.bytes();
  return draft.text_bytes >= options_.segment_bytes || static_cast<double>(bytes) > limit;
}

Status TextPass::Finish(Draft* draft) {
  if (draft->segment.chunks.empty()) return OkStatus();
  for (ValueNumberer& numberer : draft->numberers) {
    numberer.vocabulary().Sort();
    ELASTOR_ASSIGN_OR_RETURN(const ValueRun run,
                             WriteValueRun(numberer.vocabulary(), files_.values));
    draft->segment.runs.push_back(run);
    numberer = ValueNumberer();
  }
  const std::lock_guard<std::mutex> lock(mutex_);
  for (SpilledChunk& chunk : draft->segment.chunks) {
    chunk.segment = static_cast<uint32_t>(result_.runs.size());
    result_.chunks.push_back(chunk);
  }
  AddSegment(draft->segment);
  ELASTOR_RETURN_IF_ERROR(journal_->Append(draft->segment));
  draft->segment = TextSegment();
  draft->text_bytes = 0;
  return OkStatus();
}

Status TextPass::Work() {
  Draft draft;
  draft.numberers.resize(plan_.ids.size());
  ParsedChunk parsed;
  TextChunk source;
  while (!failed_) {
    bool found;
    ELASTOR_RETURN_IF_ERROR(inputs_->Next(&source, &parsed, &found));
    if (!found) return Finish(&draft);
    ELASTOR_RETURN_IF_ERROR(ProcessChunk(source, &parsed, &draft));
    if (Full(draft)) ELASTOR_RETURN_IF_ERROR(Finish(&draft));
  }
  return OkStatus();
}

void TextPass::Report() {
  if (options_.progress) {
    options_.progress({"reading", inputs_->share_read(), rows_, text_read_});
  }
}

StatusOr<TextPassResult> TextPass::Run() {
  result_.cut_values.assign(plan_.ids.size(), 0);
  result_.missing_keys.assign(options_.schema.lookup_size(), 0);
  ELASTOR_RETURN_IF_ERROR(Open());
  pool_->Run([this](int) {
    const Status status = Work();
    if (status.ok()) return;
    failed_ = true;
    const std::lock_guard<std::mutex> lock(mutex_);
    if (failure_.ok()) failure_ = status;
  });
  // What is wrong with text that changes is first of all that.
  if (failure_.code() != StatusCode::kMachine) {
    ELASTOR_RETURN_IF_ERROR(inputs_->CheckUnchanged());
  }
  ELASTOR_RETURN_IF_ERROR(failure_);
  std::sort(result_.chunks.begin(), result_.chunks.end(),
            [](const SpilledChunk& a, const SpilledChunk& b) {
              return a.input != b.input ? a.input < b.input : a.number < b.number;
            });
  result_.bad_rows = ledger_.bad_rows();
  for (const SpilledChunk& chunk : result_.chunks) result_.text_bytes += chunk.text_bytes;
  return std::move(result_);
}

}  // namespace

StatusOr<TextPassResult> RunTextPass(const PrepareOptions& options, const PreparePlan& plan,
                                     const std::vector<std::string>& inputs,
                                     const TextPassFiles& files, ThreadPool* pool) {
  return TextPass(options, plan, inputs, files, pool).Run();
}

}  // namespace elastor
