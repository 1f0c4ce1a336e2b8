#ifndef ELASTOR_COLLECTIVE_MPI_LOADER_H_
#define ELASTOR_COLLECTIVE_MPI_LOADER_H_

#include "collective/mpi_part.h"
#include "core/base/status.h"

namespace elastor {

// Returns the variable by which a launcher of MPI told this process that it is one of its ranks;
// null: none did.
const char* LauncherSign();

// Returns this process's rank as its launcher tells it, before MPI_Init does; 0 without one.
int LaunchersRank();

struct LoadedMpi {
  const MpiPart* part;  // for the rest of the process
  const char* name;     // of the library's family: "Open MPI"
};

// Loads the MPI library of the launcher, or one that there is, and the part for its ABI, which lies
// beside the program (mpi_part.h). ELASTOR_MPI in the environment names another. User error: none
// is there.
StatusOr<LoadedMpi> LoadMpi();

}  // namespace elastor

#endif  // ELASTOR_COLLECTIVE_MPI_LOADER_H_
