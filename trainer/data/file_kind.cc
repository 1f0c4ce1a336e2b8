#include "trainer/data/file_kind.h"

#include <algorithm>
#include <iterator>
#include <string>

#include "core/base/text.h"

namespace elastor {
namespace {

using namespace std::string_view_literals;

constexpr std::string_view kGzip = "\x1f\x8b"sv;
constexpr std::string_view kZstd = "\x28\xb5\x2f\xfd"sv;
constexpr std::string_view kParquet = "PAR1\x15"sv;
constexpr std::string_view kArrow = "ARROW1\0\0"sv;
constexpr FileKind kGzipKind = {"gzip data", "unpack it with gzip -d"};
constexpr FileKind kZstdKind = {"zstd data", "unpack it with zstd -d"};

// Bytes at a place of a file. Text of columns does not have them there.
struct Magic {
  size_t at;
  std::string_view bytes;
  FileKind kind;
};

constexpr Magic kMagics[] = {
    {0, "PK\3\4"sv, {"a zip archive", "unpack it with unzip"}},
    {0, "\xfd\x37zXZ\0"sv, {"xz data", "unpack it with xz -d"}},
    {0, "\x04\x22\x4d\x18"sv, {"lz4 data", "unpack it with lz4 -d"}},
    {0, "\x1f\x9d"sv, {"compress data", "unpack it with uncompress"}},
    {4, "1AY&SY"sv, {"bzip2 data", "unpack it with bzip2 -d"}},  // behind BZh and a digit
    {0, "7z\xbc\xaf\x27\x1c"sv, {"a 7z archive", "unpack it with 7z x"}},
    {0, "Rar!\x1a\x07"sv, {"a rar archive", "unpack it with unrar x"}},
    {257, "ustar"sv, {"a tar archive", "unpack it with tar -x"}},
    {0, kParquet, {"a Parquet file", "only the file itself, unpacked, is read as one"}},
    {0, kArrow, {"an Arrow file", "only the file itself, unpacked, is read as one"}},
    {0, "PARE"sv, {"an encrypted Parquet file", "write it without encryption"}},
    {0, "FEA1"sv, {"a Feather file of version 1", "write it as version 2"}},
    {0, "Obj\1"sv, {"an Avro file", "export it as CSV"}},
    {0, "\x89HDF"sv, {"an HDF5 file", "export it as CSV"}},
    {0, "\x93NUMPY"sv, {"a NumPy array", "export it as CSV"}},
    {0, "\0\0\x08\1"sv, {"an IDX array", "prepare it by a schema of layout IDX"}},
    {0, "\0\0\x08\3"sv, {"an IDX array", "prepare it by a schema of layout IDX"}},
    {0, "\x80\4\x95"sv, {"a Python pickle", "export it as CSV"}},
    {0, "SQLite format 3\0"sv, {"an SQLite database", "export it as CSV"}},
    {0, "version https://git-lfs"sv, {"a pointer of Git LFS", "fetch the file with git lfs pull"}},
    {0, "\xff\xfe\0\0"sv, {"UTF-32 text", "convert it with iconv -f UTF-32 -t UTF-8"}},
    {0, "\0\0\xfe\xff"sv, {"UTF-32 text", "convert it with iconv -f UTF-32 -t UTF-8"}},
    {0, "\xff\xff\xff\xff"sv, {"an Arrow stream", "write it as an Arrow file (Feather version 2)"}},
    {0, "\xff\xfe"sv, {"UTF-16 text", "convert it with iconv -f UTF-16 -t UTF-8"}},
    {0, "\xfe\xff"sv, {"UTF-16 text", "convert it with iconv -f UTF-16 -t UTF-8"}},
};
constexpr FileKind kPage = {"an HTML or XML page", "a server's answer? download the file again"};

std::string_view WithoutSpace(std::string_view head) {
  if (head.starts_with(kByteOrderMark)) head.remove_prefix(kByteOrderMark.size());
  head.remove_prefix(std::min(head.find_first_not_of(" \t\r\n"), head.size()));
  return head;
}

bool BeginsDocument(std::string_view head) {
  return std::ranges::any_of(
      std::initializer_list<std::string_view>{"<!doctype html", "<html", "<?xml"},
      [&](std::string_view begin) { return LowerCase(head.substr(0, begin.size())) == begin; });
}

// What stands behind comments and instructions to other programs, such as <?php ... ?>.
std::string_view WithoutComments(std::string_view head) {
  while (true) {
    head = WithoutSpace(head);
    const bool comment = head.starts_with("<!--");
    if (!comment && (!head.starts_with("<?") || BeginsDocument(head))) return head;
    const std::string_view end = comment ? "-->" : "?>";
    head.remove_prefix(std::min(head.find(end), head.size() - end.size()) + end.size());
  }
}

// Texts without a byte order mark.
constexpr FileKind kWide[] = {{"UTF-32 text", "convert it with iconv -f UTF-32LE -t UTF-8"},
                              {"UTF-32 text", "convert it with iconv -f UTF-32BE -t UTF-8"},
                              {"UTF-16 text", "convert it with iconv -f UTF-16LE -t UTF-8"},
                              {"UTF-16 text", "convert it with iconv -f UTF-16BE -t UTF-8"}};

// The kind of a text whose characters have two or four bytes, nearly all but one of them zero.
const FileKind* WideKind(std::string_view head) {
  constexpr size_t kLeastBytes = 16, kUnit = 4;
  if (head.size() < kLeastBytes) return nullptr;
  size_t zeros[kUnit] = {};
  for (size_t i = 0; i < head.size(); ++i) zeros[i % kUnit] += head[i] == '\0';
  const auto is_zero = [&](size_t place) { return 10 * zeros[place] > 9 * (head.size() / kUnit); };
  const auto is_text = [&](size_t place) { return zeros[place] == 0; };
  if (is_text(0) && is_zero(1) && is_zero(2) && is_zero(3)) return &kWide[0];
  if (is_zero(0) && is_zero(1) && is_zero(2) && is_text(3)) return &kWide[1];
  if (is_text(0) && is_zero(1) && is_text(2) && is_zero(3)) return &kWide[2];
  if (is_zero(0) && is_text(1) && is_zero(2) && is_text(3)) return &kWide[3];
  return nullptr;
}

constexpr FileKind kCutParquet = {"the first bytes of a Parquet file",
                                  "copy or download the file again"};
constexpr FileKind kZeros = {"zero bytes", "copy or download the file again"};

}  // namespace

bool IsGzip(std::string_view head) { return head.starts_with(kGzip); }

// The first frame may be one to be skipped, as pzstd writes it.
bool IsZstd(std::string_view head) {
  const bool skippable =
      head.size() > 3 && (head[0] & 0xf0) == 0x50 && head.substr(1).starts_with("\x2a\x4d\x18");
  return skippable || head.starts_with(kZstd);
}

bool IsTableHead(std::string_view head) {
  return head.starts_with(kParquet) || head.starts_with(kArrow);
}

bool IsPage(std::string_view head) {
  constexpr std::string_view kElements[] = {
      "a",      "article", "aside",  "b",     "base",   "blockquote", "body",   "br",
      "center", "dl",      "div",    "em",    "font",   "form",       "footer", "frameset",
      "h1",     "h2",      "h3",     "h4",    "h5",     "h6",         "head",   "header",
      "hr",     "i",       "iframe", "img",   "li",     "link",       "main",   "meta",
      "nav",    "ol",      "p",      "pre",   "script", "section",    "small",  "span",
      "strong", "style",   "svg",    "table", "title",  "tt",         "u",      "ul"};
  head = WithoutComments(head);
  if (BeginsDocument(head)) return true;
  if (!head.starts_with('<')) return false;
  head.remove_prefix(1);
  const size_t end = head.find_first_of(" \t\r\n/>");
  return end != head.npos &&
         std::ranges::find(kElements, LowerCase(head.substr(0, end))) != std::end(kElements);
}

const FileKind* KindOfFile(std::string_view head) {
  if (IsGzip(head)) return &kGzipKind;
  if (IsZstd(head)) return &kZstdKind;
  for (const Magic& magic : kMagics) {
    if (head.size() > magic.at && head.substr(magic.at).starts_with(magic.bytes)) {
      return &magic.kind;
    }
  }
  if (head == kParquet.substr(0, 4)) return &kCutParquet;
  if (BeginsDocument(WithoutComments(head))) return &kPage;
  if (const FileKind* const wide = WideKind(head)) return wide;
  const bool zeros = !head.empty() && head.find_first_not_of('\0') == std::string_view::npos;
  return zeros ? &kZeros : nullptr;
}

}  // namespace elastor
