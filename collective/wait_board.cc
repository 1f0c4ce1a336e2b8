#include "collective/wait_board.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <map>
#include <set>

namespace elastor {
namespace {

std::string DescribeConflict(int a, const Call& call_of_a, int b, const Call& call_of_b) {
  const std::string of_a = DescribeCall(call_of_a);
  const std::string of_b = DescribeCall(call_of_b);
  const std::string line =
      "rank " + std::to_string(a) + " makes " + of_a + ", rank " + std::to_string(b) + " ";
  return line + (of_a == of_b ? "the same, after other calls" : of_b);
}

// "rank 3", "ranks 0-2,4"; ascending.
std::string NameRanks(const std::vector<int>& ranks) {
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  for (size_t i = 0; i < ranks.size(); ++i) {
    const size_t first = i;
    while (i + 1 < ranks.size() && ranks[i + 1] == ranks[i] + 1) ++i;
    if (first > 0) text += ",";
    text += std::to_string(ranks[first]);
    if (i > first) text += "-" + std::to_string(ranks[i]);
  }
  return text;
}

// Ranks of which the same is said.
struct Group {
  std::vector<int> ranks;
  std::set<std::string> hosts;
  double seconds = 0;  // of the longest
};

std::string NameHosts(const std::set<std::string>& hosts) {
  std::string text;
  for (const std::string& host : hosts) text += (text.empty() ? " on " : ", ") + host;
  return text;
}

}  // namespace

void WaitBoard::Add(int rank, const WaitReport& report, Clock::time_point came) {
  Entry& entry = entries_[rank];
  entry.host = std::string(report.host, strnlen(report.host, sizeof report.host));
  if (report.hello) return;
  entry.report = report;
  entry.came = came;
  if (!conflict_.empty()) return;
  for (int other = 0; other < static_cast<int>(entries_.size()); ++other) {
    const WaitReport& theirs = entries_[other].report;
    if (theirs.call.number != report.call.number || theirs.history == report.history) continue;
    const int low = std::min(rank, other);
    const int high = std::max(rank, other);
    conflict_ = DescribeConflict(low, entries_[low].report.call, high, entries_[high].report.call);
    return;
  }
}

bool WaitBoard::HasSpokenSince(int rank, Clock::time_point since) const {
  const Entry& entry = entries_[rank];
  return entry.report.call.number > 0 && entry.came >= since;
}

std::vector<int> WaitBoard::LateSince(Clock::time_point since) const {
  std::vector<int> late;
  for (int rank = 0; rank < static_cast<int>(entries_.size()); ++rank) {
    if (!HasSpokenSince(rank, since) || !entries_[rank].report.waits) late.push_back(rank);
  }
  return late;
}

double WaitBoard::Seconds(const Entry& entry, Clock::time_point now) const {
  return entry.report.seconds + std::chrono::duration<double>(now - entry.came).count();
}

double WaitBoard::LongestWait(Clock::time_point since, Clock::time_point now) const {
  double longest = 0;
  for (int rank = 0; rank < static_cast<int>(entries_.size()); ++rank) {
    if (!HasSpokenSince(rank, since) || !entries_[rank].report.waits) continue;
    longest = std::max(longest, Seconds(entries_[rank], now));
  }
  return longest;
}

std::string WaitBoard::Describe(Clock::time_point since, Clock::time_point now) const {
  std::map<std::string, Group> silent, busy, waiting;  // by what is said of them
  for (int rank = 0; rank < static_cast<int>(entries_.size()); ++rank) {
    const Entry& entry = entries_[rank];
    const WaitReport& report = entry.report;
    const bool spoke = HasSpokenSince(rank, since);
    Group& group =
        !spoke ? silent[entry.heard.number > 0 ? NameCall(entry.heard) : ""]
        : !report.waits
            ? busy[std::string(ActivityName(report.activity)) + "\n" + NameCall(report.call)]
        : report.activity == Activity::kCheckpointPeers ? waiting["for the files of other ranks"]
                                                        : waiting["in " + NameCall(report.call)];
    group.ranks.push_back(rank);
    if (!entry.host.empty()) group.hosts.insert(entry.host);
    if (spoke) group.seconds = std::max(group.seconds, Seconds(entry, now));
  }
  std::string text;
  const auto begin = [&](const Group& group) {
    return (text.empty() ? "" : "; ") + NameRanks(group.ranks);
  };
  for (const auto& [heard, group] : silent) {
    text += begin(group) + NameHosts(group.hosts) + ": no word, " +
            (busy_ranks_speak_ ? "" : "busy, ") + "stopped or cut off";
    if (!heard.empty()) text += ", heard of last in " + heard;
  }
  for (const auto& [what, group] : busy) {
    char seconds[32];
    std::snprintf(seconds, sizeof seconds, " for %.1f s after ", group.seconds);
    const size_t end = what.find('\n');
    text += begin(group) + NameHosts(group.hosts) + ": " + what.substr(0, end) + seconds +
            what.substr(end + 1);
  }
  if (text.empty()) text = "no rank is late, is a link cut?";
  for (const auto& [what, group] : waiting) {
    text += begin(group) + (group.ranks.size() == 1 ? " waits " : " wait ") + what;
  }
  return text;
}

}  // namespace elastor
