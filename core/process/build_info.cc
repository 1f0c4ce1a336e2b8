#include "core/process/build_info.h"

#include <cstddef>
#include <string_view>

#include "core/base/numerics.h"
#include "core/process/version.h"

namespace elastor {
namespace {

constexpr std::string_view kMark = "elastor-commit:";
// tools/stamp.sh writes the commit over the blanks of the linked program. Volatile, since the
// compiler would otherwise take the blanks for known.
const volatile char stamp[] = "elastor-commit:                              ";
constexpr std::string_view kUnknown = "commit unknown";

std::string Commit() {
  std::string commit;
  for (size_t i = kMark.size(); i + 1 < sizeof(stamp); ++i) commit += stamp[i];
  commit.resize(commit.find_last_not_of(' ') + 1);
  return commit.empty() ? std::string(kUnknown) : commit;
}

}  // namespace

std::string BuildName() { return std::string(kVersion) + " (" + Commit() + ")"; }

bool IsBuiltFromCommit() {
  const std::string commit = Commit();
  return commit != kUnknown && commit.find(',') == commit.npos;
}

std::string VersionText(const std::string& program) {
  // Clang's text begins with its name.
  constexpr std::string_view kCompiler = __VERSION__;
  const bool named = kCompiler.find("lang") != kCompiler.npos;
  return program + " " + BuildName() + "\ncompiler: " + (named ? "" : "g++ ") +
         std::string(kCompiler) + "\nnumerics: " + NumericsFingerprint("cpu") + "\n";
}

}  // namespace elastor
