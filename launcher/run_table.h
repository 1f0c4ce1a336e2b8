#ifndef ELASTOR_LAUNCHER_RUN_TABLE_H_
#define ELASTOR_LAUNCHER_RUN_TABLE_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "launcher/run_folder.h"

namespace elastor {

// What tables show of a run: that of --status, and the live one of a launcher at work.
struct RunRow {
  std::string run;    // its folder's name
  std::string state;  // "running", for people
  int64_t dense_parameters = 0;
  int64_t steps = 0, samples = 0;      // of the whole run
  RunProgress progress = {};           // at its end, of a run that is done
  std::optional<double> seconds = {};  // that a run took that is done
  int attempts = 0;
  std::string note = {};  // why it failed, where it waits
};

// Until the end of a run at work, by its last samples/s; none: not known yet.
std::optional<double> SecondsLeft(const RunRow& row);

// A column: its heading, how wide its values are, and one of them. A column more is a line more.
struct RunColumn {
  const char* heading;
  size_t width;
  std::string (*value)(const RunRow& row);
};
std::span<const RunColumn> StatusColumns();
std::span<const RunColumn> LiveColumns();

// Lines of a table whose first column is the run's name, name_width wide; longer names lose their
// middle. Without newlines, nor blanks at the end.
std::string HeadingLine(std::span<const RunColumn> columns, size_t name_width);
std::string RowLine(const RunRow& row, std::span<const RunColumn> columns, size_t name_width);
// What the columns take beside the name.
size_t WidthBesideName(std::span<const RunColumn> columns);

// "3.2 s", "12 min", "5.1 h"
std::string Duration(double seconds);
// "begin...end", width bytes long, of a text that is longer.
std::string Elided(const std::string& text, size_t width);

}  // namespace elastor

#endif  // ELASTOR_LAUNCHER_RUN_TABLE_H_
