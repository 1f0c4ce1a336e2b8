#ifndef ELASTOR_TRAINER_SUPERVISE_MPIRUN_REPORT_H_
#define ELASTOR_TRAINER_SUPERVISE_MPIRUN_REPORT_H_

#include <string>
#include <string_view>
#include <vector>

namespace elastor {

// Filters the stderr of mpirun. Passes on the ranks' output, and turns the framed paragraphs in
// which Open MPI (4.1) tells how its job ended into a few words.
class MpirunReport {
 public:
  // Takes the next bytes of the stream. Returns the whole lines to be passed on.
  std::string Pass(std::string_view bytes);
  // Returns the rest, at the stream's end.
  std::string Rest();

  // How the job ended: "rank 3 on b was killed by signal 9". Empty if mpirun did not tell.
  const std::string& cause() const { return cause_; }

 private:
  std::string PassLine(const std::string& line);
  // Returns whether a paragraph tells how the job ended. Keeps the words of the first one that
  // does.
  bool TellsTheEnd(const std::vector<std::string>& paragraph);

  std::string begun_;                   // a line without its end
  bool framed_ = false;                 // between two lines of dashes
  std::vector<std::string> paragraph_;  // lines of that frame so far
  std::string cause_;
};

}  // namespace elastor

#endif  // ELASTOR_TRAINER_SUPERVISE_MPIRUN_REPORT_H_
