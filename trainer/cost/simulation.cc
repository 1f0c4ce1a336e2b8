// Units of a host are shared equally by whatever computes there: with more demand than units, all
// of it slows down alike. So a host needs one clock, which counts the seconds of work that each
// thread has got, and a thread's work ends at a known time of that clock.
//
// A call is complete on a rank when its own messages have left and those of all ranks have come. A
// message is one latency and its bytes behind the later of sender and receiver. What a rank sends
// to its host, and to other hosts, shares a link each, and so does what a host sends. No rank
// leaves a call before all have entered it. Messages within a host are copies that its units make,
// so ranks beyond the units wait for one another.
#include "trainer/cost/simulation.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <queue>
#include <utility>

#include "configs/proto/machine.pb.h"
#include "core/base/log.h"

namespace elastor {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

// Ranks that wait for longer sleep, an eighth of the time waited and at most the longest nap, so
// they notice a message half of that late (mpi_communicator.cc).
constexpr double kYieldSeconds = 1e-3;
constexpr double kLongestNapSeconds = 200e-6;

class Simulation {
 public:
  Simulation(const Machine& machine, const SimJob& job)
      : machine_(machine), job_(job), hosts_((job.ranks - 1) / job.ranks_per_host + 1) {
    result_.marks.assign(job.ranks, std::vector<double>(job.marks, 0));
    const size_t calls = job.calls.size() * job.repeats;
    result_.entered.assign(calls, std::vector<double>(job.ranks, -1));
    result_.left = result_.entered;
    arrived_.assign(calls, 0);
    threads_of_call_.assign(calls, {});
    signals_.assign(job.ranks, std::vector<int>(job.signals, 0));
    waiting_.assign(job.ranks, {});
    next_task_.assign(job.threads.size(), 0);
  }

  SimResult Run() {
    for (int t = 0; t < static_cast<int>(job_.threads.size()); ++t) Continue(t);
    while (true) {
      // The next event: a call that is complete, or the work of a host that ends first.
      const double call_at = done_.empty() ? kNever : done_.top().first;
      int host = -1;
      double work_at = kNever;
      while (!host_events_.empty()) {
        const HostEvent& event = host_events_.top();
        if (event.version == hosts_[event.host].version) {
          host = event.host;
          work_at = event.at;
          break;
        }
        host_events_.pop();
      }
      if (done_.empty() && host < 0) break;
      if (!(std::min(call_at, work_at) <= kLongestJobSeconds)) {
        result_.endless = true;
        return std::move(result_);
      }
      if (call_at <= work_at) {
        now_ = call_at;
        const int thread = done_.top().second;
        done_.pop();
        Continue(thread);
      } else {
        now_ = work_at;
        host_events_.pop();
        EndWork(host);
      }
    }
    for (size_t t = 0; t < job_.threads.size(); ++t) {
      CHECK_EQ(next_task_[t], job_.threads[t].tasks.size()) << "thread " << t << " waits for ever";
    }
    return std::move(result_);
  }

 private:
  struct Host {
    double clock = 0;    // seconds of work that each computing thread has got
    double updated = 0;  // when that was so
    int demand = 0;      // units that are asked for
    int version = 0;     // of its next event
    std::priority_queue<std::pair<double, int>, std::vector<std::pair<double, int>>, std::greater<>>
        ends;  // clock at which a thread's work ends, and the thread
  };
  struct HostEvent {
    double at;
    int host;
    int version;
    bool operator>(const HostEvent& other) const {
      return std::pair(at, host) > std::pair(other.at, other.host);
    }
  };

  const SimCall& CallAt(int index) const { return job_.calls[index % job_.calls.size()]; }
  int HostOf(int rank) const { return rank / job_.ranks_per_host; }

  // Seconds of work that a thread gets in a second.
  double RateOf(const Host& host) const {
    const double units = machine_.units_per_host();
    const double busy = units > 1 ? std::clamp((host.demand - 1) / (units - 1), 0.0, 1.0) : 0;
    const double slowdown = machine_.busy_slowdown() > 1 ? machine_.busy_slowdown() : 1;
    const double rate = std::min(1.0, units / std::max(host.demand, 1));
    return rate / (1 + (slowdown - 1) * busy);
  }

  void Advance(Host* host) {
    host->clock += (now_ - host->updated) * RateOf(*host);
    host->updated = now_;
  }

  void Schedule(int h) {
    Host& host = hosts_[h];
    ++host.version;
    if (host.ends.empty()) return;
    const double left = std::max(0.0, host.ends.top().first - host.clock);
    host_events_.push({now_ + left / RateOf(host), h, host.version});
  }

  void BeginWork(int thread, const SimTask& task) {
    const int h = HostOf(job_.threads[thread].rank);
    Host& host = hosts_[h];
    Advance(&host);
    host.ends.emplace(host.clock + task.seconds, thread);
    host.demand += task.width;
    Schedule(h);
  }

  // Ends the work that is first on a host.
  void EndWork(int h) {
    Host& host = hosts_[h];
    Advance(&host);
    const int thread = host.ends.top().second;
    host.clock = std::max(host.clock, host.ends.top().first);
    host.ends.pop();
    host.demand -= job_.threads[thread].tasks[next_task_[thread] - 1].width;
    Schedule(h);
    Continue(thread);
  }

  // Does a thread's tasks until one takes time.
  void Continue(int thread) {
    const SimThread& of = job_.threads[thread];
    while (next_task_[thread] < of.tasks.size()) {
      const SimTask& task = of.tasks[next_task_[thread]];
      if (task.kind == SimTask::kWait && signals_[of.rank][task.index] < task.count) {
        waiting_[of.rank].push_back(thread);
        return;
      }
      ++next_task_[thread];
      switch (task.kind) {
        case SimTask::kWork:
          if (task.seconds <= 0) break;
          return BeginWork(thread, task);
        case SimTask::kCall:
          return Enter(task.index, thread);
        case SimTask::kPost:
          ++signals_[of.rank][task.index];
          Wake(of.rank);
          break;
        case SimTask::kMark:
          result_.marks[of.rank][task.index] = now_;
          break;
        case SimTask::kWait:
          break;
      }
    }
  }

  void Wake(int rank) {
    std::vector<int> threads;
    threads.swap(waiting_[rank]);
    for (const int thread : threads) Continue(thread);
  }

  void Enter(int c, int thread) {
    const int rank = job_.threads[thread].rank;
    result_.entered[c][rank] = now_;
    threads_of_call_[c].push_back(thread);
    if (++arrived_[c] < job_.ranks) return;
    std::vector<double>& left = result_.left[c];
    left = CallAt(c).send.empty() ? AllReduce(c) : Exchange(c);
    for (const int t : threads_of_call_[c]) {
      const int r = job_.threads[t].rank;
      const double waited = left[r] - result_.entered[c][r];
      if (waited > kYieldSeconds && !machine_.gpus()) {
        left[r] += std::min(waited / 8, kLongestNapSeconds) / 2;
      }
      left[r] = std::max(left[r], now_);
      done_.emplace(left[r], t);
    }
  }

  const Link& LinkOf(int a, int b) const {
    return HostOf(a) == HostOf(b) ? machine_.same_host() : machine_.other_host();
  }

  // How many ranks share a unit where all of a host's are in a call. A GPU is its rank's alone.
  double TurnsOnHost() const {
    if (machine_.gpus()) return 1;
    return std::max(1.0, static_cast<double>(job_.ranks_per_host) / machine_.units_per_host());
  }

  // The pairs of Mpi (mpi_communicator.cc): recursive doubling among the ranks below the largest
  // power of two; each rank beyond it gives its values to one of them first, and has the result
  // last.
  std::vector<double> AllReduce(int c) const {
    std::vector<double> at = result_.entered[c];
    const double turns = TurnsOnHost();
    const int power = static_cast<int>(std::bit_floor(static_cast<unsigned>(job_.ranks)));
    const auto arrival = [&](int from, int to) {
      const Link& link = LinkOf(from, to);
      return std::max(at[from], at[to]) +
             turns * (link.latency_s() + link.message_s() +
                      static_cast<double>(CallAt(c).bytes) / link.bytes_per_s());
    };
    for (int r = power; r < job_.ranks; ++r) at[r - power] = arrival(r, r - power);
    for (int bit = 1; bit < power; bit *= 2) {
      std::vector<double> next = at;
      for (int r = 0; r < power; ++r) next[r] = arrival(r ^ bit, r);
      at.swap(next);
    }
    for (int r = power; r < job_.ranks; ++r) at[r] = arrival(r - power, r);
    return at;
  }

  // Seconds that one rank is busy with messages of a direction.
  struct Load {
    double on_host = 0, between_hosts = 0;
    double host_bytes = 0;  // to or from other hosts

    double seconds() const { return std::max(on_host, between_hosts); }
  };

  std::vector<double> Exchange(int c) const {
    const std::vector<double>& entered = result_.entered[c];
    const int n = job_.ranks;
    std::vector<Load> out(n), in(n);
    std::vector<double> left(entered), first(n, kNever);
    for (int from = 0; from < n; ++from) {
      CallAt(c).send[from].ForEach([&](int to, int64_t bytes) {
        if (from == to) return;
        const bool on_host = HostOf(from) == HostOf(to);
        const Link& link = LinkOf(from, to);
        const double transfer = static_cast<double>(bytes) / link.bytes_per_s();
        left[to] = std::max(left[to], entered[from] + link.latency_s() + transfer);
        first[to] = std::min(first[to], entered[from] + link.latency_s());
        for (Load* load : {&out[from], &in[to]}) {
          (on_host ? load->on_host : load->between_hosts) += link.message_s() + transfer;
          if (!on_host) load->host_bytes += static_cast<double>(bytes);
        }
      });
    }
    const double host_rate = machine_.other_host().host_bytes_per_s();
    for (int begin = 0; begin < n; begin += job_.ranks_per_host) {
      const int end = std::min(n, begin + job_.ranks_per_host);
      double out_bytes = 0, in_bytes = 0, out_from = kNever, in_from = kNever;
      double copies = 0, copies_from = kNever;  // seconds of one unit
      for (int r = begin; r < end; ++r) {
        out_bytes += out[r].host_bytes;
        in_bytes += in[r].host_bytes;
        if (out[r].host_bytes > 0) out_from = std::min(out_from, entered[r]);
        if (in[r].host_bytes > 0) in_from = std::min(in_from, first[r]);
        copies += (out[r].on_host + in[r].on_host) / 2;
        copies_from = std::min(copies_from, entered[r]);
      }
      const double copied =
          machine_.gpus() ? 0 : copies_from + copies / std::max(1, machine_.units_per_host());
      for (int r = begin; r < end; ++r) {
        left[r] = std::max({left[r], copied, entered[r] + out[r].seconds()});
        if (in[r].seconds() > 0) {
          left[r] = std::max(left[r], std::max(entered[r], first[r]) + in[r].seconds());
        }
        if (host_rate <= 0) continue;
        if (out[r].host_bytes > 0) left[r] = std::max(left[r], out_from + out_bytes / host_rate);
        if (in[r].host_bytes > 0) left[r] = std::max(left[r], in_from + in_bytes / host_rate);
      }
    }
    return left;
  }

  const Machine& machine_;
  const SimJob& job_;
  SimResult result_;
  double now_ = 0;
  std::vector<Host> hosts_;
  std::priority_queue<HostEvent, std::vector<HostEvent>, std::greater<>> host_events_;
  // Calls that are complete on a rank: when, and the thread that made it.
  std::priority_queue<std::pair<double, int>, std::vector<std::pair<double, int>>, std::greater<>>
      done_;
  std::vector<int> arrived_;                       // by call
  std::vector<std::vector<int>> threads_of_call_;  // by call
  std::vector<std::vector<int>> signals_;          // by rank
  std::vector<std::vector<int>> waiting_;          // by rank, threads that wait for a signal
  std::vector<size_t> next_task_;                  // by thread
};

}  // namespace

SimBlocks::SimBlocks(std::span<const int64_t> bytes) {
  for (size_t i = 0; i < bytes.size(); ++i) {
    if (i == 0 || bytes[i] != bytes[i - 1]) {
      ends_.push_back(0);
      bytes_.push_back(bytes[i]);
    }
    ends_.back() = static_cast<int32_t>(i + 1);
  }
}

SimResult Simulate(const Machine& machine, const SimJob& job) {
  return Simulation(machine, job).Run();
}

}  // namespace elastor
