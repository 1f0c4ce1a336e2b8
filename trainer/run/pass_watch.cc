#include "trainer/run/pass_watch.h"

#include <bit>

#include "core/base/text.h"

namespace elastor {

std::string PassWatch::AfterStep(const TableSpec& table, int64_t step, int64_t rows,
                                 int64_t evicted) {
  const RowRules& rules = table.rules;
  const bool due = rules.evict_every_steps > 0 && step % rules.evict_every_steps == 0;
  passes_ = passes_ << 1 | (evicted > 0 && !due ? 1 : 0);
  const std::string begin = StrCat("warning: embedding.tables: table '", table.name, "' ");
  if (evicted > 0 && rows == 0 && !told_of_nothing_) {
    told_of_nothing_ = true;
    return StrCat(begin, "has no row left after the pass of step ", step, "; ",
                  rules.policy == RowRules::Policy::kL2 ? "lower eviction.min_l2"
                  : rules.by_time()                     ? "raise eviction.ttl_seconds"
                                                        : "raise eviction.ttl_steps");
  }
  const int passes = std::popcount(passes_);
  if (passes < kMany || told_of_many_) return "";
  told_of_many_ = true;
  return StrCat(begin, "was full, and lost rows, at ", passes, " of the last ", kSteps,
                " steps; lower eviction.evict_to, ", rules.evict_to, ", or raise capacity, ",
                rules.capacity);
}

}  // namespace elastor
