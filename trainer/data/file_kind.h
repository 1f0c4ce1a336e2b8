#ifndef ELASTOR_TRAINER_DATA_FILE_KIND_H_
#define ELASTOR_TRAINER_DATA_FILE_KIND_H_

#include <cstddef>
#include <string_view>

namespace elastor {

// What a file is that should be text, and what makes text of it.
struct FileKind {
  std::string_view what;    // "a zip archive"
  std::string_view remedy;  // "unpack it with unzip"
};

// As many first bytes as tell what a file is.
inline constexpr size_t kKindBytes = 512;

// What a file is by its first bytes, kKindBytes of them unless it has fewer; null: it may be text.
// Gzip and zstd are kinds like the others here.
const FileKind* KindOfFile(std::string_view head);
bool IsGzip(std::string_view head);
bool IsZstd(std::string_view head);
// Of HTML or XML.
bool IsPage(std::string_view head);

// The mark that many programs begin UTF-8 text with.
inline constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";

}  // namespace elastor

#endif  // ELASTOR_TRAINER_DATA_FILE_KIND_H_
