#include "trainer/supervise/mpirun_report.h"

#include <algorithm>
#include <string_view>

#include "core/base/text.h"

namespace elastor {
namespace {

constexpr size_t kLeastDashes = 60;
// Longest frame that is taken for one of mpirun's. Its own have fewer than 40 lines.
constexpr size_t kMostLines = 100;

bool IsFrame(const std::string& line) {
  return line.size() >= kLeastDashes && line.find_first_not_of('-') == line.npos;
}

// Recognises this program's own lines, also when they come between two of mpirun's.
bool IsOurs(const std::string& line) {
  return line.starts_with("elastor: ") || line.starts_with("trainer: ") ||
         line.starts_with("step ");
}

// Open MPI's count of paragraphs that it left out.
bool IsCount(const std::string& line) {
  return line.find("sent help message help-") != line.npos ||
         line.find("\"orte_base_help_aggregate\"") != line.npos;
}

// What follows the first `before`; empty: it is not there.
std::string_view Behind(std::string_view text, std::string_view before) {
  const size_t at = text.find(before);
  return at == text.npos ? std::string_view() : text.substr(at + before.size());
}
// The word, up to a space, and the number that follow it, with spaces between.
std::string_view WordBehind(std::string_view text, std::string_view before) {
  text = Behind(text, before);
  return text.substr(0, text.find(' '));
}
std::string_view NumberBehind(std::string_view text, std::string_view before) {
  text = Behind(text, before);
  text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
  return text.substr(0, text.find_first_not_of("0123456789"));
}

std::string Joined(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  return text;
}

}  // namespace

std::string MpirunReport::Pass(std::string_view bytes) {
  std::string passed;
  for (size_t end; (end = bytes.find('\n')) != bytes.npos; bytes.remove_prefix(end + 1)) {
    begun_ += bytes.substr(0, end);
    passed += PassLine(begun_);
    begun_.clear();
  }
  begun_ += bytes;
  return passed;
}

std::string MpirunReport::Rest() {
  std::string rest = Joined(paragraph_) + begun_;
  paragraph_.clear();
  begun_.clear();
  return rest;
}

std::string MpirunReport::PassLine(const std::string& line) {
  if (IsFrame(line)) {
    framed_ = !framed_;
    if (framed_) return "";
    const std::string passed = TellsTheEnd(paragraph_) ? "" : Joined(paragraph_);
    paragraph_.clear();
    return passed;
  }
  if (IsCount(line)) return "";
  if (!framed_ || IsOurs(line)) return line + "\n";
  paragraph_.push_back(line);
  if (paragraph_.size() < kMostLines) return "";
  framed_ = false;
  const std::string passed = Joined(paragraph_);
  paragraph_.clear();
  return passed;
}

bool MpirunReport::TellsTheEnd(const std::vector<std::string>& paragraph) {
  std::string text;
  for (const std::string& line : paragraph) text += line + " ";
  std::string cause;
  const std::string_view signal = NumberBehind(text, "exited on signal ");
  const std::string_view code = NumberBehind(text, "Exit code: ");
  const std::string_view daemon = Behind(text, "Remote daemon: [[");
  if (const std::string_view rank = NumberBehind(text, "process rank ");
      !rank.empty() && !signal.empty()) {
    cause = StrCat("rank ", rank, " on ", WordBehind(text, " on node "), " was killed by signal ",
                   signal);
  } else if (!code.empty()) {
    // "Process name: [[51107,1],2]"
    const std::string_view rank = NumberBehind(Behind(text, "Process name: [["), "],");
    cause =
        StrCat(rank.empty() ? "a rank" : "rank " + std::string(rank), " ended with code ", code);
  } else if (const std::string_view host = WordBehind(daemon, "] on node "); !host.empty()) {
    cause = StrCat("host ", host, " was lost");
  } else if (text.find("terminated normally, but") == text.npos &&
             text.find("MPI_ABORT was invoked") == text.npos) {
    return false;
  }
  if (cause_.empty()) cause_ = cause;
  return true;
}

}  // namespace elastor
