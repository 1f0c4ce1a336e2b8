#ifndef ELASTOR_CORE_CUDA_EMULATION_TRAFFIC_H_
#define ELASTOR_CORE_CUDA_EMULATION_TRAFFIC_H_

#include <cstdint>

namespace elastor::cuda::emulation {

// Bytes that the device's calls (kernels, products, copies, fills) move between device memory and
// the multiprocessors if no cache serves two of them: every page that a call reads, once, and every
// page that it writes, once. A page that is written first and read then is written only.
struct Traffic {
  int64_t calls = 0;
  int64_t read_bytes = 0;
  int64_t written_bytes = 0;
};

// Counts traffic from its construction on: device memory is closed before every call, and its pages
// are opened as they are touched. REQUIRES: only one object exists at a time, and other host
// threads do no device work.
class TrafficCount {
 public:
  TrafficCount();
  ~TrafficCount();
  TrafficCount(const TrafficCount&) = delete;
  TrafficCount& operator=(const TrafficCount&) = delete;

  Traffic traffic() const;
};

}  // namespace elastor::cuda::emulation

#endif  // ELASTOR_CORE_CUDA_EMULATION_TRAFFIC_H_
