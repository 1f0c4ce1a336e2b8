#include "trainer/prepare/values/value_merge.h"

#include <string>

namespace elastor {
namespace {

// Samples a part: the sizes of parts differ by about the square root of this many parts of one.
constexpr int64_t kSamplesPerPart = 64;

}  // namespace

std::vector<std::vector<Range>> CutRuns(const std::vector<ValueRunView>& runs,
                                        int64_t part_values) {
  int64_t values = 0;
  for (const ValueRunView& run : runs) values += run.size();
  const int64_t parts = std::max<int64_t>((values + part_values - 1) / part_values, 1);
  std::vector<std::string> samples;
  const int64_t step = std::max<int64_t>(values / (parts * kSamplesPerPart), 1);
  int64_t next = step;  // counted on from run to run
  for (const ValueRunView& run : runs) {
    for (; parts > 1 && next < run.size(); next += step) {
      ShortText text(0, 0);
      samples.emplace_back(run.Value(next, &text));
    }
    next -= run.size();
  }
  std::sort(samples.begin(), samples.end());
  std::vector<std::vector<Range>> ranges(parts, std::vector<Range>(runs.size()));
  for (size_t run = 0; run < runs.size(); ++run) {
    int64_t begin = 0;
    for (int64_t part = 0; part < parts; ++part) {
      const size_t cut = samples.size() * (part + 1) / parts;
      const bool last = part + 1 == parts;
      const int64_t end =
          last ? runs[run].size() : std::max(begin, runs[run].LowerBound(samples[cut]));
      ranges[part][run] = {begin, end};
      begin = end;
    }
    runs[run].Forget(0, runs[run].size());
  }
  return ranges;
}

}  // namespace elastor
