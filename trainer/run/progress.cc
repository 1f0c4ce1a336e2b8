#include "trainer/run/progress.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "core/base/text.h"

namespace elastor {
namespace {

// In three digits or four: "950", "15.4k", "1.23M".
std::string Rate(double per_second) {
  char text[32];
  if (per_second < 1e3) {
    std::snprintf(text, sizeof(text), "%.0f", per_second);
  } else if (per_second < 1e6) {
    std::snprintf(text, sizeof(text), "%.*fk", per_second < 1e5 ? 1 : 0, per_second / 1e3);
  } else {
    std::snprintf(text, sizeof(text), "%.2fM", per_second / 1e6);
  }
  return text;
}

std::string OfAll(const char* what, int64_t number, int64_t all) {
  return StrCat(what, number, all > 0 ? StrCat("/", all) : "", "  ");
}

}  // namespace

std::string ProgressLine(const Progress& progress) {
  std::string line = OfAll("step ", progress.step, progress.total_steps);
  line += OfAll("epoch ", progress.epoch + 1, progress.epochs);
  char loss[32];
  std::snprintf(loss, sizeof(loss), "loss %.4f  ", progress.loss);
  line += loss + Rate(progress.samples_per_s) + " samples/s  ";
  line += DurationText(progress.elapsed_seconds) + " elapsed";
  const int64_t done = progress.step - progress.first_step;
  if (progress.total_steps == 0 || done <= 0) return line;
  const auto left = static_cast<double>(std::max<int64_t>(0, progress.total_steps - progress.step));
  return line + "  " + DurationText(progress.elapsed_seconds / static_cast<double>(done) * left) +
         " left";
}

std::string ProgressBar(const Progress& progress, int columns) {
  constexpr int kMostCells = 30, kLeastCells = 5, kFrame = 3;  // "[", "]", " "
  const std::string line = ProgressLine(progress);
  const int room = columns - static_cast<int>(line.size());
  const int cells = std::min(room - kFrame, kMostCells);
  if (progress.total_steps == 0 || cells < kLeastCells) {
    return line.substr(0, static_cast<size_t>(std::max(0, columns)));
  }
  const int64_t step = std::min(progress.step, progress.total_steps);
  const auto filled = static_cast<int>(cells * step / progress.total_steps);
  std::string bar(static_cast<size_t>(filled), '=');
  if (filled < cells) bar += '>';
  bar.resize(static_cast<size_t>(cells), ' ');
  return "[" + bar + "] " + line;
}

bool ProgressClock::Due(double elapsed_seconds) {
  constexpr double kBar = 0.2, kLeast = 1, kMost = 60, kShare = 0.1;
  if (elapsed_seconds < next_) return false;
  next_ =
      elapsed_seconds + (terminal_ ? kBar : std::clamp(kShare * elapsed_seconds, kLeast, kMost));
  return true;
}

}  // namespace elastor
