#ifndef ELASTOR_TRAINER_DATA_DATASET_H_
#define ELASTOR_TRAINER_DATA_DATASET_H_

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/base/leaves.h"
#include "core/base/status.h"

namespace elastor {

enum class Split { kTrain = 0, kValidation = 1, kTest = 2 };
const char* SplitName(Split split);  // "train", "validation", "test"
inline const char* SplitName(int split) { return SplitName(static_cast<Split>(split)); }

// Contents of a prepared data set, as its meta.json describes them (docs/reference/data_format.md).
struct DatasetInfo {
  // A value x is stored as (t(x) - mean) / stddev.
  struct Numeric {
    std::string name;
    std::string transform = "none";  // t and whether it is standardised: "log2_standardize", ...
    double mean = 0;
    double stddev = 1;
  };
  struct Vocabulary {
    std::string checksum;  // XXH3-64 of its file
    int64_t ids = 0;       // number of rows of its table
  };
  struct Categorical {
    std::string name;
    int64_t ids = 0;  // table rows: valid ids are [0, ids); 0 if `keyed`
    bool multi_hot = false;
    bool mean_pooling = false;
    // Index of the categorical field whose table and vocabulary this one uses; -1: it has its own.
    // Fields that share have equal `ids`.
    int shares = -1;
    // `encoding` says how a raw value becomes an id ("vocabulary", "hour identity"), `keeps` which
    // ids of a bag stay ("last 50"). Empty: not known, as in sets of version 2, or no bag.
    std::string encoding = {};
    std::string keeps = {};
    std::string vocabulary = {};  // XXH3-64 of the vocabulary file; empty: none
    // Earlier vocabularies that this one begins with, oldest first, so that their ids mean the same
    // here (prepare --grow).
    std::vector<Vocabulary> grown_from = {};
    // Ids are keys: any unsigned 64-bit number, in the bits of an int64_t. Key 0 stands for missing
    // values. Fields that share are keyed alike.
    bool keyed = false;
  };
  // Shape and scale of the images, for data sets whose rows are images and have no other fields. A
  // pixel is stored as a byte x and read as (x / 255 - mean) / stddev.
  struct Image {
    int64_t height = 0;  // 0: rows are no images
    int64_t width = 0;
    double mean = 0;
    double stddev = 1;
    int64_t pixels() const { return height * width; }
  };
  struct Label {
    std::string name;
    double best_auc = -1;  // AUC of the planted teacher on the validation split; < 0: unknown
  };
  std::string name;
  // The Schema (configs/proto/schema.proto) by which raw rows were encoded, as protobuf text.
  // Empty: not known, as in sets of earlier versions, or there were no raw rows.
  std::string schema = {};
  std::vector<Label> labels;  // when there are several; empty: one, without a name
  // Number of classes. If above 0, labels are classes from 0 to classes - 1; else they are 0 or 1.
  int64_t classes = 0;
  std::vector<Numeric> numeric;
  std::vector<Categorical> categorical;
  Image image;
  bool has_weights = false;
  bool has_groups = false;
  bool has_times = false;
  int64_t rows[3] = {0, 0, 0};  // by Split
  int64_t rows_per_block = 0;
  double best_auc = -1;   // Label::best_auc of the only label
  double best_gauc = -1;  // the same for gAUC, if rows have groups; < 0: unknown

  int64_t label_count() const { return labels.empty() ? 1 : static_cast<int64_t>(labels.size()); }
  // Number of float values per row, without labels: one per numeric field, or one per pixel.
  int64_t numeric_count() const { return static_cast<int64_t>(numeric.size()) + image.pixels(); }
  bool has_keys() const { return std::ranges::any_of(categorical, &Categorical::keyed); }
};

// Returns the contents of a set of layout TEXT with windows of `length` bytes: fields "byte1", ...
// and labels "next1", ... with 256 classes.
DatasetInfo ByteWindows(int64_t length);

inline constexpr int64_t kMostImageSide = 4096;  // pixels

// Returns the contents of a set of layout IDX: images of `height` by `width` pixels, with labels of
// `classes` classes.
DatasetInfo Images(int64_t height, int64_t width, int64_t classes);

// The group of a row without one: XXH3-64 of the empty text.
inline constexpr uint64_t kNoGroup = 0x2d06800538d394c2;

// Decoded rows, as the trainer reads them. `numeric` is [rows][numeric_count()], NaN = missing. Bag
// b = row * categorical fields + field holds ids[offsets[b], offsets[b+1]); `offsets` is empty when
// the data set has no multi-hot field (one id a bag).
struct Rows {
  int64_t rows = 0;
  std::vector<float> labels;  // [rows][labels]: 0, 1, a class or NaN = missing
  std::vector<float> numeric;
  std::vector<int64_t> ids;
  std::vector<int64_t> offsets;
  // [rows] each, or empty when the data set has none.
  std::vector<float> weights;    // 0 to 1e12
  std::vector<uint64_t> groups;  // XXH3-64 of the group's text, or kNoGroup; for gAUC
  std::vector<int64_t> times;    // seconds since 1970
  // [rows][pixels], only for images to be written. The pixels that are read are in `numeric`.
  std::vector<uint8_t> pixels;
};

// The order in which an epoch visits the rows of a split: an invertible permutation of
// (seed, epoch), the same for every number of ranks, without state, so any position can be read
// at once. Shuffled: blocks are permuted over the split, then rows within a window of
// `window_blocks` permuted blocks (the last window may be shorter, and the short last block of the
// split keeps its place at the end of the block order).
struct RowOrder {
  bool shuffled = true;
  uint64_t seed = 0;
  int64_t window_blocks = 64;
  // If above 0, the order is the one of a split that ends after this many rows. REQUIRES: the split
  // has as many rows. 0: all rows.
  int64_t first_rows = 0;
  // If above 0 and below the number of rows R, the order has only this many, S: position p is the
  // row floor((2 p + 1) R / (2 S)), the middle of the p-th of S equal parts. REQUIRES: not
  // shuffled.
  int64_t spread_rows = 0;

  // Of a split of `rows` rows: how many the order can choose, and how many positions it has.
  int64_t choices(int64_t rows) const { return first_rows > 0 ? first_rows : rows; }
  int64_t positions(int64_t rows) const {
    return spread_rows > 0 ? std::min(spread_rows, choices(rows)) : choices(rows);
  }
};

// A prepared data set, memory-mapped; thread-safe. A block is verified (XXH3-64, ids in their
// tables) when first touched, and again when its file has been written to since.
class Dataset {
 public:
  // Opens a data set. User error naming file and entry when the path is missing, not a prepared
  // data set, of another version or damaged. Reads the rows' indexes only, and neither vocabularies
  // nor statistics.
  static StatusOr<std::unique_ptr<Dataset>> Open(const std::string& path);
  ~Dataset();

  // Reads the files that hold no rows and checks them against their hashes. User error naming the
  // file.
  Status VerifyOtherFiles() const;

  const DatasetInfo& info() const { return info_; }
  // Version of the format. Version 2 has no hashes of meta.json and of the files that hold no rows.
  int version() const { return version_; }
  // XXH3-64 of the set's contents, as 16 hex digits; the same wherever the set lies.
  const std::string& fingerprint() const { return fingerprint_; }
  int64_t rows(Split split) const { return info_.rows[static_cast<int>(split)]; }
  // Number of positions in an epoch's order.
  int64_t rows(Split split, const RowOrder& order) const { return order.positions(rows(split)); }

  // Returns the row (in file order) at `position` of the epoch's order.
  int64_t RowAt(Split split, const RowOrder& order, int64_t epoch, int64_t position) const;

  // Reads positions [positions.begin, positions.end) of the epoch's order into *rows (replaced;
  // memory reused). User error naming file and block that are damaged or hold an id outside its
  // table; machine error naming file and offset that cannot be read.
  Status Read(Split split, const RowOrder& order, int64_t epoch, const Range& positions,
              Rows* rows) const;

 private:
  Dataset();
  struct Files;
  std::string path_;
  int version_ = 0;
  DatasetInfo info_;
  std::string fingerprint_;
  std::unique_ptr<Files> files_;
};

}  // namespace elastor

#endif  // ELASTOR_TRAINER_DATA_DATASET_H_
