#include "trainer/supervise/hosts.h"

#include <netdb.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <set>
#include <sstream>

#include "core/base/file.h"
#include "core/base/text.h"

namespace elastor {
namespace {

constexpr int64_t kMostRanks = 1'000'000;  // of all hosts: the sum is an int

StatusOr<int> ParseRanks(const std::string& where, const std::string& text) {
  int ranks = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), ranks);
  if (error == std::errc() && end == text.data() + text.size() && ranks >= 1) return ranks;
  return UserError(where + ": '" + text + "' ranks; expected a number of at least 1");
}

StatusOr<std::vector<Host>> Checked(const std::string& where, std::vector<Host> hosts,
                                    const HostLookup& why_unknown) {
  std::set<std::string> names;
  int64_t ranks = 0;
  for (const Host& host : hosts) {
    ranks += host.ranks;
    if (ranks > kMostRanks) {
      return UserError(StrCat(where, ": more than ", kMostRanks, " ranks"));
    }
    if (host.name.empty()) return UserError(where + ": an empty name; expected a host");
    if (!names.insert(host.name).second)
      return UserError(where + ": " + host.name + " is there twice");
    if (const std::string why = why_unknown(host.name); !why.empty()) {
      return UserError(where + ": " + host.name + ": " + why + "; expected a host's name");
    }
  }
  if (hosts.empty()) return UserError(where + ": names no host; expected one at least");
  return hosts;
}

}  // namespace

std::string LookUpHost(const std::string& name) {
  addrinfo* found = nullptr;
  const int error = getaddrinfo(name.c_str(), nullptr, nullptr, &found);
  if (found != nullptr) freeaddrinfo(found);
  return error == 0 ? "" : gai_strerror(error);
}

StatusOr<std::vector<Host>> ParseHosts(const std::string& text, const HostLookup& why_unknown) {
  const std::string where = "--hosts=" + text;
  std::vector<Host> hosts;
  std::istringstream entries(text);
  for (std::string entry; std::getline(entries, entry, ',');) {
    const size_t colon = entry.rfind(':');
    Host host = {.name = entry.substr(0, colon), .ranks = 1};
    if (colon != entry.npos) {
      ELASTOR_ASSIGN_OR_RETURN(host.ranks, ParseRanks(where, entry.substr(colon + 1)));
    }
    hosts.push_back(host);
  }
  return Checked(where, std::move(hosts), why_unknown);
}

StatusOr<std::vector<Host>> ReadHostfile(const std::string& path, const HostLookup& why_unknown) {
  const std::string where = "--hostfile=" + path;
  StatusOr<std::string> text = ReadFile(path);
  if (!text.ok()) return Status(text.status().code(), "--hostfile: " + text.status().message());
  std::vector<Host> hosts;
  std::istringstream lines(*text);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line.substr(0, line.find('#')));
    Host host = {.name = "", .ranks = 1};
    if (!(words >> host.name)) continue;
    constexpr char kSlots[] = "slots=";
    for (std::string word; words >> word;) {
      if (!word.starts_with(kSlots)) {
        return UserError(where + ": '" + word + "'; expected HOST slots=N");
      }
      ELASTOR_ASSIGN_OR_RETURN(host.ranks, ParseRanks(where, word.substr(sizeof kSlots - 1)));
    }
    hosts.push_back(host);
  }
  return Checked(where, std::move(hosts), why_unknown);
}

std::vector<Host> Fill(const std::vector<Host>& hosts, int ranks) {
  std::vector<Host> filled;
  for (const Host& host : hosts) {
    if (ranks == 0) break;
    filled.push_back({host.name, std::min(host.ranks, ranks)});
    ranks -= filled.back().ranks;
  }
  return filled;
}

int RanksOf(const std::vector<Host>& hosts) {
  int ranks = 0;
  for (const Host& host : hosts) ranks += host.ranks;
  return ranks;
}

std::string ToText(const std::vector<Host>& hosts) {
  std::string text;
  for (const Host& host : hosts) {
    text += StrCat(text.empty() ? "" : ",", host.name, ":", host.ranks);
  }
  return text;
}

}  // namespace elastor
