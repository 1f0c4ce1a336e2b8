#include "trainer/run/memory_check.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <numeric>
#include <system_error>
#include <type_traits>
#include <vector>

#include "core/base/file.h"
#include "core/base/text.h"
#include "trainer/checkpoint/manifest.h"
#include "xxhash.h"

namespace elastor {
namespace {

// More ranks are not tried for what would fit.
constexpr int kMostRanks = 4096;
constexpr size_t kPartsTold = 3;
static_assert(std::is_trivially_copyable_v<RankReport>, "travels as bytes");

std::string Gigabytes(int64_t bytes) {
  char text[32];
  const auto value = static_cast<double>(bytes);
  std::snprintf(text, sizeof(text), bytes < 1e9 ? "%.1f MB" : "%.1f GB",
                value / (bytes < 1e9 ? 1e6 : 1e9));
  return text;
}

uint64_t HashOf(const std::string& text) { return XXH3_64bits(text.data(), text.size()); }

template <size_t size>
void CopyText(const std::string& from, char (&to)[size]) {
  std::snprintf(to, size, "%s", from.c_str());
}

// Memory that some of the ranks share.
struct Pool {
  std::string name;  // "host h (2 ranks), which has", to be followed by the bytes
  int64_t bytes = 0;
  int64_t available = 0;
  std::vector<int> ranks;
};

// By host, then by control group, in the order of their first ranks.
std::vector<Pool> PoolsOf(std::span<const RankReport> reports) {
  std::vector<Pool> pools;
  const auto add = [&](uint64_t RankReport::*key, auto fill) {
    std::vector<uint64_t> keys;
    const size_t first = pools.size();
    for (size_t rank = 0; rank < reports.size(); ++rank) {
      if (reports[rank].*key == 0) continue;
      const auto at = std::find(keys.begin(), keys.end(), reports[rank].*key) - keys.begin();
      if (at == std::ssize(keys)) {
        keys.push_back(reports[rank].*key);
        pools.emplace_back();
      }
      pools[first + at].ranks.push_back(static_cast<int>(rank));
    }
    for (size_t i = first; i < pools.size(); ++i) fill(reports[pools[i].ranks[0]], &pools[i]);
  };
  add(&RankReport::host, [](const RankReport& rank, Pool* pool) {
    pool->name = StrCat("host ", rank.host_name, " (", CountText(pool->ranks.size(), "rank"),
                        "), which has");
    pool->bytes = rank.host_bytes;
    pool->available = rank.host_available;
  });
  add(&RankReport::group, [](const RankReport& rank, Pool* pool) {
    pool->name = StrCat("host ", rank.host_name, " (", CountText(pool->ranks.size(), "rank"),
                        "), whose control group ", rank.group_name, " allows");
    pool->bytes = rank.group_bytes;
    pool->available = rank.group_available;
  });
  return pools;
}

int64_t Sum(const std::vector<int64_t>& values) {
  int64_t sum = 0;
  for (const int64_t value : values) {
    if (__builtin_add_overflow(sum, value, &sum)) return kNoMemoryLimit;
  }
  return sum;
}

// "60.1 GB rows of embedding tables, 4.2 GB ...": the largest parts of what the ranks need.
std::string LargestParts(std::span<const RankReport> reports, const Pool& pool) {
  std::array<int64_t, kMemoryParts> bytes{};
  for (int part = 0; part < kMemoryParts; ++part) {
    std::vector<int64_t> of_ranks;
    for (const int rank : pool.ranks) of_ranks.push_back(reports[rank].needs.surely[part]);
    bytes[part] = Sum(of_ranks);
  }
  std::array<int, kMemoryParts> order{};
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return bytes[a] > bytes[b]; });
  std::string text;
  const int64_t all = Sum({bytes.begin(), bytes.end()});
  for (size_t i = 0; i < kPartsTold && bytes[order[i]] > all / 100; ++i) {
    text += (i == 0 ? "" : ", ") + Gigabytes(bytes[order[i]]) + " " +
            MemoryPartName(static_cast<MemoryPart>(order[i]));
  }
  return text;
}

// Changes of a run whose ranks `pool` cannot hold.
class Remedies {
 public:
  Remedies(const MemoryPlan& plan, const Pool& pool, int ranks)
      : plan_(plan), pool_(pool), ranks_(ranks) {}

  std::string Text() const {
    std::string text;
    for (const std::string& remedy :
         {KernelRows(), Lazy(), Threads(), Staging(), Ranks(), Width()}) {
      if (!remedy.empty()) text += (text.empty() ? "" : ", or ") + remedy;
    }
    return text;
  }

 private:
  // What every one of `ranks` is sure to touch; nothing when they cannot be planned.
  static std::vector<int64_t> Needs(const MemoryPlan& plan, int ranks) {
    const StatusOr<ShardPlan> shards = plan.Shards(ranks);
    std::vector<int64_t> needs;
    for (int rank = 0; shards.ok() && rank < ranks; ++rank) {
      needs.push_back(plan.OfRank(*shards, rank).sure());
    }
    return needs;
  }

  bool Fits(const MemoryPlan& plan) const {
    const StatusOr<ShardPlan> shards = plan.Shards(ranks_);
    if (!shards.ok()) return false;
    std::vector<int64_t> needs;
    for (const int rank : pool_.ranks) needs.push_back(plan.OfRank(*shards, rank).sure());
    return Sum(needs) <= pool_.bytes;
  }

  // The largest value below `now` with which the run fits; 0: none.
  template <typename PlanWith>
  int64_t Largest(int64_t now, const PlanWith& plan_with) const {
    int64_t fits = 0;
    for (int64_t beyond = now; beyond - fits > 1;) {
      const int64_t middle = fits + (beyond - fits) / 2;
      (Fits(plan_with(middle)) ? fits : beyond) = middle;
    }
    return fits;
  }

  // Suggests how many rows of the neural tangent kernel would fit.
  std::string KernelRows() const {
    const int64_t rows =
        Largest(plan_.NtkRows(), [&](int64_t fewer) { return plan_.WithNtkRows(fewer); });
    if (rows < 2) return "";
    return StrCat(plan_.trains() ? "spectrum.ntk_rows=" : "--rows=", rows);
  }

  std::string Lazy() const {
    Experiment experiment = plan_.experiment();
    if (experiment.optimizer().sparse() != OptimizerConfig_Sparse_DENSE_ADAM) return "";
    experiment.mutable_optimizer()->set_sparse(OptimizerConfig_Sparse_LAZY_ADAM);
    return Fits(plan_.With(experiment)) ? "optimizer.sparse=LAZY_ADAM (rows that occur)" : "";
  }

  std::string Threads() const {
    const int64_t threads = Largest(plan_.experiment().parallel().threads(), [&](int64_t fewer) {
      Experiment experiment = plan_.experiment();
      experiment.mutable_parallel()->set_threads(static_cast<int32_t>(fewer));
      return plan_.With(experiment);
    });
    return threads == 0 ? "" : StrCat("parallel.threads=", threads);
  }

  std::string Staging() const {
    Experiment experiment = plan_.experiment();
    experiment.mutable_checkpoint()->set_staging_bytes(1);
    return Fits(plan_.With(experiment)) ? "checkpoint.staging_bytes=1 (training waits for writing)"
                                        : "";
  }

  std::string Width() const {
    if (!plan_.trains()) return "";  // the model has its width
    const int64_t width = Largest(plan_.experiment().embedding().width(), [&](int64_t narrower) {
      return plan_.WithEmbeddingWidth(narrower);
    });
    return width == 0 ? "" : StrCat("embedding.width=", width, " at most");
  }

  // The fewest hosts like this one, with the same ranks or doubled ones.
  std::string Ranks() const {
    const int most = std::min(plan_.experiment().parallel().virtual_shards(), kMostRanks);
    for (int ranks = ranks_; ranks <= most; ranks *= 2) {
      const std::vector<int64_t> needs = Needs(plan_, ranks);
      for (int on_host = static_cast<int>(pool_.ranks.size()); on_host > 0 && !needs.empty();
           --on_host) {
        bool fits = true;
        for (int first = 0; fits && first < ranks; first += on_host) {
          const int last = std::min(first + on_host, ranks);
          fits = Sum({needs.begin() + first, needs.begin() + last}) <= pool_.bytes;
        }
        if (!fits) continue;
        return StrCat(CountText(ranks, "rank"), " on ", (ranks - 1) / on_host + 1, " such hosts");
      }
    }
    return "";
  }

  const MemoryPlan& plan_;
  const Pool& pool_;
  const int ranks_;
};

int64_t Needed(std::span<const RankReport> reports, const Pool& pool,
               int64_t (RankMemory::*needs)() const) {
  std::vector<int64_t> bytes;
  for (const int rank : pool.ranks) bytes.push_back((reports[rank].needs.*needs)());
  return Sum(bytes);
}

Status CheckPool(std::span<const RankReport> reports, const Pool& pool, const MemoryPlan& plan) {
  const int64_t needed = Needed(reports, pool, &RankMemory::sure);
  if (needed <= pool.bytes) return OkStatus();
  const std::string remedies = Remedies(plan, pool, static_cast<int>(reports.size())).Text();
  return UserError("memory: the run needs at least " + Gigabytes(needed) + " on " + pool.name +
                   " " + Gigabytes(pool.bytes) + ": " + LargestParts(reports, pool) +
                   (remedies.empty() ? "; expected a smaller model or more memory"
                                     : "; would fit with " + remedies));
}

// What one rank cannot have, however much memory there is.
Status CheckRank(int rank, const RankReport& report) {
  const RankMemory& needs = report.needs;
  const std::string speaker = StrCat("memory: rank ", rank, " needs at least ");
  if (needs.address_space > report.address_space_bytes) {
    return UserError(speaker + Gigabytes(needs.address_space) + " of address space on host " +
                     report.host_name + ", ulimit -v allows " +
                     Gigabytes(report.address_space_bytes) + "; expected ulimit -v unlimited");
  }
  if (report.device_bytes > 0 && needs.device > report.device_bytes) {
    return UserError(speaker + Gigabytes(needs.device) +
                     " on its GPU for embedding rows and dense weights, which has " +
                     Gigabytes(report.device_bytes) +
                     "; expected more ranks, or parallel.device_embedding_bytes below that, which "
                     "leaves rows in the host's memory");
  }
  return OkStatus();
}

// scarcest: the pool of which the run may need most.
std::string Warning(std::span<const RankReport> reports, const std::vector<Pool>& pools,
                    const Pool& scarcest) {
  const int64_t most = Needed(reports, scarcest, &RankMemory::most);
  if (most > scarcest.bytes) {
    return "warning: memory: the run needs " +
           Gigabytes(Needed(reports, scarcest, &RankMemory::sure)) + " to " + Gigabytes(most) +
           ", the more embedding rows occur, on " + scarcest.name + " " + Gigabytes(scarcest.bytes);
  }
  for (const Pool& pool : pools) {
    const int64_t sure = Needed(reports, pool, &RankMemory::sure);
    if (sure <= pool.available) continue;
    return "warning: memory: the run needs at least " + Gigabytes(sure) + " on " + pool.name + " " +
           Gigabytes(pool.bytes) + ", of which " + Gigabytes(pool.available) + " are free now";
  }
  return "";
}

// Total size of a folder's embedding files, in bytes.
int64_t EmbeddingBytesIn(const std::string& directory) {
  int64_t bytes = 0;
  std::error_code failed;  // the loading tells what is wrong with the folder
  std::filesystem::directory_iterator entry(directory, failed);
  for (; !failed && entry != std::filesystem::directory_iterator(); entry.increment(failed)) {
    if (!entry->path().filename().string().starts_with("embedding-")) continue;
    std::error_code unknown;
    const uintmax_t size = entry->file_size(unknown);
    if (!unknown) bytes += static_cast<int64_t>(size);
  }
  return bytes;
}

}  // namespace

RankReport MakeReport(const RankMemory& needs, const HostMemory& memory, int64_t device_bytes) {
  RankReport report;
  report.needs = needs;
  report.host_bytes = memory.bytes;
  report.host_available = memory.available;
  report.group_bytes = memory.group_bytes;
  report.group_available = memory.group_available;
  report.address_space_bytes = memory.address_space_bytes;
  report.device_bytes = device_bytes;
  report.host = HashOf(memory.boot_id.empty() ? memory.host : memory.boot_id);
  // Containers of one host may have groups of one name.
  if (!memory.group.empty()) report.group = HashOf(memory.boot_id + memory.host + memory.group);
  CopyText(memory.host, report.host_name);
  CopyText(memory.group, report.group_name);
  return report;
}

StatusOr<std::string> JudgeMemory(std::span<const RankReport> reports, const MemoryPlan& plan) {
  for (size_t rank = 0; rank < reports.size(); ++rank) {
    ELASTOR_RETURN_IF_ERROR(CheckRank(static_cast<int>(rank), reports[rank]));
  }
  // The scarcest memory speaks, lest what would fit there is told of another.
  const std::vector<Pool> pools = PoolsOf(reports);
  const auto scarcest = [&](int64_t (RankMemory::*needs)() const) {
    return *std::ranges::max_element(pools, {}, [&](const Pool& pool) {
      return static_cast<double>(Needed(reports, pool, needs)) / static_cast<double>(pool.bytes);
    });
  };
  ELASTOR_RETURN_IF_ERROR(CheckPool(reports, scarcest(&RankMemory::sure), plan));
  return Warning(reports, pools, scarcest(&RankMemory::most));
}

StatusOr<std::string> CheckMemory(const MemoryPlan& plan, const ShardPlan& shards,
                                  int64_t device_bytes, Communicator* communicator) {
  const RankReport own =
      MakeReport(plan.OfRank(shards, communicator->rank()), ReadHostMemory(), device_bytes);
  std::vector<RankReport> reports(communicator->size());
  const std::vector<int64_t> bytes(communicator->size(), sizeof(RankReport));
  ELASTOR_RETURN_IF_ERROR(communicator->AllGatherV(Phase::kSetup, &own, reports.data(), bytes));
  return JudgeMemory(reports, plan);
}

Range RowsOfModel(const std::string& model_dir, int64_t width) {
  const std::string directory = DirectoryToRead(model_dir);
  const std::string base = PeekBase(directory).value_or("");
  const int64_t own = EmbeddingBytesIn(directory);
  const int64_t of_base =
      base.empty() ? 0 : EmbeddingBytesIn(DirectoryToRead(FolderBeside(directory, base)));
  constexpr int64_t kKeyBytes = sizeof(int64_t);
  const int64_t weights = width * static_cast<int64_t>(sizeof(float));
  // A row may be in both.
  return {std::max(own, of_base) / (kKeyBytes + 3 * weights),
          (own + of_base) / (kKeyBytes + weights)};
}

}  // namespace elastor
