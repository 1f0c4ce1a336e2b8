#include "core/cuda/emulation/traffic.h"

#include <csignal>

#include "core/base/log.h"
#include "core/cuda/emulation/memory.h"
#include "core/cuda/emulation/page_fault.h"
#include "core/cuda/emulation/schedule.h"
#include "core/cuda/emulation/streams.h"

namespace elastor::cuda::emulation {
namespace {

Traffic counted;
struct sigaction before = {};

void CloseMemory() {
  ++counted.calls;
  OpenDeviceMemory(false);
}

void OpenTouchedPage(int signal, siginfo_t* info, void* context) {
  if (OpenTouched(info->si_addr)) return;  // by work before its first call
  const bool write = IsWrite(context);
  if (!OpenPage(info->si_addr, write)) {  // a fault as any other
    sigaction(signal, &before, nullptr);
    return;
  }
  (write ? counted.written_bytes : counted.read_bytes) += static_cast<int64_t>(PageBytes());
}

}  // namespace

TrafficCount::TrafficCount() {
  CHECK(before_call == nullptr) << "traffic is counted already";
  counted = {};
  struct sigaction action = {};
  action.sa_sigaction = OpenTouchedPage;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  sigaction(SIGSEGV, &action, &before);
  before_call = CloseMemory;
}

TrafficCount::~TrafficCount() {
  before_call = nullptr;
  sigaction(SIGSEGV, &before, nullptr);
  OpenDeviceMemory(!CurrentSchedule().guard_device_memory);
}

Traffic TrafficCount::traffic() const { return counted; }

}  // namespace elastor::cuda::emulation
