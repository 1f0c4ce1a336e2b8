#include "trainer/evaluate/predictions_file.h"

#include <cinttypes>
#include <cstdio>

#include "core/kernels/elementwise.h"
#include "glog/logging.h"

namespace elastor {

std::string PredictionLines(int64_t first_row, const std::vector<float>& labels,
                            const std::vector<float>& logits) {
  CHECK_EQ(labels.size(), logits.size());
  std::string text;
  char line[96];
  for (size_t i = 0; i < labels.size(); ++i) {
    const int length =
        std::snprintf(line, sizeof(line), "%" PRId64 ",%.9g,%.9g\n",
                      first_row + static_cast<int64_t>(i), labels[i], Sigmoid(logits[i]));
    text.append(line, length);
  }
  return text;
}

}  // namespace elastor
