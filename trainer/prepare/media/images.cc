#include "trainer/prepare/media/images.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <functional>
#include <limits>
#include <memory>
#include <span>
#include <string_view>

#include "core/base/leaves.h"
#include "core/base/mapped_file.h"
#include "core/base/text.h"
#include "trainer/data/text_source.h"
#include "trainer/data/unpacker.h"
#include "trainer/prepare/rows/row_blocks.h"
#include "trainer/prepare/split_ranges.h"

namespace elastor {
namespace {

constexpr int64_t kLabelDimensions = 1;
constexpr int64_t kImageDimensions = 3;
constexpr int64_t kMostImages = std::numeric_limits<uint32_t>::max();
constexpr size_t kUnpackBytes = 1 << 20;
// Pixels of a block, as many rows as there are by default, and as many as may be asked for.
constexpr int64_t kBlockBytes = 16 << 20;
constexpr int64_t kMostBlockBytes = 256 << 20;

// The first four bytes of a file of bytes: two zeros, the type 8, the dimensions.
uint32_t MagicOf(int64_t dimensions) { return 0x0800 + static_cast<uint32_t>(dimensions); }

const char* ContentOf(uint32_t magic) {
  if (magic == MagicOf(kImageDimensions)) return " (images)";
  return magic == MagicOf(kLabelDimensions) ? " (labels)" : "";
}

std::string MagicText(uint32_t magic) {
  char text[16];
  std::snprintf(text, sizeof(text), "0x%08x", magic);
  return std::string(text) + ContentOf(magic);
}

uint32_t BigEndian(std::string_view bytes, int64_t at) {
  uint32_t value = 0;
  for (int64_t i = at; i < at + 4; ++i) value = value << 8 | static_cast<uint8_t>(bytes[i]);
  return value;
}

std::string SizesText(std::span<const int64_t> sizes) {
  std::string text;
  for (const int64_t size : sizes) text += StrCat(text.empty() ? "" : " x ", size);
  return text;
}

// The bytes of a file piece by piece, unpacked where they are packed.
class ByteSource {
 public:
  explicit ByteSource(const MappedFile* file)
      : path_(file->path()),
        file_(file->data(), static_cast<size_t>(file->bytes())),
        unpacker_(Unpacker::For(file_)) {}

  // Appends until *bytes has `size`, or as many as there are.
  Status FillTo(size_t size, std::string* bytes) {
    while (bytes->size() < size) {
      const size_t before = bytes->size();
      const size_t room = std::min(size - before, kUnpackBytes);
      if (unpacker_ == nullptr) {
        bytes->append(file_.substr(at_, room));
        at_ += bytes->size() - before;
      } else {
        ELASTOR_RETURN_IF_ERROR(Unpack(room, bytes));
      }
      if (bytes->size() == before) return OkStatus();
    }
    return OkStatus();
  }

 private:
  Status Unpack(size_t room, std::string* bytes) {
    const size_t before = bytes->size();
    bytes->resize(before + room);
    Unpacker::Step step = {.used = 1};
    while (step.made == 0 && step.used > 0 && step.damage == nullptr &&
           (at_ < file_.size() || unpacker_->inside())) {
      step = unpacker_->Unpack(file_.substr(at_, kUnpackBytes), std::span(*bytes).subspan(before));
      at_ += step.used;
    }
    bytes->resize(before + step.made);
    if (step.no_memory) {
      return MachineError(path_ + ": no memory to unpack " + unpacker_->name() + " data");
    }
    if (step.damage != nullptr || (step.made == 0 && unpacker_->inside())) {
      return UserError(StrCat(path_, ": damaged ", unpacker_->name(), " data at byte ", at_, " (",
                              step.damage != nullptr ? step.damage : "the end of the file", ")"));
    }
    return OkStatus();
  }

  const std::string path_;
  const std::string_view file_;
  size_t at_ = 0;
  const std::unique_ptr<Unpacker> unpacker_;  // null: the bytes are not packed
};

// Whether the sizes that a header tells are as they must be, before the array takes memory.
using CheckSizes = std::function<Status(std::span<const int64_t> sizes)>;

StatusOr<IdxArray> ParseArray(const MappedFile& file, int64_t dimensions,
                              const CheckSizes& check_sizes) {
  const std::string& path = file.path();
  ByteSource source(&file);
  const size_t header = 4 * (1 + dimensions);
  std::string bytes;
  ELASTOR_RETURN_IF_ERROR(source.FillTo(header, &bytes));
  if (bytes.size() >= 4 && BigEndian(bytes, 0) != MagicOf(dimensions)) {
    return UserError(path + ": found the magic number " + MagicText(BigEndian(bytes, 0)) +
                     "; expected " + MagicText(MagicOf(dimensions)) +
                     ", as of the inputs every file of images is followed by that of its labels");
  }
  if (bytes.size() < header) {
    return UserError(StrCat(path, ": found ", bytes.size(), " bytes; expected ", header,
                            " of a header and more"));
  }
  IdxArray array;
  int64_t expected = 1;
  for (int64_t d = 0; d < dimensions; ++d) {
    array.sizes.push_back(BigEndian(bytes, 4 * (1 + d)));
    const int64_t most = d == 0 ? kMostImages : kMostImageSide;
    if (array.sizes[d] < 1 || array.sizes[d] > most) {
      return UserError(StrCat(path, ": found size ", array.sizes[d], " of dimension ", d + 1,
                              "; expected 1 to ", most));
    }
    expected *= array.sizes[d];
  }
  ELASTOR_RETURN_IF_ERROR(check_sizes(array.sizes));
  bytes.clear();
  if (dimensions == kImageDimensions) bytes.reserve(expected);  // lest growing takes twice as much
  ELASTOR_RETURN_IF_ERROR(source.FillTo(expected, &bytes));
  std::string behind;
  if (static_cast<int64_t>(bytes.size()) == expected) {
    ELASTOR_RETURN_IF_ERROR(source.FillTo(1, &behind));
  }
  if (static_cast<int64_t>(bytes.size()) < expected || !behind.empty()) {
    return UserError(StrCat(
        path, ": found ", behind.empty() ? std::to_string(bytes.size()) : std::string("more"),
        " bytes behind its header; expected ", expected, ", of ", SizesText(array.sizes)));
  }
  array.bytes = std::move(bytes);
  return array;
}

// What cannot be read reads as zeros, and is not what its zeros say.
StatusOr<IdxArray> ReadArray(const std::string& path, int64_t dimensions,
                             const CheckSizes& check_sizes) {
  ELASTOR_RETURN_IF_ERROR(CheckInputFile(path));
  ELASTOR_ASSIGN_OR_RETURN(const MappedFile file,
                           MappedFile::Open(path, MappedFile::Links::kFollow));
  StatusOr<IdxArray> array = ParseArray(file, dimensions, check_sizes);
  ELASTOR_RETURN_IF_ERROR(file.CheckReadable());
  return array;
}

// The rows of one flag's inputs.
struct LabelledImages {
  std::string first_path;
  int64_t height = 0;
  int64_t width = 0;
  std::vector<IdxArray> files;
  std::vector<int64_t> ends;  // rows of all files up to each
  std::string labels;

  int64_t rows() const { return static_cast<int64_t>(labels.size()); }
  // The pixels of a row.
  std::span<const uint8_t> Image(int64_t row) const {
    const size_t file = std::upper_bound(ends.begin(), ends.end(), row) - ends.begin();
    const int64_t first = file == 0 ? 0 : ends[file - 1];
    const int64_t pixels = height * width;
    return {reinterpret_cast<const uint8_t*>(files[file].bytes.data()) + (row - first) * pixels,
            static_cast<size_t>(pixels)};
  }
};

// *room: bytes that images may still take.
Status AppendPair(const std::string& images_path, const std::string& labels_path, int64_t* room,
                  LabelledImages* all) {
  ELASTOR_ASSIGN_OR_RETURN(IdxArray images, ReadIdx(images_path, kImageDimensions, *room));
  const auto check_labels = [&](std::span<const int64_t> sizes) {
    if (sizes[0] == images.sizes[0]) return OkStatus();
    return UserError(StrCat(labels_path, ": found ", sizes[0], " labels; expected ",
                            images.sizes[0], ", as ", images_path, " has images"));
  };
  ELASTOR_ASSIGN_OR_RETURN(const IdxArray labels,
                           ReadArray(labels_path, kLabelDimensions, check_labels));
  if (all->height == 0) {
    all->first_path = images_path;
    all->height = images.sizes[1];
    all->width = images.sizes[2];
  }
  const int64_t expected[] = {all->height, all->width};
  if (images.sizes[1] != all->height || images.sizes[2] != all->width) {
    return UserError(images_path + ": found images of " +
                     SizesText(std::span(images.sizes).subspan(1)) + "; expected " +
                     SizesText(expected) + ", as in " + all->first_path);
  }
  *room -= static_cast<int64_t>(images.bytes.size());
  all->files.push_back(std::move(images));
  all->labels += labels.bytes;
  all->ends.push_back(all->rows());
  return OkStatus();
}

// The mean and deviation of the pixels / 255 of rows [0, rows).
void MeasurePixels(const LabelledImages& images, int64_t rows, DatasetInfo::Image* image) {
  std::array<int64_t, 256> counts = {};
  const int64_t pixels = rows * image->pixels();
  for (int64_t row = 0; row < rows; ++row) {
    for (const uint8_t pixel : images.Image(row)) ++counts[pixel];
  }
  double sum = 0, squares = 0;
  for (int value = 0; value < 256; ++value) {
    const double share = static_cast<double>(counts[value]) / static_cast<double>(pixels);
    sum += share * (value / 255.0);
    squares += share * (value / 255.0) * (value / 255.0);
  }
  image->mean = sum;
  const double variance = squares - sum * sum;
  if (variance > 0) image->stddev = std::sqrt(variance);
}

// How many images are a block: as many as `asked`; 0 if the schema leaves it out.
StatusOr<int64_t> RowsPerBlock(int64_t asked, int64_t most, const DatasetInfo::Image& image) {
  if (asked == 0) return std::clamp(kBlockBytes / image.pixels(), int64_t{1}, most);
  const int64_t bytes = asked * image.pixels();
  if (bytes <= kMostBlockBytes) return asked;
  return UserError(StrCat("rows_per_block: ", asked, " images of ", image.height, " x ",
                          image.width, " pixels are ", bytes, " bytes; expected at most ",
                          kMostBlockBytes, ", which ", kMostBlockBytes / image.pixels(),
                          " images have, or none"));
}

}  // namespace

StatusOr<IdxArray> ReadIdx(const std::string& path, int64_t dimensions, int64_t most_bytes) {
  return ReadArray(path, dimensions, [&](std::span<const int64_t> sizes) {
    int64_t bytes = 1;
    for (const int64_t size : sizes) bytes *= size;
    if (bytes <= most_bytes) return OkStatus();
    return UserError(StrCat(path, ": found ", SizesText(sizes),
                            " bytes of images, which lie in memory; expected at most the ",
                            most_bytes, " that --memory_gib leaves"));
  });
}

DatasetInfo ImagesInfo(const Schema& schema) {
  DatasetInfo info;
  info.name = schema.name();
  info.rows_per_block = schema.rows_per_block();
  return info;
}

Status WriteImages(const PrepareOptions& options, ThreadPool* pool, DatasetWriter* writer,
                   PrepareReport*) {
  const std::vector<std::string>* const paths[] = {&options.inputs, &options.validation_inputs,
                                                   &options.test_inputs};
  std::array<LabelledImages, 3> sources;
  int64_t room = options.memory_bytes;
  uint8_t most = 0;
  for (int i = 0; i < 3; ++i) {
    const std::vector<std::string>& files = *paths[i];
    if (files.size() % 2 != 0) {
      return UserError(files.back() +
                       ": has no other file beside it; expected every file of images, followed by "
                       "that of its labels");
    }
    LabelledImages& source = sources[i];
    source.first_path = sources[0].first_path;
    source.height = sources[0].height;
    source.width = sources[0].width;
    for (size_t file = 0; file < files.size(); file += 2) {
      ELASTOR_RETURN_IF_ERROR(AppendPair(files[file], files[file + 1], &room, &source));
    }
    for (const char label : source.labels) most = std::max(most, static_cast<uint8_t>(label));
  }
  const LabelledImages& input = sources[0];
  if (most == 0) {
    return UserError(options.inputs[1] + ": all labels are 0; expected two classes or more");
  }
  const DatasetInfo contents = Images(input.height, input.width, most + 1);
  DatasetInfo info = writer->info();
  info.classes = contents.classes;
  info.image = contents.image;
  ELASTOR_ASSIGN_OR_RETURN(info.rows_per_block, RowsPerBlock(options.schema.rows_per_block(),
                                                             info.rows_per_block, info.image));
  const std::array<Range, 3> own = SplitRanges(options.schema.split(), input.rows());
  if (own[0].size() == 0) {
    return UserError(input.first_path +
                     ": no row for training; expected some, as pixels are scaled by them");
  }
  MeasurePixels(input, own[0].size(), &info.image);
  writer->SetInfo(info);
  for (const Split split : {Split::kTrain, Split::kValidation, Split::kTest}) {
    const int i = static_cast<int>(split);
    const bool by_input = !paths[i]->empty() && i > 0;
    const LabelledImages& source = sources[by_input ? i : 0];
    const Range range = by_input ? Range{0, source.rows()} : own[i];
    const auto append = [&](int64_t row, Rows* rows) {
      const std::span<const uint8_t> image = source.Image(row);
      rows->pixels.insert(rows->pixels.end(), image.begin(), image.end());
      rows->labels.push_back(static_cast<uint8_t>(source.labels[row]));
      ++rows->rows;
    };
    ELASTOR_RETURN_IF_ERROR(WriteRowBlocks(split, range, append, pool, writer));
  }
  return writer->Commit({});
}

}  // namespace elastor
