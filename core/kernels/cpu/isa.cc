#include "core/kernels/cpu/isa.h"

#include <cstdlib>
#include <string>

#include "core/base/log.h"

namespace elastor {
namespace {

// "v3 or v4".
std::string NamesOfMachine() {
  std::string names;
  for (const Isa isa : IsasOfMachine()) {
    names += (names.empty() ? "" : " or ") + std::string(IsaName(isa));
  }
  return names;
}

}  // namespace

const char* IsaName(Isa isa) {
  switch (isa) {
    case Isa::kV3:
      return "v3";
    case Isa::kV4:
      return "v4";
    case Isa::kNeon:
      return "neon";
  }
  LOG(FATAL) << "unknown instruction set " << static_cast<int>(isa);
}

StatusOr<Isa> ChooseIsa(const char* forced) {
  const std::string name = forced == nullptr ? "" : forced;
  Isa best = IsasOfMachine().front();
  for (const Isa isa : IsasOfMachine()) {
    if (CpuHas(isa)) best = isa;
    if (name != IsaName(isa)) continue;
    if (CpuHas(isa)) return isa;
    return UserError("ELASTOR_ISA=" + name + ": this CPU lacks AVX-512; expected v3");  // v4 alone
  }
  if (name.empty()) return best;
  return UserError("ELASTOR_ISA=" + name + ": expected " + NamesOfMachine());
}

Isa ActiveIsa() {
  static const Isa isa = [] {
    const StatusOr<Isa> chosen = ChooseIsa(std::getenv("ELASTOR_ISA"));
    CHECK(chosen.ok()) << chosen.status().message();
    return chosen.value();
  }();
  return isa;
}

}  // namespace elastor
