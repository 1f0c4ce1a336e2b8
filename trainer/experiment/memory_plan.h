#ifndef ELASTOR_TRAINER_EXPERIMENT_MEMORY_PLAN_H_
#define ELASTOR_TRAINER_EXPERIMENT_MEMORY_PLAN_H_

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "configs/proto/experiment.pb.h"
#include "core/base/leaves.h"
#include "core/base/status.h"
#include "core/graph/graph.h"
#include "core/ntk/ntk_memory.h"
#include "core/tensor/workspace.h"
#include "embedding/shard_plan.h"
#include "embedding/table.h"
#include "trainer/data/dataset.h"

namespace elastor {

// Purposes of a run's memory. A buffer that grows with the data counts only with the bytes that it
// certainly needs, so that a run that can work is never refused.
enum class MemoryPart {
  kTableRows,  // weights and optimizer slots of embedding rows
  kDense,      // weights, also as the kernels want them, of the own slices gradients and slots, and
               // what travels of them
  kGradientSums,  // gradient sums of the threads' virtual shards
  kActivations,   // activations of the threads' passes
  kBatches,       // the batch in use and those read ahead
  kExchange,      // a batch's ids, where they occur, and their bags' gradients
  kCheckpoint,    // the copy of the state that is written while training goes on
  kNtk,           // rows, gradients and kernels of the neural tangent kernel's measurement
};
inline constexpr int kMemoryParts = 8;
const char* MemoryPartName(MemoryPart part);  // for people: "activations of the threads"
const char* MemoryPartKey(MemoryPart part);   // "activations"

// Memory of one rank in bytes. Amounts beyond 2^62 count as 2^62.
struct RankMemory {
  std::array<int64_t, kMemoryParts> surely{};  // touched in any case, by MemoryPart
  int64_t unsure_rows =
      0;  // further bytes in kTableRows and kCheckpoint if all possible rows occur
  int64_t address_space = 0;  // address space that is reserved, touched or not
  int64_t device = 0;         // memory on its GPU: rows and dense state
  // Bytes of rows in files (embedding.tier), surely and at most. Those in memory are in kTableRows.
  int64_t files = 0;
  int64_t most_files = 0;

  int64_t operator[](MemoryPart part) const { return surely[static_cast<int>(part)]; }
  int64_t sure() const;
  int64_t most() const;  // sure() and unsure_rows
};

// Returns, for each categorical field, a lower bound of the number of different ids in the training
// rows of a prepared data set. Reads its stats.json; 0 where that does not say.
std::vector<int64_t> OccurringIds(const std::string& dataset_path, const DatasetInfo& data);

// Returns the experiment by which memory is planned and taken in a mode that reads a model.
Experiment ForInference(Experiment experiment);

// Computes the memory of a run's ranks from the same layouts, plans and formulas by which it is
// taken.
class MemoryPlan {
 public:
  struct Options {
    bool trains = true;      // false: the run infers
    bool on_device = false;  // --device=cuda
    // For training: the result of OccurringIds; empty: unknown.
    std::vector<int64_t> occurring_ids = {};
    // For inference: the least and the largest number of rows that the model may have.
    Range model_rows = {};
    // For inference: rows of the neural tangent kernel; 0: it is not measured. Training measures
    // spectrum.ntk_rows.
    int64_t ntk_rows = 0;
    Split ntk_split = Split::kValidation;
    // For parallel.by_host: the most ranks of a host; 0: not known.
    int ranks_per_host = 0;
  };
  // `experiment` is the one that memory is taken for, resolved and valid. data and graph outlive
  // the object.
  MemoryPlan(const Experiment& experiment, const DatasetInfo& data, const Graph* graph,
             const Options& options);

  const Experiment& experiment() const { return experiment_; }
  bool trains() const { return options_.trains; }
  // Rows of the neural tangent kernel, at most as many as the split has. Equal rows count as
  // different ones. 0: the kernel is not measured.
  int64_t NtkRows() const;
  // Returns the plan of the same run with other fields, which must not change the graph.
  MemoryPlan With(const Experiment& experiment) const;
  // Returns the plan with another number of rows of the neural tangent kernel.
  MemoryPlan WithNtkRows(int64_t rows) const;
  // Returns the plan with tables of another width; everything else stays.
  MemoryPlan WithEmbeddingWidth(int64_t width) const;

  // Makes the experiment's shard plan of the tables.
  StatusOr<ShardPlan> Shards(int ranks) const;
  RankMemory OfRank(const ShardPlan& shards, int rank) const;

 private:
  struct Rows;  // of a table on a rank

  int64_t SplitRows() const { return data_->rows[static_cast<int>(Split::kTrain)]; }
  // Rows per epoch; 0: unknown, without data.
  int64_t TrainingRows() const {
    const int64_t rows = experiment_.data().train_rows();
    return rows > 0 ? std::min(rows, SplitRows()) : SplitRows();
  }
  int64_t Steps() const;
  bool CompletesAnEpoch() const;
  int64_t BatchRows() const;
  Rows RowsOf(int table, const ShardPlan& shards, int rank) const;
  void AddTables(const ShardPlan& shards, int rank, RankMemory* memory) const;
  void AddDense(int rank, int ranks, RankMemory* memory) const;
  void AddThreads(int rank, int ranks, RankMemory* memory) const;
  void AddBatches(int rank, int ranks, RankMemory* memory) const;
  void AddNtk(int rank, int ranks, RankMemory* memory) const;

  Experiment experiment_;
  const DatasetInfo* data_;
  const Graph* graph_;
  Options options_;
  WorkspacePlan workspace_;
  std::optional<NtkMemory> ntk_;
  std::vector<TableSpec> tables_;
  std::vector<int64_t> occurring_;  // by table: ids that occur, at least
  std::vector<int64_t> most_;       // by table: rows that can occur
};

}  // namespace elastor

#endif  // ELASTOR_TRAINER_EXPERIMENT_MEMORY_PLAN_H_
