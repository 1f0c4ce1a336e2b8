#include "launcher/scaling_law/sizes.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "core/base/text.h"

namespace elastor {

std::vector<int> LevelsOf(std::span<const Configuration> configurations, size_t k) {
  std::vector<size_t> order(configurations.size());
  std::iota(order.begin(), order.end(), size_t{0});
  const auto size = [&](size_t c) { return configurations[c].sizes[k]; };
  std::ranges::stable_sort(order, {}, size);
  std::vector<int> levels(order.size());
  double first = size(order.front());
  int level = 0;
  for (const size_t c : order) {
    if (size(c) > kSameSize * first) {
      first = size(c);
      ++level;
    }
    levels[c] = level;
  }
  return levels;
}

int DifferentSizes(std::span<const Configuration> configurations, size_t k) {
  return 1 + std::ranges::max(LevelsOf(configurations, k));
}

std::vector<int> GroupsOf(std::span<const Configuration> configurations) {
  std::vector<std::vector<int>> levels(configurations.size());
  for (size_t k = 0; k < configurations.front().sizes.size(); ++k) {
    const std::vector<int> of_size = LevelsOf(configurations, k);
    for (size_t c = 0; c < levels.size(); ++c) levels[c].push_back(of_size[c]);
  }
  std::map<std::vector<int>, int> numbers;
  std::vector<int> groups;
  for (const std::vector<int>& of_configuration : levels) {
    const int next = static_cast<int>(numbers.size());
    groups.push_back(numbers.emplace(of_configuration, next).first->second);
  }
  return groups;
}

std::string SizesText(std::span<const std::string> names, std::span<const double> sizes) {
  std::string text;
  for (size_t k = 0; k < sizes.size(); ++k) {
    text += Format("%s%s %.6g", k == 0 ? "" : ", ", names[k].c_str(), sizes[k]);
  }
  return text;
}

}  // namespace elastor
