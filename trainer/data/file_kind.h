#ifndef ELASTOR_TRAINER_DATA_FILE_KIND_H_
#define ELASTOR_TRAINER_DATA_FILE_KIND_H_

#include <cstddef>
#include <string_view>

namespace elastor {

// A kind of file that is not text, and how to make text of it.
struct FileKind {
  std::string_view what;    // "a zip archive"
  std::string_view remedy;  // "unpack it with unzip"
};

// Number of first bytes that tell a file's kind.
inline constexpr size_t kKindBytes = 512;
inline constexpr size_t kTableBytes = 8;

// Returns the kind of a file by its first kKindBytes bytes, or all if it has fewer. Null: it may be
// text. Gzip and zstd count as kinds here.
const FileKind* KindOfFile(std::string_view head);
bool IsGzip(std::string_view head);
bool IsZstd(std::string_view head);
// Returns whether a file is Parquet or Arrow, by its first kTableBytes bytes.
bool IsTableHead(std::string_view head);
// Returns whether a text is HTML or XML. Behind comments and instructions such as <?php ... ?> it
// begins with a document's first line, or with an element that parts of pages begin with.
bool IsPage(std::string_view head);

// The byte order mark, with which many programs begin UTF-8 text.
inline constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";

}  // namespace elastor

#endif  // ELASTOR_TRAINER_DATA_FILE_KIND_H_
