#ifndef ELASTOR_TRAINER_COST_MACHINE_H_
#define ELASTOR_TRAINER_COST_MACHINE_H_

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/base/precision.h"
#include "core/base/status.h"
#include "core/graph/graph.h"

namespace elastor {

class Experiment;
class Kernel;
class Machine;
class Piece;

// Reads a machine (configs/proto/machine.proto). User error in one line that names file and field.
StatusOr<Machine> ReadMachine(const std::string& path);

// Returns Machine::measured_with of a calibration with this experiment.
std::string MeasuredWith(const Experiment& experiment);

// Returns the rate of a unit's products. User error if the machine has none for the precision.
StatusOr<double> ProductRate(const Machine& machine, Precision precision);

// Returns the name of a node's kernel, by kind, settings and shapes: "linear gelu 15x26x52 15x26 :
// 15x52 : 15x26".
std::string KernelName(const Graph& graph, int node);

// Seconds of one pass of a model over some rows.
struct PassTimes {
  double forward = 0;
  double backward = 0;
  // By bucket of dense parameters: from the beginning of the backward pass until it is complete.
  std::vector<double> bucket_ready;
};

// How long pieces of a step take on one unit of a machine. What the machine does not tell is
// derived from its rates for products and memory.
class WorkTimes {
 public:
  // multiply_adds_per_s: ProductRate. graph: as an executor runs it. On GPUs values between layers
  // and copies of weights have 16 bits with kBFloat16, else 32. machine and graph outlive the
  // object.
  WorkTimes(const Machine* machine, double multiply_adds_per_s, const Graph* graph,
            Precision precision = Precision::kFloat32);

  // rows: with padding. leaves: of the pass.
  PassTimes Pass(int64_t rows, int64_t leaves) const;
  // The time in which steps compute, over that of their kernels one by one. passes: of a thread in
  // a step.
  double compute_scale(int64_t passes) const;
  // The share of the graph's kernels that the machine has measured, by multiply-adds.
  double measured_share() const;

  // The pieces, by their amounts (Pieces).
  double UniqueIds(double ids) const;
  double OwnedKeys(double keys) const;
  double FindRows(double keys) const;
  double CopyRows(double elements) const;
  double PoolBags(double elements) const;
  double Loss(double rows) const;
  double SumGradients(double elements) const;
  double Fold(double elements) const;
  double NormRows(double elements) const;
  double UpdateRows(double elements) const;
  double NormDense(double parameters) const;
  double UpdateDense(double parameters) const;
  double Repack(double parameters) const;
  double Copy(double bytes) const;

 private:
  struct NodeTimes {
    const Kernel* kernel = nullptr;  // null: by the rates
    double multiply_adds = 0;
    double numbers = 0;        // read and written, a row
    double parameters = 0;     // elements
    std::vector<int> buckets;  // of its parameters
  };
  double Derived(const Piece& piece, bool has, double amount, double bytes_each,
                 double bytes_per_s) const;
  double memory() const;
  double gather() const;

  const Machine* machine_;
  double multiply_adds_per_s_;
  double value_bytes_;
  std::vector<NodeTimes> nodes_;
  int buckets_ = 0;
};

}  // namespace elastor

#endif  // ELASTOR_TRAINER_COST_MACHINE_H_
