#include "trainer/data/arrow/table_source.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <string_view>

#include "core/base/file.h"
#include "core/base/text.h"
#include "trainer/data/arrow/arrow_part_hash.h"
#include "trainer/data/file_kind.h"
#include "trainer/data/text_source.h"

namespace elastor {
namespace {

constexpr char kPart[] = "libelastor_arrow.so";

// For the rest of the process.
StatusOr<const ArrowPart*> LoadPart() {
  void* const object = dlopen(kPart, RTLD_NOW | RTLD_LOCAL);
  if (object == nullptr) {
    return UserError(StrCat(dlerror(),
                            "; Parquet and Arrow files need it beside this program, as a release "
                            "has it; before a build run tools/install_arrow.sh"));
  }
  const auto part = static_cast<const ArrowPart*>(dlsym(object, kArrowPartSymbol));
  if (part == nullptr || std::string_view(part->sources_hash) != kArrowPartHash) {
    return UserError(
        StrCat(kPart, ": is of another build than this program; expected both from one build"));
  }
  return part;
}

}  // namespace

StatusOr<bool> IsTable(const std::string& path) {
  ELASTOR_RETURN_IF_ERROR(CheckInputFile(path));
  ELASTOR_ASSIGN_OR_RETURN(const int file, OpenFile(path, O_RDONLY));
  char head[kTableBytes];
  const ssize_t got = pread(file, head, sizeof head, 0);
  const Status failed = SystemError(path, "read");
  close(file);
  if (got < 0) return failed;
  return IsTableHead({head, static_cast<size_t>(got)});
}

StatusOr<std::unique_ptr<TableFile>> OpenTable(const std::string& path) {
  static const StatusOr<const ArrowPart*> part = LoadPart();
  if (!part.ok()) return Status(part.status().code(), path + ": " + part.status().message());
  std::string wrong;
  std::unique_ptr<TableFile> file = (*part)->open(path, &wrong);
  if (!wrong.empty()) return TableError(path, wrong);
  return file;
}

Status TableError(const std::string& path, const std::string& wrong) {
  return UserError(path + ": cannot be read as a Parquet or Arrow file: " + WithoutControls(wrong));
}

std::string QuotedText(std::string_view text) {
  std::string quoted = "\"";
  for (const char c : text) quoted.append(1 + (c == '"'), c);
  return quoted + '"';
}

}  // namespace elastor
