#include "launcher/live_table.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <ctime>
#include <string_view>
#include <utility>

#include "core/base/status.h"
#include "core/base/text.h"
#include "core/process/standard_streams.h"

namespace elastor {
namespace {

constexpr size_t kMostEnded = 200;

constexpr char kHideCursor[] = "\033[?25l";
constexpr char kShowCursor[] = "\033[?25h";
constexpr char kEraseRestOfLine[] = "\033[K";
constexpr char kEraseBelow[] = "\033[J";

bool IsTerminal() {
  const char* term = std::getenv("TERM");
  return isatty(STDOUT_FILENO) == 1 && term != nullptr && *term != '\0' &&
         std::string_view(term) != "dumb";
}

// https://no-color.org
bool WantsColours() {
  const char* no_color = std::getenv("NO_COLOR");
  return no_color == nullptr || *no_color == '\0';
}

ScreenSize ReadScreenSize() {
  winsize size = {};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_row == 0 || size.ws_col == 0) {
    return {};
  }
  return {size.ws_row, size.ws_col};
}

std::string Now() {
  std::array<char, 16> now;
  const std::time_t time = std::time(nullptr);
  std::tm local;
  std::strftime(now.data(), now.size(), "%H:%M:%S", localtime_r(&time, &local));
  return now.data();
}

// The line with its state in colour, where it has one of these.
std::string Coloured(std::string line) {
  constexpr std::pair<const char*, const char*> kColours[] = {
      {"  done  ", "\033[32m"}, {"  failed  ", "\033[31m"}, {"  running  ", "\033[36m"}};
  for (const auto& [state, colour] : kColours) {
    const size_t at = line.find(state);
    if (at == line.npos) continue;
    line.insert(at + std::string_view(state).size(), "\033[m");
    line.insert(at, colour);
    break;
  }
  return line;
}

}  // namespace

LiveTable::LiveTable() : terminal_(IsTerminal()), colours_(WantsColours()) {}

void LiveTable::Say(const std::string& line) { Print(Now() + " " + WithoutControls(line) + "\n"); }

void LiveTable::AddEnded(RunRow row) {
  ended_.push_front(std::move(row));
  if (ended_.size() > kMostEnded) ended_.pop_back();
}

void LiveTable::Draw(const std::vector<RunRow>& running, const std::vector<std::string>& footer) {
  if (!terminal_) return;
  lines_ = TableLines(running, ended_, footer, ReadScreenSize());
  Print("");
}

void LiveTable::Erase() {
  lines_.clear();
  Print("");
}

void LiveTable::Print(const std::string& above) {
  if (!terminal_) {
    if (!above.empty()) (void)WriteToStdout(above);
    return;
  }
  std::string frame = kHideCursor + GoToTop();
  // A line above may take several of the screen, and moves the table down.
  if (!above.empty()) frame += kEraseBelow + above;
  shown_bytes_.clear();
  for (const std::string& line : lines_) {
    frame += (colours_ ? Coloured(line) : line) + kEraseRestOfLine + "\n";
    shown_bytes_.push_back(line.size());
  }
  (void)WriteToStdout(frame + kEraseBelow + kShowCursor);
}

// A screen that became narrower has broken the lines that are on it.
std::string LiveTable::GoToTop() const {
  if (shown_bytes_.empty()) return "\r";
  const ScreenSize screen = ReadScreenSize();
  size_t up = 0;
  for (const size_t bytes : shown_bytes_) {
    up += std::max<size_t>(1, (bytes + screen.columns - 1) / screen.columns);
  }
  return StrCat("\r\033[", up, "A");
}

std::vector<std::string> TableLines(const std::vector<RunRow>& running,
                                    const std::deque<RunRow>& ended,
                                    const std::vector<std::string>& footer, ScreenSize screen) {
  // The last column of a screen stays free: a line that fills it may take two.
  const size_t width = std::max<size_t>(1, screen.columns - 1);
  // A narrow screen has no room for the last columns.
  constexpr size_t kShortestName = 16;
  std::span<const RunColumn> columns = LiveColumns();
  while (!columns.empty() && WidthBesideName(columns) + kShortestName > width) {
    columns = columns.first(columns.size() - 1);
  }
  size_t name_width = kShortestName;
  for (const RunRow& row : running) name_width = std::max(name_width, row.run.size());
  for (const RunRow& row : ended) name_width = std::max(name_width, row.run.size());
  name_width = std::min(name_width, std::max(kShortestName, width - WidthBesideName(columns)));

  std::vector<std::string> lines = {HeadingLine(columns, name_width)};
  // The line below the table is the cursor's.
  const size_t other_lines = lines.size() + footer.size() + 1;
  size_t places = screen.lines > other_lines ? screen.lines - other_lines : 0;
  const bool all_fit = running.size() <= places;
  if (!all_fit && places > 0) --places;
  const size_t at_work = std::min(running.size(), places);
  for (size_t i = 0; i < at_work; ++i) lines.push_back(RowLine(running[i], columns, name_width));
  if (!all_fit) lines.push_back(StrCat(running.size() - at_work, " more are running"));
  for (size_t i = 0; all_fit && i < std::min(ended.size(), places - at_work); ++i) {
    lines.push_back(RowLine(ended[i], columns, name_width));
  }
  lines.insert(lines.end(), footer.begin(), footer.end());
  if (lines.size() >= screen.lines) lines.resize(std::max<size_t>(1, screen.lines - 1));
  for (std::string& line : lines) line = line.substr(0, width);
  return lines;
}

}  // namespace elastor
