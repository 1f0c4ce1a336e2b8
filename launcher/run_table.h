#ifndef ELASTOR_LAUNCHER_RUN_TABLE_H_
#define ELASTOR_LAUNCHER_RUN_TABLE_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "trainer/records/progress_reader.h"

namespace elastor {

// One run's row in a table: the table of --status, or the live table of a launcher.
struct RunRow {
  std::string run;    // its folder's name
  std::string state;  // "running", for people
  int64_t dense_parameters = 0;
  int64_t steps = 0, samples = 0;      // totals of the whole run
  RunProgress progress = {};           // at its end, of a run that is done
  std::optional<double> seconds = {};  // duration of a run that is done
  int attempts = 0;
  std::string note = {};  // why it failed, where it waits
};

// Returns the seconds until a running run ends, by its last samples/s; none: not known yet.
std::optional<double> SecondsLeft(const RunRow& row);

// A column of the table: its heading, the width of its values, and a function that gives a value.
struct RunColumn {
  const char* heading;
  size_t width;
  std::string (*value)(const RunRow& row);
};
std::span<const RunColumn> StatusColumns();
std::span<const RunColumn> LiveColumns();

// Return lines of a table whose first column is the run's name, name_width wide. Longer names lose
// their middle. Lines end without newlines and blanks.
std::string HeadingLine(std::span<const RunColumn> columns, size_t name_width);
std::string RowLine(const RunRow& row, std::span<const RunColumn> columns, size_t name_width);
// Returns the width of all columns except the name.
size_t WidthBesideName(std::span<const RunColumn> columns);

// Returns a duration for people: "3.2 s", "12 min", "5.1 h".
std::string Duration(double seconds);
// Shortens a longer text to "begin...end", `width` bytes long.
std::string Elided(const std::string& text, size_t width);

}  // namespace elastor

#endif  // ELASTOR_LAUNCHER_RUN_TABLE_H_
