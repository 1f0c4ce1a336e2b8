// A cable between two hosts, network namespaces (virtual_hosts.sh), that delays what goes over it,
// for kernels without netem:
//
//   delayed_cable PARENT NAMESPACE NAMESPACE INTERFACE LEAST MOST
//
// joins the TAP interfaces of that name in the two namespaces. Until SIGUSR1 comes frames pass at
// once; from then on, until it comes again, each arrives LEAST to MOST milliseconds later, in the
// order in which they were sent. Ends with its parent, the process PARENT.
#include <fcntl.h>
#include <linux/if.h>
#include <linux/if_tun.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <random>
#include <string>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t kMostFrame = 1 << 16;
constexpr int kFramesAtOnce = 64;  // of one direction before the other one's turn

volatile sig_atomic_t delays = 0;

void Check(bool good, const std::string& what) {
  if (good) return;
  std::perror(("delayed_cable: " + what).c_str());
  std::exit(1);
}

int OpenInterface(const std::string& space, const char* interface) {
  const int name = open(("/run/netns/" + space).c_str(), O_RDONLY | O_CLOEXEC);
  Check(name >= 0 && setns(name, CLONE_NEWNET) == 0, space);
  close(name);
  const int tap = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
  ifreq request = {};
  std::strncpy(request.ifr_name, interface, IFNAMSIZ - 1);
  request.ifr_flags = IFF_TAP | IFF_NO_PI;
  Check(tap >= 0 && ioctl(tap, TUNSETIFF, &request) == 0, interface);
  return tap;
}

// One way.
class Lane {
 public:
  Lane(int from, int to) : from_(from), to_(to) {}

  // Takes in what has come; delay() is a frame's.
  template <typename Delay>
  void Take(Delay delay) {
    for (int i = 0; i < kFramesAtOnce; ++i) {
      static char bytes[kMostFrame];
      const ssize_t count = read(from_, bytes, sizeof bytes);
      if (count <= 0) return;
      const auto due = Clock::now() + delay();
      frames_.push_back({frames_.empty() ? due : std::max(due, frames_.back().due),
                         std::vector<char>(bytes, bytes + count)});
    }
  }
  // Lets go what is due. An interface that is down loses it, as a cable would.
  void Give() {
    for (; !frames_.empty() && frames_.front().due <= Clock::now(); frames_.pop_front()) {
      (void)!write(to_, frames_.front().bytes.data(), frames_.front().bytes.size());
    }
  }
  Clock::time_point due() const {
    return frames_.empty() ? Clock::time_point::max() : frames_.front().due;
  }

 private:
  struct Frame {
    Clock::time_point due;
    std::vector<char> bytes;
  };
  const int from_, to_;
  std::deque<Frame> frames_;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 7) {
    std::fprintf(stderr, "delayed_cable PARENT NAMESPACE NAMESPACE INTERFACE LEAST MOST\n");
    return 2;
  }
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != std::atoi(argv[1])) return 0;  // gone already
  signal(SIGUSR1, [](int) { delays = 1 - delays; });
  const int ends[] = {OpenInterface(argv[2], argv[4]), OpenInterface(argv[3], argv[4])};
  // In time, although ranks keep every processor busy.
  const sched_param first = {.sched_priority = 1};
  sched_setscheduler(0, SCHED_FIFO, &first);
  std::mt19937_64 random(1);
  std::uniform_int_distribution<int64_t> microseconds(1000 * std::atoll(argv[5]),
                                                      1000 * std::atoll(argv[6]));
  const auto delay = [&] {
    return std::chrono::microseconds(delays == 0 ? 0 : microseconds(random));
  };
  Lane lanes[] = {{ends[0], ends[1]}, {ends[1], ends[0]}};
  while (true) {
    pollfd waits[] = {{ends[0], POLLIN, 0}, {ends[1], POLLIN, 0}};
    const auto due = std::min(lanes[0].due(), lanes[1].due());
    const auto left = std::max(due - Clock::now(), Clock::duration(0));
    const auto ns = std::chrono::duration_cast<std::chrono::nanoseconds>(left).count();
    const timespec wait = {.tv_sec = ns / 1'000'000'000, .tv_nsec = ns % 1'000'000'000};
    ppoll(waits, 2, due == Clock::time_point::max() ? nullptr : &wait, nullptr);
    for (Lane& lane : lanes) lane.Take(delay);
    for (Lane& lane : lanes) lane.Give();
  }
}
