#include "trainer/run/tensorboard.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <limits>
#include <numeric>
#include <span>
#include <system_error>
#include <utility>
#include <vector>

#include "boost/crc.hpp"
#include "trainer/records/record_json.h"

namespace elastor {
namespace {

using tensorboard::Event;
using tensorboard::Histogram;
using tensorboard::SessionLog;

// TensorBoard reads the files of a folder in the order of their names, and knows them by this part.
constexpr char kNameBegin[] = "events.out.tfevents.";
constexpr char kFileVersion[] = "brain.Event:2";
constexpr size_t kMostHostBytes = 64;

double Now() {
  timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

std::string HostName() {
  std::array<char, kMostHostBytes + 1> name = {};
  gethostname(name.data(), name.size() - 1);
  return name.data();
}

// The seconds in the name of the directory's last event file; 0: there is none.
int64_t LastSeconds(const std::string& directory) {
  int64_t last = 0;
  std::error_code none;
  for (std::filesystem::directory_iterator entry(directory, none), end; !none && entry != end;
       entry.increment(none)) {
    const std::string name = entry->path().filename();
    if (!name.starts_with(kNameBegin)) continue;
    int64_t seconds = 0;
    std::from_chars(name.data() + sizeof(kNameBegin) - 1, name.data() + name.size(), seconds);
    last = std::max(last, seconds);
  }
  return last;
}

template <typename Number>
std::string LittleEndian(Number number) {
  static_assert(std::endian::native == std::endian::little);
  return {reinterpret_cast<const char*>(&number), sizeof(number)};
}

void AddScalar(const std::string& tag, double value, tensorboard::Summary* summary) {
  tensorboard::Summary::Value* scalar = summary->add_value();
  scalar->set_tag(tag);
  scalar->set_simple_value(static_cast<float>(value));
}

// Adds the fields of a record that have a tag.
template <typename Table, typename Record>
void AddScalars(const std::string& prefix, const Table& table, const Record& record,
                tensorboard::Summary* summary) {
  for (const auto& field : table) {
    const std::optional<double> value = field.Number(record);
    if (field.tag != nullptr && value) AddScalar(prefix + field.tag, *value, summary);
  }
}

// Bin i is [begin + i width, begin + (i + 1) width). Empty bins at both ends are left out; of bins
// that are all empty nothing is added.
struct Bins {
  double begin = 0, width = 1;
  std::vector<double> weights;
};
void AddHistogram(const std::string& tag, const Bins& bins, double sum, double sum_squares,
                  tensorboard::Summary* summary) {
  const auto full = [](double weight) { return weight > 0; };
  const auto first = std::ranges::find_if(bins.weights, full);
  if (first == bins.weights.end()) return;
  const auto last = std::find_if(bins.weights.rbegin(), bins.weights.rend(), full).base();
  const auto edge = [&](auto bin) {
    return bins.begin + bins.width * static_cast<double>(bin - bins.weights.begin());
  };
  tensorboard::Summary::Value* value = summary->add_value();
  value->set_tag(tag);
  Histogram* histogram = value->mutable_histo();
  histogram->set_min(edge(first));
  histogram->set_max(edge(last));
  histogram->set_num(std::accumulate(first, last, 0.0));
  histogram->set_sum(sum);
  histogram->set_sum_squares(sum_squares);
  for (auto bin = first; bin != last; ++bin) {
    histogram->add_bucket_limit(edge(bin + 1));
    histogram->add_bucket(*bin);
  }
}

void AddMetrics(const std::string& prefix, const MetricValues& metrics,
                tensorboard::Summary* summary) {
  AddScalars(prefix, kBinaryFields, metrics, summary);
  AddScalars(prefix, kGroupFields, metrics, summary);
  AddScalars(prefix, kClassFields, metrics, summary);
}

// kind: "stable_rank". The mean, and the ranks of the rows.
void AddRank(const std::string& kind, const RankRecord& rank, const SpectrumRecord& record,
             tensorboard::Summary* summary) {
  AddScalar(kind + "/" + record.stage, rank.mean, summary);
  const std::vector<int64_t> bins = CoarseHistogram(rank.histogram);
  const double width = static_cast<double>(record.max_rank) / static_cast<double>(bins.size());
  const auto rows = static_cast<double>(record.samples);
  AddHistogram(kind + "_of_rows/" + record.stage,
               {.width = width, .weights = {bins.begin(), bins.end()}}, rows * rank.mean,
               rows * (rank.mean * rank.mean + rank.stddev * rank.stddev), summary);
}

// Bar i, around i, is as high as the mean of sigma_i / sigma_1.
void AddProfile(const SpectrumRecord& record, tensorboard::Summary* summary) {
  double sum = 0, sum_squares = 0;
  for (size_t i = 0; i < record.profile.size(); ++i) {
    const auto index = static_cast<double>(i + 1);
    sum += index * record.profile[i];
    sum_squares += index * index * record.profile[i];
  }
  AddHistogram("singular_values/" + record.stage, {.begin = 0.5, .weights = record.profile}, sum,
               sum_squares, summary);
}

// The settings as HParams reads them: numbers as numbers, so that they have an axis.
void AddSettings(const std::map<std::string, std::string>& settings,
                 tensorboard::Summary* summary) {
  tensorboard::HParams content;
  for (const auto& [name, text] : settings) {
    tensorboard::HParams::Value& value =
        (*content.mutable_session_start_info()->mutable_hparams())[name];
    double number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error == std::errc() && end == text.data() + text.size()) {
      value.set_number_value(number);
    } else if (text == "true" || text == "false") {
      value.set_bool_value(text == "true");
    } else {
      value.set_string_value(text);
    }
  }
  tensorboard::Summary::Value* value = summary->add_value();
  value->set_tag("_hparams_/session_start_info");
  value->mutable_metadata()->mutable_plugin_data()->set_plugin_name("hparams");
  value->mutable_metadata()->mutable_plugin_data()->set_content(content.SerializeAsString());
  value->mutable_metadata()->set_data_class(tensorboard::Metadata::TENSOR);
  value->mutable_tensor()->set_dtype(tensorboard::Tensor::FLOAT);
  value->mutable_tensor()->mutable_tensor_shape()->add_dim();
}

Event EventOf(int64_t step) {
  Event event;
  event.set_step(step);
  return event;
}

}  // namespace

uint32_t MaskedCrc32c(const std::string& bytes) {
  boost::crc_optimal<32, 0x1EDC6F41, 0xFFFFFFFF, 0xFFFFFFFF, true, true> crc;
  crc.process_bytes(bytes.data(), bytes.size());
  constexpr int kRotation = 15;
  constexpr uint32_t kMask = 0xA282EAD8;
  return std::rotr(crc.checksum(), kRotation) + kMask;
}

StatusOr<std::unique_ptr<TensorBoardFile>> TensorBoardFile::Create(
    const std::string& directory, int64_t first_step,
    const std::map<std::string, std::string>& settings) {
  // Later than the one before also where two are begun within a second, or the clock was put back.
  const int64_t seconds = std::max<int64_t>(std::time(nullptr), LastSeconds(directory) + 1);
  std::array<char, 32> digits;
  std::snprintf(digits.data(), digits.size(), "%010lld.", static_cast<long long>(seconds));
  const std::string path = directory + "/" + kNameBegin + digits.data() + HostName();
  std::FILE* const file = std::fopen(path.c_str(), "wxe");
  if (file == nullptr) return MachineError(path + ": cannot create: " + std::strerror(errno));
  std::unique_ptr<TensorBoardFile> events(new TensorBoardFile(path, file));
  Event version;
  version.set_file_version(kFileVersion);
  ELASTOR_RETURN_IF_ERROR(events->Write(std::move(version)));
  Event start = EventOf(first_step);
  start.mutable_session_log()->set_status(SessionLog::START);
  ELASTOR_RETURN_IF_ERROR(events->Write(std::move(start)));
  Event shown;
  AddSettings(settings, shown.mutable_summary());
  ELASTOR_RETURN_IF_ERROR(events->Write(std::move(shown)));
  return events;
}

Status TensorBoardFile::Append(const TrainRecord& record) {
  Event event = EventOf(record.step);
  AddScalars("", kTrainFields, record, event.mutable_summary());
  return Write(std::move(event));
}

Status TensorBoardFile::Append(const EvalRecord& record) {
  Event event = EventOf(record.step);
  AddMetrics(record.split + "/", record.metrics, event.mutable_summary());
  for (const MetricValues& label : record.labels) {
    AddMetrics(record.split + "/" + label.label + "/", label, event.mutable_summary());
  }
  return Write(std::move(event));
}

Status TensorBoardFile::Append(const SpectrumRecord& of_split) {
  SpectrumRecord record = of_split;
  if (record.split == "train") record.stage = "train/" + record.stage;
  Event event = EventOf(record.step);
  AddRank("stable_rank", record.stable, record, event.mutable_summary());
  AddRank("entropy_rank", record.entropy, record, event.mutable_summary());
  AddProfile(record, event.mutable_summary());
  return Write(std::move(event));
}

Status TensorBoardFile::Append(const ScoringRecord& record) {
  Event event = EventOf(record.step);
  AddScalars("", kScoringFields, record, event.mutable_summary());
  return Write(std::move(event));
}

Status TensorBoardFile::Append(const TableRecord& record) {
  Event event = EventOf(record.step);
  tensorboard::Summary* const summary = event.mutable_summary();
  AddScalar("table_rows/" + record.table, static_cast<double>(record.rows), summary);
  AddScalar("table_evicted/" + record.table, static_cast<double>(record.evicted), summary);
  if (record.unadmitted_share) {
    AddScalar("table_unadmitted_share/" + record.table, *record.unadmitted_share, summary);
  }
  return Write(std::move(event));
}

Status TensorBoardFile::Append(const NtkRecord& record) {
  Event event = EventOf(record.step);
  tensorboard::Summary* const summary = event.mutable_summary();
  AddScalar("ntk_lambda_max/" + record.layer, record.lambda_max, summary);
  AddScalar("ntk_rank/" + record.layer, static_cast<double>(record.rank.value_or(0)), summary);
  if (record.condition_number) {
    AddScalar("ntk_condition_number/" + record.layer, *record.condition_number, summary);
  }
  return Write(std::move(event));
}

Status TensorBoardFile::Write(Event event) {
  event.set_wall_time(Now());
  const std::string bytes = event.SerializeAsString();
  const std::string length = LittleEndian(uint64_t{bytes.size()});
  const std::string record =
      length + LittleEndian(MaskedCrc32c(length)) + bytes + LittleEndian(MaskedCrc32c(bytes));
  std::fwrite(record.data(), 1, record.size(), file_);
  if (std::fflush(file_) == 0 && std::ferror(file_) == 0) return OkStatus();
  return MachineError(path_ + ": cannot write: " + std::strerror(errno));
}

}  // namespace elastor
