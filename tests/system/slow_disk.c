// Preloaded into ranks: a disk that does not answer one of them while a file exists. Data sets are
// mapped, so what stands for a read is the hash of a block, by which the reader's thread touches
// its bytes first.
//   SLOW_RANK          the rank
//   SLOW_READ, SLOW_SYNC   the files
// And a disk on which, for all ranks, something never comes:
//   SLOW_RENAME   the end of the name that a folder would get
//   SLOW_REMOVE   the name of a file within a folder that would be removed
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void WaitWhileThereIs(const char* variable) {
  const char* const slow = getenv("SLOW_RANK");
  const char* const rank = getenv("OMPI_COMM_WORLD_RANK");
  const char* const file = getenv(variable);
  if (slow == NULL || rank == NULL || file == NULL || strcmp(slow, rank) != 0) return;
  while (access(file, F_OK) == 0) usleep(10000);
}

uint64_t XXH3_64bits(const void* data, size_t bytes) {
  static uint64_t (*hash)(const void*, size_t);
  if (hash == NULL) hash = (uint64_t(*)(const void*, size_t))dlsym(RTLD_NEXT, "XXH3_64bits");
  if (gettid() != getpid()) WaitWhileThereIs("SLOW_READ");
  return hash(data, bytes);
}

int fsync(int file) {
  static int (*sync)(int);
  if (sync == NULL) sync = (int (*)(int))dlsym(RTLD_NEXT, "fsync");
  WaitWhileThereIs("SLOW_SYNC");
  return sync(file);
}

int rename(const char* from, const char* to) {
  static int (*name)(const char*, const char*);
  if (name == NULL) name = (int (*)(const char*, const char*))dlsym(RTLD_NEXT, "rename");
  const char* const held = getenv("SLOW_RENAME");
  const size_t size = held == NULL ? 0 : strlen(held);
  while (size > 0 && strlen(to) >= size && strcmp(to + strlen(to) - size, held) == 0) usleep(10000);
  return name(from, to);
}

int unlinkat(int folder, const char* name, int flags) {
  static int (*remove_at)(int, const char*, int);
  if (remove_at == NULL) remove_at = (int (*)(int, const char*, int))dlsym(RTLD_NEXT, "unlinkat");
  const char* const held = getenv("SLOW_REMOVE");
  while (held != NULL && strcmp(name, held) == 0) usleep(10000);
  return remove_at(folder, name, flags);
}
