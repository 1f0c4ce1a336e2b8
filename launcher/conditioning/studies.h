#ifndef ELASTOR_LAUNCHER_CONDITIONING_STUDIES_H_
#define ELASTOR_LAUNCHER_CONDITIONING_STUDIES_H_

#include <Eigen/Core>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace elastor {

// The tables and pictures of docs/results/reproduce_conditioning.md: figures 2, 4, 5 and 6 of
// arXiv:2605.20749 and its claims, as they are measured by core/conditioning.

struct StudyOptions {
  int64_t seeds = 5;  // of inputs; weights have as many
  bool large = true;  // also what takes more than a few seconds
  // Images, a row each as the trainer reads them, and their classes, for figure 6; without rows it
  // has none.
  Eigen::MatrixXd images = {};
  Eigen::VectorXd classes = {};
};

struct StudyFile {
  std::string name;
  std::string text;
};

struct Study {
  std::string name;  // what --studies calls it
  std::string what;  // for people
  std::function<std::vector<StudyFile>(const StudyOptions&)> run;
};

// All of them, in the order of the paper.
const std::vector<Study>& Studies();

}  // namespace elastor

#endif  // ELASTOR_LAUNCHER_CONDITIONING_STUDIES_H_
