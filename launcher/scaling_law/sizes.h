#ifndef ELASTOR_LAUNCHER_SCALING_LAW_SIZES_H_
#define ELASTOR_LAUNCHER_SCALING_LAW_SIZES_H_

#include <span>
#include <string>
#include <vector>

#include "launcher/scaling_law/law_fit.h"

namespace elastor {

// Sizes whose ratio is no larger than this count once: in the degrees of freedom, in the number of
// different sizes, in what is left out or held out together, and in the random effects.
inline constexpr double kSameSize = 1.1;

// Returns the level of every configuration's size k: 0 for the smallest size and all within
// kSameSize of it, 1 for the next size and all within kSameSize of it, ...
std::vector<int> LevelsOf(std::span<const Configuration> configurations, size_t k);
// Returns the number of levels.
int DifferentSizes(std::span<const Configuration> configurations, size_t k);

// Returns the group of every configuration, numbered from 0 in the order of their first
// configurations. Those whose sizes all have the same levels are one group.
std::vector<int> GroupsOf(std::span<const Configuration> configurations);

// Returns "width 64, depth 2".
std::string SizesText(std::span<const std::string> names, std::span<const double> sizes);

}  // namespace elastor

#endif  // ELASTOR_LAUNCHER_SCALING_LAW_SIZES_H_
