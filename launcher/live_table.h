#ifndef ELASTOR_LAUNCHER_LIVE_TABLE_H_
#define ELASTOR_LAUNCHER_LIVE_TABLE_H_

#include <cstddef>
#include <deque>
#include <string>
#include <vector>

#include "launcher/run_table.h"

namespace elastor {

// Prints the launcher's output while it works. On a terminal a table of runs stays below the lines
// and is redrawn in place, with one write per frame. Elsewhere (a file, a pipe, TERM=dumb or unset)
// only lines are printed. The cursor is hidden only inside a frame, so it is visible however the
// launcher ends. States have colours unless NO_COLOR is set.
//
// Errors of stdout are ignored, because the files hold everything that is printed. Not thread-safe.
class LiveTable {
 public:
  LiveTable();

  // Returns whether Draw does anything.
  bool drawn() const { return terminal_; }

  // Prints a line with the time before it, above the table.
  void Say(const std::string& line);
  // Adds a run that has ended. It is shown until later runs need its place.
  void AddEnded(RunRow row);
  // Draws the table: the running runs, then the runs that ended last, as many as fit the screen,
  // then the `footer` lines.
  void Draw(const std::vector<RunRow>& running, const std::vector<std::string>& footer);
  // Removes the table from the screen. Lines stay.
  void Erase();

 private:
  void Print(const std::string& above);
  std::string GoToTop() const;

  const bool terminal_;
  const bool colours_;
  std::deque<RunRow> ended_;         // the last one first
  std::vector<std::string> lines_;   // lines of the table to be shown
  std::vector<size_t> shown_bytes_;  // length of each line on the screen
};

// Size of the screen in characters. TableLines returns the lines of a table that fits it: no line
// is wider, and there is at least one line fewer than the screen has. The lines are the heading,
// `running`, `ended`, the number of running runs without a place, and the footer. Runs are named by
// their labels.
struct ScreenSize {
  size_t lines = 24, columns = 80;
};
std::vector<std::string> TableLines(const std::vector<RunRow>& running,
                                    const std::deque<RunRow>& ended,
                                    const std::vector<std::string>& footer, ScreenSize screen);

}  // namespace elastor

#endif  // ELASTOR_LAUNCHER_LIVE_TABLE_H_
