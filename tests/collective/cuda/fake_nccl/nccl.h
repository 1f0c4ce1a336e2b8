#ifndef ELASTOR_TESTS_COLLECTIVE_CUDA_FAKE_NCCL_NCCL_H_
#define ELASTOR_TESTS_COLLECTIVE_CUDA_FAKE_NCCL_NCCL_H_

#include <cstddef>

#include "cuda_runtime_api.h"

// NCCL's declarations as far as collective/cuda/nccl.cc uses them, for ranks that are threads of
// one process on the emulation's eager streams: a call has moved its bytes when it returns. Program
// error where NCCL would move something else than meant: unequal lengths, a message to oneself.

struct FakeNcclRank;
using ncclComm_t = FakeNcclRank*;
struct ncclUniqueId {
  char internal[128];
};
enum ncclResult_t {
  ncclSuccess = 0,
  ncclSystemError = 2,
  ncclInternalError = 3,
  ncclRemoteError = 6,
  ncclInProgress = 7,
};
enum ncclDataType_t { ncclInt8, ncclUint64, ncclFloat32 };
enum ncclRedOp_t { ncclSum };

ncclResult_t ncclGetVersion(int* version);
ncclResult_t ncclGetUniqueId(ncclUniqueId* id);
ncclResult_t ncclCommInitRank(ncclComm_t* communicator, int ranks, ncclUniqueId id, int rank);
ncclResult_t ncclCommDestroy(ncclComm_t communicator);
ncclResult_t ncclCommAbort(ncclComm_t communicator);
ncclResult_t ncclCommGetAsyncError(ncclComm_t communicator, ncclResult_t* error);
const char* ncclGetErrorString(ncclResult_t result);
const char* ncclGetLastError(ncclComm_t communicator);
ncclResult_t ncclGroupStart();
ncclResult_t ncclGroupEnd();
ncclResult_t ncclSend(const void* data, size_t count, ncclDataType_t type, int peer,
                      ncclComm_t communicator, cudaStream_t stream);
ncclResult_t ncclRecv(void* data, size_t count, ncclDataType_t type, int peer,
                      ncclComm_t communicator, cudaStream_t stream);
ncclResult_t ncclAllGather(const void* send, void* receive, size_t count, ncclDataType_t type,
                           ncclComm_t communicator, cudaStream_t stream);
ncclResult_t ncclAllReduce(const void* send, void* receive, size_t count, ncclDataType_t type,
                           ncclRedOp_t operation, ncclComm_t communicator, cudaStream_t stream);

// What a test makes of it. Of the whole process.
struct FakeNccl {
  static void Reset();
  // The result that ncclCommGetAsyncError reports, on all ranks.
  static void SetAsynchronousError(ncclResult_t error);
  // What ncclCommInitRank or ncclAllReduce of this rank returns instead of doing anything.
  static void FailStart(int rank, ncclResult_t error);
  static void FailAllReduce(int rank, ncclResult_t error);
  static int aborts();
  static int destroyed();
};

#endif  // ELASTOR_TESTS_COLLECTIVE_CUDA_FAKE_NCCL_NCCL_H_
