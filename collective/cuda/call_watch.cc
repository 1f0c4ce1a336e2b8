#include "collective/cuda/call_watch.h"

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include "core/base/exhausted.h"
#include "core/base/log.h"

namespace elastor::cuda {
namespace {

constexpr auto kWatchInterval = std::chrono::milliseconds(50);

std::string Seconds(double seconds) {
  char text[32];
  std::snprintf(text, sizeof text, "%g s", seconds);
  return text;
}

}  // namespace

CallWatch::CallWatch(Options options) : options_(std::move(options)) {
  thread_ = StartThread(1, 1, "the deadline of device calls (parallel.deadline_seconds)",
                        [this] { Watch(); });
}

CallWatch::~CallWatch() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  stop_changed_.notify_one();
  thread_.join();
}

Status CallWatch::Begin(const DeviceCall& call, Stream* stream) {
  const std::lock_guard lock(mutex_);
  if (!failure_.empty()) return MachineError(failure_);
  Collect();
  std::unique_ptr<Entry> entry;
  if (free_.empty()) {
    entry = std::make_unique<Entry>();
  } else {
    entry = std::move(free_.back());
    free_.pop_back();
  }
  entry->call = call;
  entry->begun = Clock::now();
  entry->of_host = stream == nullptr;
  entry->ended = false;
  if (stream != nullptr) entry->first.Record(*stream);
  entries_.push_back(std::move(entry));
  return OkStatus();
}

void CallWatch::End(Stream* stream) {
  const std::lock_guard lock(mutex_);
  Entry& entry = *entries_.back();
  CHECK(!entry.ended);
  if (stream != nullptr) entry.last.Record(*stream);
  entry.ended = true;
}

void CallWatch::Fail(const std::string& error) {
  const std::lock_guard lock(mutex_);
  SetFailure(Describe(entries_.back()->call) + " failed: " + error);
}

void CallWatch::FailWaiting(const char* what) {
  const std::lock_guard lock(mutex_);
  SetFailure("rank " + std::to_string(options_.rank) + ": " + what + " did not complete within " +
             Seconds(options_.deadline_seconds));
}

Status CallWatch::failure() {
  const std::lock_guard lock(mutex_);
  return failure_.empty() ? OkStatus() : MachineError(failure_);
}

PhaseRecord CallWatch::record(Phase phase, Work work) {
  const std::lock_guard lock(mutex_);
  Collect();
  return records_[static_cast<size_t>(work)][static_cast<size_t>(phase)];
}

void CallWatch::Collect() {
  while (!entries_.empty() && Done(*entries_.front())) {
    const Entry& entry = *entries_.front();
    const DeviceCall& call = entry.call;
    const double seconds = entry.of_host ? 0 : entry.last.MillisecondsSince(entry.first) / 1000;
    records_[static_cast<size_t>(call.work)][static_cast<size_t>(call.phase)] +=
        {1, call.messages_sent, call.bytes_sent, call.bytes_received, seconds};
    free_.push_back(std::move(entries_.front()));
    entries_.pop_front();
  }
}

bool CallWatch::Done(const Entry& entry) const {
  return entry.ended && (entry.of_host || entry.last.Done());
}

void CallWatch::SetFailure(std::string line) {
  if (!failure_.empty()) return;
  for (char& c : line) {
    if (c == '\n') c = ' ';
  }
  failure_ = std::move(line);
  failed_ = Clock::now();
}

std::string CallWatch::Describe(const DeviceCall& call) const {
  return "rank " + std::to_string(options_.rank) + ": " + call.name + " (" + PhaseName(call.phase) +
         ", " + std::to_string(call.bytes_sent + call.bytes_received) + " bytes)";
}

void CallWatch::Watch() {
  std::unique_lock lock(mutex_);
  while (!stop_changed_.wait_for(lock, kWatchInterval, [this] { return stopping_; })) {
    if (!failure_.empty()) {
      if (SecondsSince(failed_) < options_.seconds_to_end) continue;
      std::fprintf(stderr, "elastor: %s\n", failure_.c_str());
      std::_Exit(static_cast<int>(StatusCode::kMachine));
    }
    if (const std::string error = options_.error(); !error.empty()) {
      SetFailure((entries_.empty() ? "rank " + std::to_string(options_.rank)
                                   : Describe(entries_.front()->call)) +
                 " failed: " + error);
      continue;
    }
    // The oldest that is not done: done ones are left to Collect, whose thread knows the streams.
    for (const std::unique_ptr<Entry>& entry : entries_) {
      if (Done(*entry)) continue;
      if (SecondsSince(entry->begun) > options_.deadline_seconds) {
        SetFailure(Describe(entry->call) + " did not complete within " +
                   Seconds(options_.deadline_seconds));
      }
      break;
    }
  }
}

}  // namespace elastor::cuda
