#include "trainer/supervise/mpirun_report.h"

#include <regex>

namespace elastor {
namespace {

constexpr size_t kLeastDashes = 60;
// Of a paragraph of mpirun's, which have fewer than 40: more are a frame of somebody else.
constexpr size_t kMostLines = 100;

bool IsFrame(const std::string& line) {
  return line.size() >= kLeastDashes && line.find_first_not_of('-') == line.npos;
}

// Of this program, also when it comes between two of mpirun's lines.
bool IsOurs(const std::string& line) {
  return line.starts_with("elastor: ") || line.starts_with("trainer: ") ||
         line.starts_with("step ");
}

// Open MPI's count of paragraphs that it left out.
bool IsCount(const std::string& line) {
  return line.find("sent help message help-") != line.npos ||
         line.find("\"orte_base_help_aggregate\"") != line.npos;
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
  static const std::regex signal(
      "process rank ([0-9]+) with PID [0-9]+ on node ([^ ]+) exited on signal ([0-9]+)");
  static const std::regex name("Process name: \\[\\[.*\\],([0-9]+)\\]");
  static const std::regex code("Exit code: +([0-9]+)");
  static const std::regex daemon("Remote daemon: \\[\\[.*\\],[0-9]+\\] on node ([^ ]+)");
  std::string text;
  for (const std::string& line : paragraph) text += line + " ";
  std::smatch found;
  std::string cause;
  if (std::regex_search(text, found, signal)) {
    cause =
        "rank " + found.str(1) + " on " + found.str(2) + " was killed by signal " + found.str(3);
  } else if (std::regex_search(text, found, code)) {
    const std::string ended = found.str(1);
    cause = (std::regex_search(text, found, name) ? "rank " + found.str(1) : "a rank") +
            " ended with code " + ended;
  } else if (std::regex_search(text, found, daemon)) {
    cause = "host " + found.str(1) + " was lost";
  } else if (text.find("terminated normally, but") == text.npos &&
             text.find("MPI_ABORT was invoked") == text.npos) {
    return false;
  }
  if (cause_.empty()) cause_ = cause;
  return true;
}

}  // namespace elastor
