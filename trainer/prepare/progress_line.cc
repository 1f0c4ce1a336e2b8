#include "trainer/prepare/progress_line.h"

#include <unistd.h>

#include <cmath>
#include <cstdio>

#include "core/base/text.h"

namespace elastor {
namespace {

constexpr int kBarWidth = 24;

std::string Number(double value, const char* unit) {
  char text[64];
  std::snprintf(text, sizeof(text), ", %.*f %s", value < 10 ? 1 : 0, value, unit);
  return text;
}

}  // namespace

ProgressLine::ProgressLine() : terminal_(isatty(STDERR_FILENO) == 1), last_(Clock::now()) {}

std::string ProgressLine::Text(const PrepareProgress& progress, double first_share, double seconds,
                               bool bar) {
  std::string text = progress.phase;
  if (bar) {
    const int full = static_cast<int>(progress.share * kBarWidth);
    StrAppend(&text, " [", std::string(full, '#'), std::string(kBarWidth - full, '.'), "]");
  }
  char share[16];
  std::snprintf(share, sizeof(share), " %.0f %%", std::floor(100 * progress.share));
  text += share;
  if (seconds <= 0) return text;
  const double rows = static_cast<double>(progress.rows) / seconds;
  if (progress.rows > 0) text += Number(rows * 1e-3, "thousand rows/s");
  if (progress.text_bytes > 0) {
    text += Number(static_cast<double>(progress.text_bytes) * 1e-6 / seconds, "MB/s");
  }
  if (progress.share > first_share) {
    const double left = (1 - progress.share) / (progress.share - first_share) * seconds;
    text += ", " + DurationText(left) + " left";
  }
  return text;
}

void ProgressLine::Show(const PrepareProgress& progress) {
  const auto now = Clock::now();
  if (progress.phase != phase_) {
    phase_ = progress.phase;
    phase_begin_ = now;
    first_share_ = progress.share;
  }
  const auto wait = terminal_ ? std::chrono::milliseconds(200) : std::chrono::seconds(10);
  if (now - last_ < wait) return;
  last_ = now;
  const double seconds = std::chrono::duration<double>(now - phase_begin_).count();
  std::fprintf(stderr, "%sprepare: %s%s", terminal_ ? "\r" : "",
               Text(progress, first_share_, seconds, terminal_).c_str(),
               terminal_ ? "\033[K" : "\n");
  open_line_ = terminal_;
}

void ProgressLine::EndLine() {
  if (open_line_) std::fputc('\n', stderr);
  open_line_ = false;
}

}  // namespace elastor
