#include "collective/mpi_loader.h"

#include <dlfcn.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "collective/communicator.h"
#include "collective/mpi_part_hash.h"

namespace elastor {
namespace {

// Libraries with one ABI.
struct Family {
  std::string_view abi;  // as ELASTOR_MPI and the part tell it
  const char* name;
  const char* part;
  std::vector<const char*> libraries;  // the names of one, where systems differ
};

const std::vector<Family>& Families() {
  static const std::vector<Family> families = {
      // Versions 4 and 5.
      {"openmpi", "Open MPI", "libelastor_openmpi.so", {"libmpi.so.40"}},
      // Intel MPI, MVAPICH and Cray's have its ABI, too. The second name is Debian's.
      {"mpich", "MPICH", "libelastor_mpich.so", {"libmpi.so.12", "libmpich.so.12"}},
  };
  return families;
}

StatusOr<std::vector<const Family*>> Candidates() {
  const Family* const open_mpi = &Families()[0];
  const Family* const mpich = &Families()[1];
  if (const char* const asked = std::getenv("ELASTOR_MPI")) {
    for (const Family& family : Families()) {
      if (family.abi == asked) return std::vector<const Family*>{&family};
    }
    return UserError(std::string("environment: ELASTOR_MPI: expected openmpi or mpich, found '") +
                     asked + "'");
  }
  const char* const sign = LauncherSign();
  const std::string_view launcher = sign == nullptr ? "" : sign;
  if (launcher.starts_with("OMPI_")) return std::vector<const Family*>{open_mpi};
  if (launcher.starts_with("PMI_")) return std::vector<const Family*>{mpich, open_mpi};
  return std::vector<const Family*>{open_mpi, mpich};
}

Status LoadError(const std::string& expected) {
  const std::string text = dlerror();
  const bool missing = text.find(std::strerror(ENOENT)) != text.npos;
  return {missing ? StatusCode::kUser : StatusCode::kMachine, text + "; expected " + expected};
}

Status LoadLibrary(const Family& family) {
  Status first;
  for (const char* const name : family.libraries) {
    // Global, for the part, and for Open MPI's components.
    if (dlopen(name, RTLD_NOW | RTLD_GLOBAL) != nullptr) return OkStatus();
    const Status error =
        LoadError(std::string("the folder of ") + family.name + "'s library in LD_LIBRARY_PATH");
    if (error.code() == StatusCode::kMachine) return error;
    if (first.ok()) first = error;
  }
  return first;
}

StatusOr<LoadedMpi> Load(const Family& family) {
  ELASTOR_RETURN_IF_ERROR(LoadLibrary(family));
  void* const object = dlopen(family.part, RTLD_NOW | RTLD_LOCAL);
  if (object == nullptr)
    return LoadError("it beside this program, as the build or release puts it");
  const auto part = static_cast<const MpiPart*>(dlsym(object, kMpiPartSymbol));
  if (part == nullptr || std::string_view(part->sources_hash) != kMpiPartHash ||
      part->abi != family.abi) {
    return UserError(std::string(family.part) +
                     ": is of another build than this program; expected both from one build");
  }
  return LoadedMpi{part, family.name};
}

}  // namespace

const char* LauncherSign() {
  for (const char* name : {"OMPI_COMM_WORLD_SIZE", "PMIX_RANK", "PMI_RANK", "PMI_SIZE"}) {
    if (std::getenv(name) != nullptr) return name;
  }
  return nullptr;
}

int LaunchersRank() {
  for (const char* name : {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK"}) {
    if (const char* rank = std::getenv(name)) return std::atoi(rank);
  }
  return 0;
}

bool IsStartedByMpi() { return LauncherSign() != nullptr; }

StatusOr<LoadedMpi> LoadMpi() {
  ELASTOR_ASSIGN_OR_RETURN(const std::vector<const Family*> candidates, Candidates());
  Status status;
  for (const Family* const family : candidates) {
    StatusOr<LoadedMpi> loaded = Load(*family);
    if (loaded.ok() || loaded.status().code() == StatusCode::kMachine) return loaded;
    if (status.ok()) status = loaded.status();
  }
  return status;
}

std::string MpiLibrary() {
  const StatusOr<LoadedMpi> mpi = LoadMpi();
  if (!mpi.ok()) return "none (" + mpi.status().message() + ")";
  std::string text = mpi->part->library();
  text.resize(std::min(text.find_first_of(",\n"), text.size()));
  std::replace(text.begin(), text.end(), '\t', ' ');  // MPICH's
  return text;
}

}  // namespace elastor
