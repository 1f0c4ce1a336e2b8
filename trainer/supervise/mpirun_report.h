#ifndef ELASTOR_TRAINER_SUPERVISE_MPIRUN_REPORT_H_
#define ELASTOR_TRAINER_SUPERVISE_MPIRUN_REPORT_H_

#include <string>
#include <string_view>
#include <vector>

namespace elastor {

// Takes the stderr of mpirun apart: what the ranks print goes on, the framed paragraphs in which
// Open MPI (4.1) tells how its job ended become a few words.
class MpirunReport {
 public:
  // The next bytes of the stream; returns those to be passed on, whole lines.
  std::string Pass(std::string_view bytes);
  // At the stream's end: what is left of it.
  std::string Rest();

  // "rank 3 on b was killed by signal 9"; empty: nothing was told.
  const std::string& cause() const { return cause_; }

 private:
  std::string PassLine(const std::string& line);
  // Whether a paragraph tells how the job ended; keeps the first one's words.
  bool TellsTheEnd(const std::vector<std::string>& paragraph);

  std::string begun_;                   // a line without its end
  bool framed_ = false;                 // between two lines of dashes
  std::vector<std::string> paragraph_;  // of that frame, so far
  std::string cause_;
};

}  // namespace elastor

#endif  // ELASTOR_TRAINER_SUPERVISE_MPIRUN_REPORT_H_
