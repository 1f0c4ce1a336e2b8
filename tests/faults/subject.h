#ifndef ELASTOR_TESTS_FAULTS_SUBJECT_H_
#define ELASTOR_TESTS_FAULTS_SUBJECT_H_

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tests/faults/faults.h"
#include "tests/faults/job.h"

namespace elastor {

// What a run must say at its end, whatever happened to it.
struct Record {
  std::string digest;                         // of the last state; "": the run is not finished
  std::set<std::string> lines;                // of metrics.jsonl but checkpoints, without times
  std::map<std::string, std::string> states;  // digests of checkpoints, by step
};
// Of an output directory.
Record RecordOf(const std::string& run);

// The first lines in which a run differs from the undisturbed one; "" when there is none. Of
// checkpoints those count that both have. lines_may_lack: the trainer has warned of that.
std::string Differences(const Record& found, const Record& undisturbed, bool lines_may_lack);

// An experiment on a data set, and what an undisturbed run of it says.
class Subject {
 public:
  struct Programs {
    std::string trainer;
    std::string layer;  // the library of faulty_system.cc
  };
  // every_steps: between checkpoints. work: for the undisturbed runs; of a disturbed one see
  // DisturbedJob.
  Subject(const std::string& name, const std::string& experiment, const std::string& data,
          int every_steps, const std::string& work, const Programs& programs, double hang_seconds);

  const std::string& name() const { return name_; }
  const std::string& data() const { return data_; }
  int every_steps() const { return every_steps_; }

  // What the jobs of a supervised run are told besides: deltas.
  std::vector<std::string> SupervisedArguments() const;
  JobPlan PlanJob(const DisturbedJob& attempt, bool resumes) const;

  // Measured by a run of its own, the first time.
  const Undisturbed& On(int ranks, bool supervised);
  // Of the first of these runs. REQUIRES: On was called.
  const Record& record() const { return record_; }

 private:
  std::vector<std::string> TrainerCommand(const DisturbedJob& attempt, bool resumes) const;
  std::map<std::string, std::string> Environment(const DisturbedJob& attempt) const;

  const std::string name_;
  const std::string data_;
  const int every_steps_;
  const std::string work_;
  const Programs programs_;
  const double hang_seconds_;
  const std::vector<std::string> arguments_;
  std::map<std::pair<int, bool>, Undisturbed> undisturbed_;  // by ranks, supervised
  Record record_;
};

}  // namespace elastor

#endif  // ELASTOR_TESTS_FAULTS_SUBJECT_H_
