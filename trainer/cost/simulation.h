#ifndef ELASTOR_TRAINER_COST_SIMULATION_H_
#define ELASTOR_TRAINER_COST_SIMULATION_H_

#include <cstdint>
#include <initializer_list>
#include <span>
#include <vector>

namespace elastor {

class Machine;

// Threads of many ranks that work, wait for one another and make collective calls, played event by
// event. It knows nothing of training: trainer/cost/step_program.h says what the threads do.

// One thing that a thread does.
struct SimTask {
  enum Kind {
    kWork,  // computes for `seconds` on `width` units
    kCall,  // makes call `index`, and waits until it is complete
    kPost,  // adds 1 to the rank's signal `index`
    kWait,  // waits until the rank's signal `index` is at least `count`
    kMark,  // notes the time as the rank's mark `index`
  };
  Kind kind;
  int index = 0;
  int count = 0;
  double seconds = 0;
  int width = 1;
};

struct SimThread {
  int rank = 0;
  std::vector<SimTask> tasks;
};

// Bytes from one rank to every rank, kept as runs of equal blocks: a thousand ranks exchange a
// million blocks a call, most of them alike.
class SimBlocks {
 public:
  explicit SimBlocks(std::span<const int64_t> bytes);
  SimBlocks(std::initializer_list<int64_t> bytes)
      : SimBlocks(std::span<const int64_t>(bytes.begin(), bytes.size())) {}
  // Calls visit(rank, bytes) for every rank that gets bytes, in order.
  template <typename Visit>
  void ForEach(const Visit& visit) const {
    int rank = 0;
    for (size_t i = 0; i < ends_.size(); rank = ends_[i++]) {
      for (int to = rank; bytes_[i] != 0 && to < ends_[i]; ++to) visit(to, bytes_[i]);
    }
  }

 private:
  std::vector<int32_t> ends_;  // of the runs
  std::vector<int64_t> bytes_;
};

// A collective call, which every rank makes once a part.
struct SimCall {
  // Blocks by the rank that sends; a block of 0 bytes does not travel. Empty: an all-reduce of
  // `bytes`.
  std::vector<SimBlocks> send = {};
  int64_t bytes = 0;
};

struct SimJob {
  int ranks = 1;
  int ranks_per_host = 1;  // rank r is on host r / ranks_per_host
  int signals = 0;         // of each rank
  int marks = 0;           // of each rank
  // The calls of one of `repeats` like parts. Call i of part p has the index p * calls + i.
  std::vector<SimCall> calls = {};
  int repeats = 1;
  std::vector<SimThread> threads = {};
};

struct SimResult {
  std::vector<std::vector<double>> marks;    // [rank][mark], seconds from the beginning
  std::vector<std::vector<double>> entered;  // [index of the call][rank]
  std::vector<std::vector<double>> left;
  bool endless = false;  // beyond kLongestJobSeconds, and cut there
};

// A job that takes longer is not played to its end: a rate of the machine is no rate.
inline constexpr double kLongestJobSeconds = 1e9;

// Plays a job to its end. REQUIRES: it has one (threads do not wait for one another in a circle).
SimResult Simulate(const Machine& machine, const SimJob& job);

}  // namespace elastor

#endif  // ELASTOR_TRAINER_COST_SIMULATION_H_
