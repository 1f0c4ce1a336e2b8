#include "trainer/checkpoint/safetensors.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <iterator>
#include <limits>
#include <string_view>
#include <type_traits>
#include <utility>

#include "core/base/json.h"
#include "core/base/json_entry.h"
#include "core/base/log.h"
#include "core/base/text.h"
#include "xxhash.h"

namespace elastor {
namespace {

static_assert(std::endian::native == std::endian::little);

constexpr size_t kLengthBytes = sizeof(uint64_t);
constexpr size_t kAlignment = 8;              // of the data in the file
constexpr uint64_t kMaxHeader = 100'000'000;  // the format's own limit
constexpr size_t kBufferBytes = size_t{1} << 20;

struct TypeFacts {
  TensorType type;
  const char* name;
  int64_t bytes;
  int64_t alignment;
};
constexpr TypeFacts kTypes[] = {
    {TensorType::kF32, "F32", 4, 4},
    {TensorType::kI64, "I64", 8, 8},
    {TensorType::kU8, "U8", 1, 4},  // may hold floats
};
const TypeFacts& FactsOf(TensorType type) { return kTypes[static_cast<int>(type)]; }
const char* TypeName(TensorType type) { return FactsOf(type).name; }

// Bytes of a tensor; none when they do not fit or a length is negative.
std::optional<int64_t> CountBytes(const TensorSpec& tensor) {
  int64_t bytes = FactsOf(tensor.type).bytes;
  for (const int64_t length : tensor.shape) {
    if (length < 0 || __builtin_mul_overflow(bytes, length, &bytes)) return std::nullopt;
  }
  return bytes;
}

// The header with its length, padded with spaces.
std::string MakeHeader(std::span<const TensorSpec> tensors) {
  Json header = Json::object();
  int64_t offset = 0;
  for (const TensorSpec& tensor : tensors) {
    CHECK_EQ(offset % FactsOf(tensor.type).alignment, 0) << tensor.name << ": not aligned";
    CHECK(!header.contains(tensor.name)) << tensor.name;
    const int64_t end = offset + tensor.bytes();
    header[tensor.name] = {
        {"dtype", TypeName(tensor.type)}, {"shape", tensor.shape}, {"data_offsets", {offset, end}}};
    offset = end;
  }
  std::string text = header.dump();
  text.append((kAlignment - text.size() % kAlignment) % kAlignment, ' ');
  const uint64_t length = text.size();
  std::string bytes(kLengthBytes, '\0');
  std::memcpy(bytes.data(), &length, kLengthBytes);
  return bytes + text;
}

// A tensor of a header, with its place.
struct Entry {
  TensorSpec tensor;
  int64_t begin = 0;
  int64_t end = 0;
};

// What is wrong with an entry; empty: nothing. Throws a std::string as JsonEntry does.
std::string ParseEntry(const std::string& name, const JsonEntry& json, Entry* entry) {
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  entry->tensor.name = name;
  const std::string dtype = json.Member("dtype").Text();
  const TypeFacts* const found =
      std::ranges::find_if(kTypes, [&](const TypeFacts& type) { return type.name == dtype; });
  if (found == std::end(kTypes)) return "has dtype " + dtype + "; expected F32, I64 or U8";
  entry->tensor.type = found->type;
  for (const JsonEntry& length : json.Member("shape").Elements()) {
    entry->tensor.shape.push_back(length.Integer(-kMost, kMost));
  }
  const JsonEntry offsets = json.Member("data_offsets");
  const std::vector<JsonEntry> both = offsets.Elements();
  if (both.size() != 2) offsets.Wrong("two offsets");
  entry->begin = both[0].Integer(0, kMost);
  entry->end = both[1].Integer(0, kMost);
  const std::optional<int64_t> bytes = CountBytes(entry->tensor);
  if (!bytes || entry->end < entry->begin || entry->end - entry->begin != *bytes) {
    return "has data_offsets that do not fit its shape";
  }
  return "";
}

// The entries of a header in the order of their data.
StatusOr<std::vector<Entry>> ParseEntries(const std::string& path, std::string_view header) {
  std::vector<Entry> entries;
  try {
    const Json json = ParseJson(header);
    for (const auto& [name, tensor] : JsonEntry(json).Members()) {
      if (name == "__metadata__") continue;
      const std::string wrong = ParseEntry(name, tensor, &entries.emplace_back());
      if (!wrong.empty()) return UserError(path + ": tensor '" + name + "' " + wrong);
    }
  } catch (const std::string& mistake) {
    return UserError(path + ": not a safetensors header: " + mistake);
  }
  std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
    return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
  });
  return entries;
}

template <typename T>
constexpr TensorType TypeOf() {
  if constexpr (std::is_same_v<T, float>) return TensorType::kF32;
  if constexpr (std::is_same_v<T, int64_t>) return TensorType::kI64;
  static_assert(std::is_same_v<T, float> || std::is_same_v<T, int64_t> ||
                std::is_same_v<T, uint8_t>);
  return TensorType::kU8;
}

bool ShapeFits(std::span<const int64_t> found, std::span<const int64_t> expected) {
  return std::equal(found.begin(), found.end(), expected.begin(), expected.end(),
                    [](int64_t f, int64_t e) { return e == kAnyLength || f == e; });
}

}  // namespace

int64_t TensorSpec::bytes() const {
  const std::optional<int64_t> bytes = CountBytes(*this);
  CHECK(bytes.has_value()) << name << ": " << TensorText(type, shape);
  return *bytes;
}

std::string TensorText(TensorType type, std::span<const int64_t> shape) {
  std::string text = std::string(TypeName(type)) + " [";
  for (size_t i = 0; i < shape.size(); ++i) {
    if (i > 0) text += ", ";
    text += shape[i] == kAnyLength ? "any" : std::to_string(shape[i]);
  }
  return text + "]";
}

// ---- Writing

SafetensorsWriter::SafetensorsWriter(AtomicFileWriter file, int64_t data_bytes)
    : file_(std::move(file)), missing_bytes_(data_bytes) {}

StatusOr<SafetensorsWriter> SafetensorsWriter::Open(const std::string& path,
                                                    std::span<const TensorSpec> tensors) {
  ELASTOR_ASSIGN_OR_RETURN(AtomicFileWriter file, AtomicFileWriter::Open(path));
  int64_t data_bytes = 0;
  for (const TensorSpec& tensor : tensors) data_bytes += tensor.bytes();
  SafetensorsWriter writer(std::move(file), data_bytes);
  writer.buffer_ = MakeHeader(tensors);
  const int64_t header_bytes = static_cast<int64_t>(writer.buffer_.size());
  writer.facts_ = {header_bytes + data_bytes, XXH3_64bits(writer.buffer_.data(), header_bytes)};
  return writer;
}

Status SafetensorsWriter::AppendBytes(const char* bytes, size_t size) {
  missing_bytes_ -= static_cast<int64_t>(size);
  CHECK_GE(missing_bytes_, 0) << "more data than the tensors of the header";
  if (buffer_.size() + size >= kBufferBytes) ELASTOR_RETURN_IF_ERROR(Flush());
  if (size >= kBufferBytes) return file_.Append({bytes, size});
  buffer_.append(bytes, size);
  return OkStatus();
}

Status SafetensorsWriter::Flush() {
  ELASTOR_RETURN_IF_ERROR(file_.Append(buffer_));
  buffer_.clear();
  return OkStatus();
}

StatusOr<SafetensorsFacts> SafetensorsWriter::Commit() {
  CHECK_EQ(missing_bytes_, 0) << "less data than the tensors of the header";
  ELASTOR_RETURN_IF_ERROR(Flush());
  ELASTOR_RETURN_IF_ERROR(file_.Commit());
  return facts_;
}

// ---- Reading

StatusOr<SafetensorsFile> SafetensorsFile::Open(const std::string& path,
                                                const std::optional<SafetensorsFacts>& expected) {
  ELASTOR_ASSIGN_OR_RETURN(MappedFile mapped, MappedFile::Open(path, MappedFile::Links::kRefuse));
  if (mapped.bytes() == 0) return UserError(path + ": not a file with contents");
  SafetensorsFile file(std::move(mapped));
  if (expected) ELASTOR_RETURN_IF_ERROR(file.Verify(*expected));
  ELASTOR_RETURN_IF_ERROR(file.ParseHeader());
  return file;
}

Status SafetensorsFile::Verify(const SafetensorsFacts& expected) const {
  const uint64_t bytes = file_.bytes();
  if (file_.bytes() != expected.bytes) {
    return UserError(StrCat(path(), ": has ", bytes, " bytes; expected ", expected.bytes));
  }
  uint64_t length = 0;
  if (bytes >= kLengthBytes) std::memcpy(&length, file_.data(), kLengthBytes);
  const bool fits = length <= kMaxHeader && kLengthBytes + length <= bytes;
  if (fits && XXH3_64bits(file_.data(), kLengthBytes + length) == expected.header_xxh3) {
    return OkStatus();
  }
  ELASTOR_RETURN_IF_ERROR(CheckReadable());
  return UserError(path() +
                   ": the header does not match its hash; the file is damaged or was "
                   "replaced");
}

Status SafetensorsFile::ParseHeader() {
  const uint64_t file_bytes = file_.bytes();
  uint64_t length = 0;
  if (file_bytes >= kLengthBytes) std::memcpy(&length, file_.data(), kLengthBytes);
  if (length < 2 || length > kMaxHeader || length > file_bytes - kLengthBytes) {
    return UserError(path() + ": not a safetensors file");
  }
  const char* const header = file_.data() + kLengthBytes;
  const char* const data = header + length;
  ELASTOR_ASSIGN_OR_RETURN(std::vector<Entry> entries, ParseEntries(path(), {header, data}));
  int64_t end = 0;
  for (Entry& entry : entries) {
    const std::string tensor = path() + ": tensor '" + entry.tensor.name + "' ";
    if (entry.begin != end) return UserError(tensor + "does not begin where the one before ends");
    if ((data + entry.begin - file_.data()) % FactsOf(entry.tensor.type).alignment != 0) {
      return UserError(tensor + "is not aligned to its elements");
    }
    end = entry.end;
    data_.push_back(data + entry.begin);
    tensors_.push_back(std::move(entry.tensor));
  }
  const int64_t data_bytes = static_cast<int64_t>(file_bytes - kLengthBytes - length);
  if (end == data_bytes) return OkStatus();
  return UserError(
      StrCat(path(), ": has ", data_bytes, " bytes of data; expected ", end, " (by its header)"));
}

template <typename T>
StatusOr<std::span<const T>> SafetensorsFile::Find(const TensorSpec& expected) const {
  CHECK(expected.type == TypeOf<T>()) << expected.name;
  const auto found = std::find_if(tensors_.begin(), tensors_.end(),
                                  [&](const TensorSpec& t) { return t.name == expected.name; });
  const std::string wanted = TensorText(expected.type, expected.shape);
  if (found == tensors_.end()) {
    return UserError(path() + ": has no tensor '" + expected.name + "'; expected " + wanted);
  }
  if (found->type != expected.type || !ShapeFits(found->shape, expected.shape)) {
    return UserError(path() + ": tensor '" + expected.name + "' is " +
                     TensorText(found->type, found->shape) + "; expected " + wanted);
  }
  return std::span(reinterpret_cast<const T*>(data_[found - tensors_.begin()]),
                   static_cast<size_t>(found->bytes()) / sizeof(T));
}

template StatusOr<std::span<const float>> SafetensorsFile::Find(const TensorSpec&) const;
template StatusOr<std::span<const int64_t>> SafetensorsFile::Find(const TensorSpec&) const;
template StatusOr<std::span<const uint8_t>> SafetensorsFile::Find(const TensorSpec&) const;

}  // namespace elastor
