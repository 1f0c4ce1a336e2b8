// main() of tests of bits: all of them with the kernels of every instruction set that the CPU has.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "core/kernels/cpu/isa.h"

int main(int argc, char** argv) {
  using namespace elastor;
  if (IsasOfMachine().size() == 1) setenv("ELASTOR_ISA", IsaName(IsasOfMachine()[0]), 1);
  if (std::getenv("ELASTOR_ISA") != nullptr) {
    testing::InitGoogleTest(&argc, argv);
    return RUN_ALL_TESTS();
  }
  bool passed = true;
  for (const Isa isa : IsasOfMachine()) {
    if (!CpuHas(isa)) {
      std::printf("SKIPPED: the kernels of %s, which this CPU lacks\n", IsaName(isa));
      continue;
    }
    std::fflush(stdout);
    const pid_t child = fork();
    if (child == 0) {
      setenv("ELASTOR_ISA", IsaName(isa), 1);
      execv("/proc/self/exe", argv);
      std::perror("execv");
      _exit(1);
    }
    int status = 1;
    if (child < 0 || waitpid(child, &status, 0) != child) status = 1;
    std::printf("the kernels of %s: %s\n", IsaName(isa), status == 0 ? "ok" : "FAILED");
    passed &= status == 0;
  }
  return passed ? 0 : 1;
}
