#ifndef ELASTOR_LAUNCHER_LIVE_TABLE_H_
#define ELASTOR_LAUNCHER_LIVE_TABLE_H_

#include <cstddef>
#include <deque>
#include <string>
#include <vector>

#include "launcher/run_table.h"

namespace elastor {

// What the launcher prints while it works. On a terminal a table of runs stays below the lines and
// is drawn again in its place, a write a frame; elsewhere (a file, a pipe, TERM=dumb or none) there
// are the lines alone. The cursor is hidden only inside a frame, so however the launcher ends, it
// is there. States have colours unless NO_COLOR is set.
//
// That stdout fails is nobody's concern: the files say all of it. Not thread-safe.
class LiveTable {
 public:
  LiveTable();

  // Whether Draw does anything.
  bool drawn() const { return terminal_; }

  // A line with the time before it, above the table.
  void Say(const std::string& line);
  // A run that has ended: shown until later ones need its place.
  void AddEnded(RunRow row);
  // Draws the table: the runs at work, then those that ended last, as many as the screen holds,
  // then `footer` lines.
  void Draw(const std::vector<RunRow>& running, const std::vector<std::string>& footer);
  // Takes the table away; lines stay.
  void Erase();

 private:
  void Print(const std::string& above);
  std::string GoToTop() const;

  const bool terminal_;
  const bool colours_;
  std::deque<RunRow> ended_;         // the last one first
  std::vector<std::string> lines_;   // of the table, as it is to be shown
  std::vector<size_t> shown_bytes_;  // of the lines on the screen
};

// The lines of a table for a screen whose runs are called by their labels, none wider than it, and
// one fewer than it has at most: the heading, `running`, `ended`, how many running ones had no
// place, the footer.
struct ScreenSize {
  size_t lines = 24, columns = 80;
};
std::vector<std::string> TableLines(const std::vector<RunRow>& running,
                                    const std::deque<RunRow>& ended,
                                    const std::vector<std::string>& footer, ScreenSize screen);

}  // namespace elastor

#endif  // ELASTOR_LAUNCHER_LIVE_TABLE_H_
