#ifndef ELASTOR_COLLECTIVE_BROADCAST_TREE_H_
#define ELASTOR_COLLECTIVE_BROADCAST_TREE_H_

#include <vector>

namespace elastor {

// A rank's place in the binomial tree of a broadcast. With p = (rank - root) mod size, the parent
// is p without its lowest set bit, and the children are p + 2^i for every 2^i below that bit
// (any 2^i for the root), the largest subtree first. ceil(log2(size)) steps from root to last leaf.
struct BroadcastPlace {
  int parent = -1;  // rank; -1 for the root
  std::vector<int> children;
};

inline BroadcastPlace PlaceInBroadcast(int rank, int root, int size) {
  BroadcastPlace place;
  const int position = (rank - root + size) % size;
  int bit = 1;
  while (bit < size && (position & bit) == 0) bit *= 2;
  if (position != 0) place.parent = (position - bit + root) % size;
  for (bit /= 2; bit > 0; bit /= 2) {
    if (position + bit < size) place.children.push_back((position + bit + root) % size);
  }
  return place;
}

}  // namespace elastor

#endif  // ELASTOR_COLLECTIVE_BROADCAST_TREE_H_
