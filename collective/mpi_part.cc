// The only file that sees MPI, compiled with the mpi.h of each ABI. It is linked with no MPI, which
// the process has loaded before (mpi_loader.cc), and needs nothing of C++'s library.
#include "collective/mpi_part.h"

#include <mpi.h>

#include "collective/mpi_part_hash.h"

namespace elastor {
namespace {

const char* Library() {
  static char text[MPI_MAX_LIBRARY_VERSION_STRING];
  int length = 0;
  MPI_Get_library_version(text, &length);
  return text;
}

int Init(bool* serialized) {
  int provided = MPI_THREAD_SINGLE;
  const int error = MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &provided);
  *serialized = provided >= MPI_THREAD_SERIALIZED;
  if (error == MPI_SUCCESS) MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  return error;
}

void Finalize() { MPI_Finalize(); }
void Abort(int code) { MPI_Abort(MPI_COMM_WORLD, code); }

int Rank() {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  return rank;
}

int Size() {
  int size = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  return size;
}

int HighestTag() {
  constexpr int kLeast = 32767;  // that MPI promises
  const int* highest = nullptr;
  int known = 0;
  MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &highest, &known);
  return known ? *highest : kLeast;
}

const char* Host() {
  static char text[MPI_MAX_PROCESSOR_NAME];
  int length = 0;
  MPI_Get_processor_name(text, &length);
  return text;
}

const char* ErrorText(int error) {
  static char text[MPI_MAX_ERROR_STRING];
  int length = 0;
  MPI_Error_string(error, text, &length);
  return text;
}

bool IsTruncation(int error) {
  int error_class = error;
  MPI_Error_class(error, &error_class);
  return error_class == MPI_ERR_TRUNCATE;
}

MPI_Request* Fresh(void* request) {
  auto* const fresh = static_cast<MPI_Request*>(request);
  *fresh = MPI_REQUEST_NULL;
  return fresh;
}

int Send(const void* data, int bytes, int rank, int tag, void* request) {
  return MPI_Isend(data, bytes, MPI_BYTE, rank, tag, MPI_COMM_WORLD, Fresh(request));
}

int Receive(void* data, int bytes, int rank, int tag, void* request) {
  return MPI_Irecv(data, bytes, MPI_BYTE, rank, tag, MPI_COMM_WORLD, Fresh(request));
}

int Test(int count, void* requests, bool* done, void* statuses) {
  int flag = 0;
  const int error = MPI_Testall(count, static_cast<MPI_Request*>(requests), &flag,
                                static_cast<MPI_Status*>(statuses));
  *done = flag != 0;
  return error;
}

bool IsDone(void* request) {
  int done = 0;
  MPI_Request_get_status(*static_cast<MPI_Request*>(request), &done, MPI_STATUS_IGNORE);
  return done != 0;
}

int ErrorOf(int error, const void* status) {
  const int own = static_cast<const MPI_Status*>(status)->MPI_ERROR;
  return error != MPI_ERR_IN_STATUS || own == MPI_ERR_PENDING ? MPI_SUCCESS : own;
}

int BytesOf(const void* status) {
  int bytes = 0;
  MPI_Get_count(static_cast<const MPI_Status*>(status), MPI_BYTE, &bytes);
  return bytes;
}

int Probe(int tag, bool* there, int* rank, int* bytes) {
  int flag = 0;
  MPI_Status status;
  const int error = MPI_Iprobe(MPI_ANY_SOURCE, tag, MPI_COMM_WORLD, &flag, &status);
  *there = error == MPI_SUCCESS && flag != 0;
  if (*there) {
    *rank = status.MPI_SOURCE;
    *bytes = BytesOf(&status);
  }
  return error;
}

int Take(void* data, int bytes, int rank, int tag) {
  return MPI_Recv(data, bytes, MPI_BYTE, rank, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

}  // namespace
}  // namespace elastor

extern "C" const elastor::MpiPart elastor_mpi_part;
const elastor::MpiPart elastor_mpi_part = {
    .sources_hash = kMpiPartHash,
    .abi = ELASTOR_MPI_ABI,
    .request_bytes = sizeof(MPI_Request),
    .status_bytes = sizeof(MPI_Status),
    .library = elastor::Library,
    .init = elastor::Init,
    .finalize = elastor::Finalize,
    .abort = elastor::Abort,
    .rank = elastor::Rank,
    .size = elastor::Size,
    .highest_tag = elastor::HighestTag,
    .host = elastor::Host,
    .error_text = elastor::ErrorText,
    .is_truncation = elastor::IsTruncation,
    .send = elastor::Send,
    .receive = elastor::Receive,
    .test = elastor::Test,
    .is_done = elastor::IsDone,
    .error_of = elastor::ErrorOf,
    .bytes_of = elastor::BytesOf,
    .probe = elastor::Probe,
    .take = elastor::Take,
};
