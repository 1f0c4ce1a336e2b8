#ifndef ELASTOR_LAUNCHER_CONDITIONING_STUDIES_H_
#define ELASTOR_LAUNCHER_CONDITIONING_STUDIES_H_

#include <Eigen/Core>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace elastor {

// Makes the tables and pictures of docs/results/reproduce_conditioning.md: figures 2, 4, 5 and 6 of
// arXiv:2605.20749 and its claims, as core/conditioning measures them.

struct StudyOptions {
  int64_t seeds = 5;             // number of seeds of inputs, and of weights
  bool large = true;             // whether to run studies that take more than a few seconds
  int64_t condition_rows = 400;  // n of figure 2
  // Images for figure 6, one per row as the trainer reads them, with their classes. Without rows,
  // figure 6 has no images.
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

// Returns all studies, in the order of the paper.
const std::vector<Study>& Studies();

}  // namespace elastor

#endif  // ELASTOR_LAUNCHER_CONDITIONING_STUDIES_H_
