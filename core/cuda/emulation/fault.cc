#include "core/cuda/emulation/fault.h"

#include <unistd.h>

#include <csignal>
#include <cstddef>
#include <cstdio>

#include "core/cuda/emulation/block.h"
#include "core/cuda/emulation/memory.h"

namespace elastor::cuda::emulation {
namespace {

const char* Describe(int signal, const void* address) {
  // A compiler's trap on x86-64, and on aarch64.
  if (signal == SIGILL || signal == SIGTRAP) {
    return "misaligned access, or an index outside an array";
  }
  switch (PlaceOf(address)) {
    case Place::kBehindEnd:
      return "access outside an allocation";
    case Place::kFreed:
      return "access to freed memory";
    case Place::kClosed:
      return "access of the host to device memory";
    case Place::kUnknown:
      break;
  }
  return "memory fault";
}

void HandleFault(int signal, siginfo_t* info, void*) {
  if (signal == SIGSEGV && OpenTouched(info->si_addr)) return;
  char thread[128], line[320];
  DescribeRunningThread(thread, sizeof(thread));
  const int length = std::snprintf(line, sizeof(line), "emulated device: %s%s%s at %p\n",
                                   Describe(signal, info->si_addr),
                                   thread[0] == '\0' ? "" : " in kernel ", thread, info->si_addr);
  if (write(STDERR_FILENO, line, length) < 0) {
    // Nobody reads; the signal says enough.
  }
  // Back to the instruction, with the default action: it ends the process.
  std::signal(signal, SIG_DFL);
}

}  // namespace

void InstallFaultHandler() {
  // The fault may be a fiber's stack that is full.
  static char stack[64 << 10];
  stack_t alternate = {};
  alternate.ss_sp = stack;
  alternate.ss_size = sizeof(stack);
  sigaltstack(&alternate, nullptr);
  struct sigaction action = {};
  action.sa_sigaction = HandleFault;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  for (const int signal : {SIGSEGV, SIGBUS, SIGILL, SIGTRAP}) sigaction(signal, &action, nullptr);
}

}  // namespace elastor::cuda::emulation
