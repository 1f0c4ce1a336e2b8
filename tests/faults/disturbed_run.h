#ifndef ELASTOR_TESTS_FAULTS_DISTURBED_RUN_H_
#define ELASTOR_TESTS_FAULTS_DISTURBED_RUN_H_

#include <deque>
#include <string>
#include <vector>

#include "tests/faults/faults.h"
#include "tests/faults/job.h"
#include "tests/faults/subject.h"
#include "tests/faults/tally.h"

namespace elastor {

// The faults of one job.
using JobFaults = std::vector<const Fault*>;

// A run that is disturbed by faults, one job after another, and resumed on
// other numbers of ranks until it ends. The jobs of a supervised one are trainer --supervise, which
// resumes it as long as it can, and write deltas.
class DisturbedRun {
 public:
  struct Options {
    uint64_t index = 0;
    std::string run;      // the output directory
    std::string work;     // for everything else
    int first_ranks = 0;  // of the first job; 0: drawn
    bool supervised = false;
    std::deque<JobFaults> faults;
    bool verbose = false;
  };
  // subject, tally and random outlive the object.
  DisturbedRun(Options options, Subject* subject, Tally* tally, Random* random);

  // What was wrong, with the jobs so far; "" when the run ended as the undisturbed one.
  std::string ToItsEnd();

 private:
  // One fault of a job.
  struct Disturbance {
    const Fault* fault;
    DisturbedJob attempt;  // as this fault alone would have it
    bool struck = false;
  };
  struct Job {
    DisturbedJob attempt;
    std::vector<Disturbance> disturbances;
    ObservedEnd end;
  };
  bool HasCheckpoint() const;
  JobFaults NextFaults();
  Job Plan();
  void Run(Job* job);
  void Count(const Job& job);
  // What is wrong with a job's end, or with the end of the run: "" when nothing is.
  std::string CheckEnd(const Job& job);
  std::string CheckRecord();

  const Options options_;
  Subject& subject_;
  Tally& tally_;
  Random& random_;
  std::deque<JobFaults> faults_;  // that are still to come
  int jobs_ = 0;
  std::string history_;
  Tally::OfFault* before_ = nullptr;  // of the fault that struck the job before
  bool lines_may_lack_ = false;       // the trainer has warned of it
};

}  // namespace elastor

#endif  // ELASTOR_TESTS_FAULTS_DISTURBED_RUN_H_
