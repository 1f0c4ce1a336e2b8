#ifndef ELASTOR_COLLECTIVE_MPI_PART_H_
#define ELASTOR_COLLECTIVE_MPI_PART_H_

#include <cstddef>

namespace elastor {

// The calls of MPI that Elastor makes. Libraries differ in their types and constants: each family
// has an ABI. mpi_part.cc is a shared object for each ABI, and a process loads the one that it
// needs (mpi_loader.h). Everything is about MPI_COMM_WORLD. An int without a name is MPI's error, 0
// for none. Requests and statuses are arrays whose elements have the sizes below.
struct MpiPart {
  const char* sources_hash;  // of what the part was compiled from
  const char* abi;           // "openmpi" or "mpich"
  size_t request_bytes;
  size_t status_bytes;

  // Returns name and version of the library, also before MPI_Init.
  const char* (*library)();
  // MPI_Init_thread; errors are returned from then on. Sets *serialized to whether the library
  // promises MPI_THREAD_SERIALIZED.
  int (*init)(bool* serialized);
  void (*finalize)();
  void (*abort)(int code);
  int (*rank)();
  int (*size)();
  int (*highest_tag)();
  const char* (*host)();
  const char* (*error_text)(int error);
  bool (*is_truncation)(int error);

  // Start a message. It uses data and request until it is done.
  int (*send)(const void* data, int bytes, int rank, int tag, void* request);
  int (*receive)(void* data, int bytes, int rank, int tag, void* request);
  // Sets *done to whether all of `count` messages are, which may be none.
  int (*test)(int count, void* requests, bool* done, void* statuses);
  bool (*is_done)(void* request);
  // Returns the own error of a message, after `test` has returned `error`.
  int (*error_of)(int error, const void* status);
  // Returns the length of a message that was received.
  int (*bytes_of)(const void* status);

  // Sets *there to whether a message with this tag has come, and if so its rank and length.
  int (*probe)(int tag, bool* there, int* rank, int* bytes);
  // Receives a message that `probe` has found.
  int (*take)(void* data, int bytes, int rank, int tag);
};

// The symbol of a part's table.
inline constexpr char kMpiPartSymbol[] = "elastor_mpi_part";

}  // namespace elastor

#endif  // ELASTOR_COLLECTIVE_MPI_PART_H_
