#include "trainer/serve/follower.h"

#include <sys/stat.h>

#include <chrono>
#include <ctime>
#include <utility>

#include "core/base/clock.h"
#include "core/base/exhausted.h"
#include "core/base/text.h"
#include "trainer/checkpoint/publication.h"

namespace elastor {
namespace {

// When a publication was written.
std::time_t PublishedAt(const std::string& folder, int64_t number) {
  for (const std::string& name : {PublishedDeltaName(number), PublishedBaseName(number)}) {
    struct stat manifest = {};
    const std::string path = folder + "/" + name + "/manifest.json";
    if (stat(path.c_str(), &manifest) == 0) return manifest.st_mtime;
  }
  return std::time(nullptr);
}

}  // namespace

Follower::Follower(const std::string& folder, double interval_s, Service* service,
                   std::function<void(const std::string&)> report)
    : folder_(folder), interval_s_(interval_s), service_(*service), report_(std::move(report)) {
  thread_ = StartThread(1, 1, "following publications", [this] { Run(); });
}

Follower::~Follower() {
  {
    const std::lock_guard lock(mutex_);
    stops_ = true;
  }
  changed_.notify_all();
  thread_.join();
  elastor_close(model_);
}

void Follower::Run() {
  std::string told;
  std::unique_lock lock(mutex_);
  while (!stops_) {
    lock.unlock();
    const std::string failure = Look();
    if (!failure.empty() && failure != told) report_(failure);
    told = failure;
    lock.lock();
    changed_.wait_for(lock, std::chrono::duration<double>(interval_s_), [this] { return stops_; });
  }
}

std::string Follower::Look() {
  const StatusOr<Published> published = FindPublished(folder_);
  if (!published.ok()) {
    service_.CountFailedUpdate();
    return published.status().message();
  }
  const auto last = static_cast<uint64_t>(published->last());
  if (model_ == nullptr && last == 0) return folder_ + ": no base yet";
  char error[1024] = "";
  const uint64_t before = elastor_version(model_);
  uint64_t version = before;
  const Clock::time_point start = Clock::now();
  int code = ELASTOR_OK;
  if (model_ == nullptr) {
    code = elastor_open(folder_.c_str(), &model_, error, sizeof(error));
    version = elastor_version(model_);
    if (code == ELASTOR_OK) {
      service_.SetModel(model_);
      report_(StrCat(folder_, ": version ", elastor_digest(model_), ", number ", version));
    }
  } else {
    code = elastor_update(model_, folder_.c_str(), &version, error, sizeof(error));
  }
  if (code != ELASTOR_OK) service_.CountFailedUpdate();
  service_.SetFollowed({.number = version,
                        .lag = last > version ? last - version : 0,
                        .written = version > 0 ? PublishedAt(folder_, static_cast<int64_t>(version))
                                               : std::time_t{0}});
  if (version != before) service_.CountUpdates(version - before, SecondsSince(start));
  return code == ELASTOR_OK ? "" : error;
}

}  // namespace elastor
