#include "trainer/run/progress.h"

#include <algorithm>
#include <cstdio>
#include <sstream>

namespace elastor {
namespace {

std::string Duration(double seconds) {
  const auto whole = static_cast<long long>(seconds + 0.5);
  char text[64];
  if (whole < 60) {
    snprintf(text, sizeof(text), "%lld s", whole);
  } else if (whole < 3600) {
    snprintf(text, sizeof(text), "%lld min %02lld s", whole / 60, whole % 60);
  } else {
    snprintf(text, sizeof(text), "%lld h %02lld min", whole / 3600, whole / 60 % 60);
  }
  return text;
}

// "  loss 0.4512  1234 samples/s  1 min 05 s left"
std::string Figures(const TrainRecord& record, const ProgressState& state) {
  char text[128];
  snprintf(text, sizeof(text), "  loss %.4f  %.0f samples/s", record.loss, record.samples_per_s);
  std::string figures = text;
  if (state.total_steps > 0 && state.steps_done > 0) {
    const int64_t left = std::max<int64_t>(0, state.total_steps - record.step);
    const double seconds =
        state.elapsed_seconds / static_cast<double>(state.steps_done) * static_cast<double>(left);
    figures += "  " + Duration(seconds) + " left";
  }
  return figures;
}

}  // namespace

std::string ProgressBar(const TrainRecord& record, const ProgressState& state) {
  constexpr int64_t kCells = 30;
  std::string bar = "step " + std::to_string(record.step);
  if (state.total_steps > 0) {
    const int64_t step = std::min(record.step, state.total_steps);
    const auto filled = static_cast<size_t>(kCells * step / state.total_steps);
    const std::string done = std::string(filled, '=') + (filled < kCells ? ">" : "");
    char percent[16];
    snprintf(percent, sizeof(percent), "] %3d%%", static_cast<int>(100 * step / state.total_steps));
    bar = "[" + done + std::string(kCells - std::min<size_t>(kCells, done.size()), ' ') + percent;
  }
  return bar + Figures(record, state);
}

std::string ProgressLine(const TrainRecord& record, const ProgressState& state) {
  std::ostringstream line;
  line << "step " << record.step;
  if (state.total_steps > 0) line << "/" << state.total_steps;
  line << "  epoch " << record.epoch << Figures(record, state);
  return line.str();
}

}  // namespace elastor
